"""Spans of one incident lead to the component behind the service that is at fault."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bot.diagnosis.components.incident import faulty_component
from bot.domain.instant import Window
from bot.source import Span

ONSET = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
INCIDENT = Window(ONSET, ONSET + timedelta(minutes=12))


def traces(*, store: float, features: float = 0.02, failing: bool = False) -> list[Span]:
    """api calls features, features calls store; one trace every 20 s for an hour before and in the incident.

    store / features: seconds of own work during the incident, 0.02 before it.
    """
    spans: list[Span] = []
    for at in range(-180, 36):
        begin = round((ONSET.timestamp() + 20 * at) * 1e6)
        deep, middle = (store, features) if at >= 0 else (0.02, 0.02)
        tags = {"otel.status_code": "ERROR"} if failing and at >= 0 else {}
        for name, parent, seconds in (
            ("api", None, deep + middle + 0.02), ("features", "api", deep + middle), ("store", "features", deep),
        ):  # fmt: skip
            spans.append(
                Span(
                    trace_id=f"t{at}", span_id=name, parent=parent, service=name, operation="call",
                    start_us=begin, duration_us=round(seconds * 1e6), tags=tags,
                )
            )  # fmt: skip
    return spans


def name_of(spans: list[Span], *, failing: bool = False) -> str | None:
    found = faulty_component(spans, "api", ("features",), INCIDENT, failing=failing)
    return found.name if found else None


def test_the_deepest_slow_service_is_named_not_the_one_that_waits_for_it() -> None:
    assert name_of(traces(store=1.5)) == "store"


def test_the_middle_one_is_named_when_what_it_calls_is_as_fast_as_ever() -> None:
    assert name_of(traces(store=0.02, features=1.5)) == "features"


def test_failures_are_followed_as_time_is() -> None:
    assert name_of(traces(store=0.02, failing=True), failing=True) == "store"


def test_nothing_moved_names_nobody() -> None:
    assert name_of(traces(store=0.02)) is None


def test_too_few_traces_before_the_incident_name_nobody() -> None:
    late = [span for span in traces(store=1.5) if span.start_us >= ONSET.timestamp() * 1e6]
    assert name_of(late) is None


def test_a_peer_without_spans_of_its_own_is_named_by_its_callers_span() -> None:
    spans = [
        Span(
            trace_id=f"t{at}", span_id="1", parent=None, service="api", operation="lookup",
            start_us=round((ONSET.timestamp() + 20 * at) * 1e6),
            duration_us=2_000_000 if at >= 0 else 30_000, tags={"peer.service": "redis"},
        )
        for at in range(-180, 36)
    ]  # fmt: skip
    assert name_of(spans) == "redis"
