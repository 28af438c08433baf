"""Which spans somebody waits for: the critical path of a request leads through no other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from bot.source import Span

_KIND, _CONSUMER = "span.kind", "consumer"


def trace_key(span: Span) -> str:
    """What names the trace of a span: the low 64 bits of its id, since a child may carry only those."""
    return span.trace_id[-16:].lstrip("0")


def awaited(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans without those that run after or beside the answer, and without all that these call.

    Left out are a span that only follows another, and one that begins after its parent has ended: on the same host's
    clock, or where it took the work from a queue. Another host's clock proves nothing about the order.
    """
    every = tuple(spans)
    known = {(trace_key(span), span.span_id): span for span in every}
    children: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    beside: list[tuple[str, str]] = []
    for key, span in known.items():
        parent = known.get((key[0], span.parent)) if span.parent is not None else None
        if parent is not None:
            children[key[0], parent.span_id].append(key)
        if span.follows or (parent is not None and _comes_after(span, parent)):
            beside.append(key)
    left_out: set[tuple[str, str]] = set()
    while beside:
        key = beside.pop()
        if key not in left_out:
            left_out.add(key)
            beside.extend(children[key])
    return tuple(span for span in every if (trace_key(span), span.span_id) not in left_out)


def _comes_after(span: Span, parent: Span) -> bool:
    one_clock = span.service == parent.service or span.tags.get(_KIND) == _CONSUMER
    return one_clock and span.start_us >= parent.start_us + parent.duration_us > parent.start_us
