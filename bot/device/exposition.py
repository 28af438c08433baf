"""Reads a service's own metrics page, from the address that the node's configuration gives."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from bot.device.local_http import ask
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
    body = ask(
        url,
        "the metrics page",
        timeout_seconds=timeout_seconds,
        limit_bytes=PAGE_LIMIT_BYTES,
        accept="text/plain;version=0.0.4",
    )
    seconds = time.monotonic() - started
    return Exposition(parse(body.decode("utf-8", errors="replace")), seconds)


def parse(text: str) -> tuple[Sample, ...]:
    r"""Reads exposition text; series whose value is NaN or infinite are left out.

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
            if math.isfinite(sample.value)
        )
    except (ValueError, KeyError, IndexError) as error:
        raise ProbeError(
            f"the metrics page is no Prometheus text: {str(error)[:80]!r}", reason=Reason.MALFORMED
        ) from error
