"""What traces themselves cannot be trusted with: clocks that disagree, and spans whose parent is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from bot.diagnosis.awaited import trace_key
from bot.source import UNFINISHED, Span

_LEAST_SKEW_US = 10_000
"""A difference of clocks below this is the precision of NTP on a quiet network and tells nothing."""


def clock_skews(spans: Iterable[Span]) -> Mapping[tuple[str, str], float]:
    """Seconds by which a callee's clock runs behind its caller's, by (caller, callee); only where it must.

    A child cannot begin before its parent, so the least difference is by how much it seems to.
    """
    known = {(trace_key(span), span.span_id): span for span in spans}
    early: dict[tuple[str, str], list[int]] = {}
    for (trace, _), span in sorted(known.items()):
        parent = known.get((trace, span.parent or ""))
        if parent is None or span.follows or parent.service == span.service:
            continue
        early.setdefault((parent.service, span.service), []).append(parent.start_us - span.start_us)
    found = {pair: median(values) for pair, values in early.items()}
    return {
        pair: microseconds / 1e6
        for pair, microseconds in sorted(found.items())
        if microseconds >= _LEAST_SKEW_US
    }


def orphans(spans: Iterable[Span]) -> int:
    """How many spans name a parent that was not recorded."""
    return sum(span.parent_missing for span in spans)


def unfinished(spans: Iterable[Span]) -> int:
    """How many spans have no end."""
    return sum(span.tags.get(UNFINISHED) == "true" for span in spans)
