"""One bounded request to an address that the node's own configuration gives: no proxy, no redirect, no retry."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

from bot.errors import ProbeError, Reason


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could lead beyond the approved address, so it is an error."""

    def redirect_request(self, *_request: object, **_named: object) -> None:
        return None


# The empty proxy table keeps HTTP_PROXY of the node from seeing the service's answers.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


def ask(
    url: str,
    what: str,
    *,
    timeout_seconds: float,
    limit_bytes: int,
    accept: str = "application/json",
    body: bytes | None = None,
) -> bytes:
    """The answer's body; with `body` a POST of JSON, else a GET. `what` names the address in messages.

    Raises:
        ProbeError: `unauthorised` for 401 and 403, `not_found` for 404, `timeout`, `refused` for every other failure,
            `malformed` for a body over `limit_bytes`.
    """
    headers = {"Accept": accept, "User-Agent": "rca-agent"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked when the configuration is read
        url, data=body, headers=headers
    )
    try:
        with _OPENER.open(request, timeout=timeout_seconds) as answer:
            content: bytes = answer.read(limit_bytes + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise ProbeError(f"{what} answers HTTP {error.code}", reason=_reason(error.code)) from error
    except TimeoutError as error:
        raise _too_late(what, timeout_seconds) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _too_late(what, timeout_seconds) from error
        raise ProbeError(
            f"{what} cannot be reached: {error.reason}", reason=Reason.REFUSED
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise ProbeError(f"{what} broke off: {error}", reason=Reason.REFUSED) from error
    if len(content) > limit_bytes:
        raise ProbeError(f"{what} answers more than {limit_bytes} bytes")
    return content


def _too_late(what: str, timeout_seconds: float) -> ProbeError:
    return ProbeError(f"{what} did not answer within {timeout_seconds:g} s", reason=Reason.TIMEOUT)


def _reason(status: int) -> Reason:
    match status:
        case 401 | 403:
            return Reason.UNAUTHORISED
        case 404:
            return Reason.NOT_FOUND
        case _:
            return Reason.REFUSED
