"""Reads a service's own metrics page, from the address that the node's configuration gives."""

from __future__ import annotations

import http.client
import math
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from bot.errors import ProbeError, Reason

PAGE_LIMIT_BYTES = 8 * 1024 * 1024
"""A vLLM page with many models stays under 1 MiB; more than this is no metrics page."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of the page."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Exposition:
    """One scrape. `scrape_seconds` is evidence itself: a page that answers late means a busy event loop."""

    samples: tuple[Sample, ...]
    scrape_seconds: float

    def total(self, *names: str) -> float | None:
        """Sum over all series of the first of `names` that the page has; None when it has none of them."""
        for name in names:
            values = [sample.value for sample in self.samples if sample.name == name]
            if values:
                return math.fsum(values)
        return None


def scrape(url: str | None, timeout_seconds: float) -> Exposition:
    """Fetches and parses the page.

    Raises:
        ProbeError: `unsupported` without an address; `refused`, `timeout`, `unauthorised` or `malformed` as it fell.
    """
    if url is None:
        raise ProbeError(
            "the service has no metrics address on this node; set [services.<name>] metrics",
            reason=Reason.UNSUPPORTED,
        )
    started = time.monotonic()  # measures the service, so no clock is handed in
    body = _fetch(url, timeout_seconds)
    seconds = time.monotonic() - started
    return Exposition(parse(body.decode("utf-8", errors="replace")), seconds)


def parse(text: str) -> tuple[Sample, ...]:
    r"""Reads exposition text; series whose value is NaN are left out.

    Raises:
        ProbeError: `malformed` when it is no exposition text.

    >>> parse("vllm:num_requests_waiting{model_name=\"m\"} 3\n")[0].value
    3.0
    """
    try:
        return tuple(
            Sample(sample.name, sample.labels, float(sample.value))
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if not math.isnan(sample.value)
        )
    except (ValueError, KeyError, IndexError) as error:
        raise ProbeError(
            f"the metrics page is no Prometheus text: {str(error)[:80]!r}", reason=Reason.MALFORMED
        ) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could lead beyond the approved address, so it is an error."""

    def redirect_request(self, *_request: object, **_named: object) -> None:
        return None


# The empty proxy table keeps HTTP_PROXY of the node from seeing the service's page.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


def _fetch(url: str, timeout_seconds: float) -> bytes:
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked when the configuration is read
        url, headers={"Accept": "text/plain;version=0.0.4", "User-Agent": "rca-agent"}
    )
    try:
        with _OPENER.open(request, timeout=timeout_seconds) as answer:
            body: bytes = answer.read(PAGE_LIMIT_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        reason = Reason.UNAUTHORISED if error.code in {401, 403} else Reason.REFUSED
        raise ProbeError(f"the metrics page answers HTTP {error.code}", reason=reason) from error
    except TimeoutError as error:
        raise ProbeError(
            f"the metrics page did not answer within {timeout_seconds:g} s", reason=Reason.TIMEOUT
        ) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise ProbeError(
                f"the metrics page did not answer within {timeout_seconds:g} s",
                reason=Reason.TIMEOUT,
            ) from error
        raise ProbeError(
            f"the metrics page cannot be reached: {error.reason}", reason=Reason.REFUSED
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise ProbeError(f"the metrics page broke off: {error}", reason=Reason.REFUSED) from error
    if len(body) > PAGE_LIMIT_BYTES:
        raise ProbeError(f"the metrics page is larger than {PAGE_LIMIT_BYTES} bytes")
    return body
