"""What a guard did is said in words, in both languages; a layer that nobody looked at says what could not be had."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from bot.cause import Movement, Refuter, SignalTest
from bot.diagnosis.collected import Collected
from bot.diagnosis.engine import assess
from bot.domain.evidence import EvidenceSource, Gap, SourceState
from bot.domain.finding import ProbeStatus
from bot.domain.guard import GuardKind
from bot.domain.hypothesis import Layer, LayerState
from bot.domain.text import Localized
from bot.source import Span
from tests.diagnosis.test_guards import SICK, with_cause
from tests.diagnosis.worlds import (
    AT,
    CATALOGUE,
    LOADER,
    ONSET,
    SERVICE,
    SURGE,
    change,
    probe,
    without,
    world,
)

LATE = ("disk.latency", "host.io_pressure")
BLOCKED = probe("process_threads", "proc.blocked_io")
STALLED = replace(
    probe("burst_sample", "metric.flat"),
    data={
        "window_s": 4.0,
        "pressure": {
            "io": {"mean_ratio": 0.34},
            "cpu": {"mean_ratio": 0.01},
            "memory": "what a node may say in its place",
        },
    },
)


def notes(collected: Collected) -> dict[GuardKind, list[str]]:
    found: dict[GuardKind, list[str]] = {}
    for note in assess(collected, CATALOGUE, SERVICE).guards:
        assert note.text.zh != note.text.en
        found.setdefault(note.kind, []).append(note.text.en)
    return found


def test_what_began_after_its_effect_is_named_and_ranks_below_it() -> None:
    sick = {**SURGE}
    late = (*LATE, "writes.service", "logs.shipped")
    collected = world(
        sick, probes=[BLOCKED], onsets=dict.fromkeys(late, ONSET + timedelta(minutes=6))
    )
    answer = assess(collected, CATALOGUE, SERVICE)
    assert answer.hypotheses[0].chain == ("data_loading_blocked",)
    said = notes(collected)[GuardKind.BEGAN_LATE]
    assert any("disk I/O saturated" in text and "20:15:00Z" in text for text in said)


def test_order_within_one_scrape_is_said_with_what_the_counters_of_the_node_say() -> None:
    unseen = notes(world(SURGE, probes=[BLOCKED]))
    assert "scrape interval of 15 s" in unseen[GuardKind.UNORDERED][0]
    assert "burst_sample" in unseen[GuardKind.UNORDERED][0]
    asked = notes(world(SURGE, probes=[BLOCKED, STALLED]))
    assert "io stalled 34 % of the time" in asked[GuardKind.UNORDERED][0]
    assert "memory" not in asked[GuardKind.UNORDERED][0]
    assert "explains data loading blocked" in asked[GuardKind.MOVED_FIRST][0]


def test_what_only_moves_together_is_held_back_and_said() -> None:
    collected = replace(
        world({"latency.client": 0.4, "peer.latency": 0.5, "peer.errors": 3.0}), probes=()
    )
    (said,) = notes(collected)[GuardKind.CO_MOVEMENT]
    assert "1 kind(s) of evidence" in said
    assert "65 %" in said


def test_cause_that_fits_and_is_excluded_is_named_with_what_excludes_it() -> None:
    refuter = Refuter(
        id="busy", test=SignalTest(signal="latency.client", movement=Movement.UP),
        text=Localized("it is slow elsewhere too", "别处也慢"), basis="made up",
    )  # fmt: skip
    found = assess(SICK, with_cause(refuters=(refuter,)), SERVICE)
    (said,) = [note.text.en for note in found.guards if note.kind is GuardKind.REFUTED]
    assert "excluded: it is slow elsewhere too" in said


def test_an_old_change_that_fits_is_named_before_newer_ones_and_the_span_is_said() -> None:
    old = change("c-old", "set log level to debug", AT - timedelta(days=6))
    newer = [
        change(f"c-{day}", "rename a dashboard", AT - timedelta(days=day), service="other")
        for day in (1, 2)
    ]
    collected = world(
        SURGE, probes=[BLOCKED, probe("log_health", "log.write_surge")], changes=[old, *newer]
    )
    said = notes(collected)
    assert "c-old is 6 days old. 2 newer one(s)" in said[GuardKind.OLD_CHANGE][0]
    assert "back 7 days" in said[GuardKind.CHANGES_SEARCHED][0]
    month = replace(
        collected, request=replace(collected.request, changes_back_seconds=30 * 86_400.0)
    )
    assert "back 30 days" in notes(month)[GuardKind.CHANGES_SEARCHED][0]
    unread = replace(collected, states={**collected.states, "events": SourceState.UNREACHABLE})
    assert "none is excluded" in notes(unread)[GuardKind.CHANGES_SEARCHED][0]


def test_layer_that_was_not_checked_says_what_could_not_be_had() -> None:
    denied = replace(probe("gpu_state"), status=ProbeStatus.DENIED)
    collected = world(LOADER, probes=[denied])
    dark = {
        name: one
        for name, one in collected.now.items()
        if CATALOGUE.signals[name].layer is not Layer.GPU
    }
    only = (*(one for one in collected.probes if not one.probe.startswith("gpu_")), denied)
    seen = replace(collected, now=dark, probes=only)

    def gpu(of: Collected) -> str:
        verdict = next(v for v in assess(of, CATALOGUE, SERVICE).layers if v.layer is Layer.GPU)
        assert verdict.state is LayerState.NOT_CHECKED
        return verdict.why.en

    assert "signals has a series here" in gpu(seen)
    assert "gpu_state on node-1: no permission" in gpu(seen)
    gap = Gap(
        source=EvidenceSource.METRICS, plugin="metrics", query="", reason="timeout", detail="no answer in 8 s",
    )  # fmt: skip
    down = replace(
        seen, gaps=(gap,), probes=(),
        states={**seen.states, "metrics": SourceState.UNREACHABLE, "probes": SourceState.EMPTY},
    )  # fmt: skip
    assert gpu(down) == "metrics did not answer (no answer in 8 s); no agent answered"


def test_where_no_cause_is_established_the_test_names_the_cause_that_it_is_about() -> None:
    answer = assess(world({"latency.client": 0.4}), CATALOGUE, SERVICE)
    first = answer.hypotheses[0]
    assert first.cause == "not_established"
    assert first.next_experiment is not None
    titles = [item.title.en for item in answer.hypotheses[1:]]
    assert any(f"“{title}”" in first.next_experiment.expects.en for title in titles)
    assert "would make it" in first.next_experiment.would_refute.en


def test_peer_path_and_node_that_say_nothing_are_blind_spots_and_not_healthy() -> None:
    def spots(collected: Collected) -> dict[str, str]:
        found = assess(collected, CATALOGUE, SERVICE).blind_spots
        return {spot.what.en: spot.why.en for spot in found}

    assert not any("store" in what for what in spots(world(LOADER)))
    quiet = without(world(LOADER), "peer.latency", "peer.errors")
    assert "silent" in spots(quiet)["store, which the service depends on"]
    span = Span(
        trace_id="a", span_id="b", parent=None, service=SERVICE.name, operation="handle",
        start_us=round(ONSET.timestamp() * 1e6), duration_us=1_000, tags={},
    )  # fmt: skip
    traced = replace(world(LOADER), spans=(span,))
    assert spots(traced)["calls from rank-api to store"] == "no trace takes this path"
    two = replace(world(LOADER), nodes=("node-1", "node-2"))
    assert "node node-2" in spots(two)


def test_where_the_time_is_lost_is_said_first_and_only_where_some_part_grew() -> None:
    sick = world({**SURGE, "phase.queue": 0.3, "phase.frontend": 0.9})
    (said,) = notes(sick)[GuardKind.TIME_LOST]
    assert "in this layer: application" in said
    assert "reading" in said
    assert assess(sick, CATALOGUE, SERVICE).guards[0].kind is GuardKind.TIME_LOST
    (longest,) = notes(world({"phase.queue": 2.0, "phase.frontend": 0.9}))[GuardKind.TIME_LOST]
    assert "in this layer: runtime" in longest
    assert GuardKind.TIME_LOST not in notes(world({}))
