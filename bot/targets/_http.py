"""One HTTP request to a target: every way in which it can fail is one line and one reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from bot.errors import DeliveryError, Reason
from bot.source import host_of, without_answer

TIMEOUT_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 3600.0
"""A server that asks for more is asked again after this; the job's own deadline decides when to stop."""

LIMITED_SECONDS = 60.0
"""How long to keep away where a limit names no time. Source: GitHub REST documentation, "Rate limits": a minute at least."""

File = tuple[str, bytes, str]
"""Name, content and media type of one uploaded file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One server. `name` is what people call it; headers carry the token and are never printed."""

    name: str
    url: str
    http: httpx.AsyncClient
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """Name and host, for messages."""
        return f"{self.name} at {host_of(self.url)}"

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: object | None = None,
        file: File | None = None,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        takes: frozenset[int] = frozenset(),
    ) -> httpx.Response:
        """One request; answers of 2xx, and those whose status is in `takes`, come back.

        Raises:
            DeliveryError: everything else; with the server's own words where it had some.
        """
        try:
            response = await self.http.request(
                method,
                self.url + path,
                params=dict(params) if params else None,
                json=json,
                files={"file": file} if file else None,
                data=dict(fields) if fields else None,
                headers={**self.headers, **(headers or {})},
                auth=self.auth,
                timeout=TIMEOUT_SECONDS,
            )
        except httpx.HTTPError as error:
            line, reason = without_answer(
                error, self.where, seconds=TIMEOUT_SECONDS, late="it is tried again"
            )
            raise DeliveryError(line, reason=reason) from error
        if response.is_success or response.status_code in takes:
            return response
        raise self.fault(response)

    def fault(self, response: httpx.Response) -> DeliveryError:
        """The error of an answer that is no success."""
        status = response.status_code
        wait = wait_of(response)
        said = self._without_secrets(_words(response))
        reason, advice = _meaning(status)
        if status == 403 and (wait is not None or "rate limit" in said.lower()):
            reason, advice = Reason.RATE_LIMITED, "it is tried again later"
        if reason is Reason.RATE_LIMITED and wait is None:
            wait = LIMITED_SECONDS
        detail = f" ({said})" if said else ""
        return DeliveryError(
            f"{self.where}: answered {status}{detail}; {advice}",
            reason=reason,
            retry_after_seconds=wait,
        )

    def _without_secrets(self, text: str) -> str:
        """A server may repeat what it was sent, the token included."""
        secrets = [value.rpartition(" ")[2] for value in self.headers.values()]
        secrets += self.auth or ()
        for secret in secrets:
            if len(secret) >= 8:
                text = text.replace(secret, "…")
        return text

    def value(self, response: httpx.Response) -> Any:
        """The JSON body.

        Raises:
            DeliveryError: there is none.
        """
        try:
            return response.json()
        except ValueError as error:
            raise self.misshapen() from error

    def misshapen(self) -> DeliveryError:
        """The error of an answer in another shape than the documented one."""
        return DeliveryError(
            f"{self.where}: the answer is not in the documented shape; check that the address is {self.name}'s own",
            reason=Reason.MALFORMED,
        )


def _meaning(status: int) -> tuple[Reason, str]:
    match status:
        case 401:
            return Reason.UNAUTHORISED, "the token is missing, wrong or expired: give a new one"
        case 403:
            return Reason.UNAUTHORISED, "the token may not do this: give it the right to write"
        case 404:
            return Reason.NOT_FOUND, "check the address, and that the token may see it"
        case 409 | 412:
            return Reason.CONFLICT, "somebody else changed it at the same time; it is tried again"
        case 410:
            return Reason.UNSUPPORTED, "this is switched off there: switch it on"
        case 413:
            return Reason.UNSUPPORTED, "it is too large for that server: raise its limit"
        case 429:
            return Reason.RATE_LIMITED, "it is tried again later"
        case 408 | 425:
            return Reason.TIMEOUT, "it is tried again"
        case _ if status >= 500:
            return Reason.REFUSED, "it is tried again"
        case _ if 300 <= status < 400:
            return Reason.NOT_FOUND, "it has moved: correct the address"
        case _:
            return Reason.MALFORMED, "look at its log"


def wait_of(response: httpx.Response, now: datetime | None = None) -> float | None:
    """Seconds after which the server wants to be asked again, None where it did not say.

    Source: RFC 9110 section 10.2.3 (Retry-After as seconds or date); GitHub REST documentation, "Rate limits"
    (`x-ratelimit-remaining: 0` with `x-ratelimit-reset` in seconds since 1970), read 2026-11.
    """
    at = now or datetime.now(UTC)
    text = response.headers.get("retry-after", "").strip()
    seconds: float | None = None
    if text.isdecimal():
        seconds = float(text)
    elif text:
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            until = None
        if until is not None and until.tzinfo is not None:
            seconds = (until - at).total_seconds()
    elif response.headers.get("x-ratelimit-remaining", "").strip() == "0":
        reset = response.headers.get("x-ratelimit-reset", "").strip()
        if reset.isdecimal():
            seconds = float(reset) - at.timestamp()
    return None if seconds is None else min(max(seconds, 1.0), LONGEST_WAIT_SECONDS)


def _words(response: httpx.Response) -> str:
    """What the server says about it, on one line and short; nothing where it sends a page."""
    try:
        body = response.json()
    except ValueError:
        return ""
    found: list[str] = []
    if isinstance(body, Mapping):
        found += [str(body[key]) for key in ("message", "title") if isinstance(body.get(key), str)]
        errors = body.get("errors")
        for item in errors if isinstance(errors, list) else ():
            if isinstance(item, Mapping):
                said = item.get("title") or item.get("message") or item.get("code")
                found += [str(said)] if said else []
    line = " ".join("; ".join(dict.fromkeys(found)).split())
    return line if len(line) <= 200 else f"{line[:199]}…"
