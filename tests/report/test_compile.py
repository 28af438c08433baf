"""The postmortem says what the timeline says: all of it, in order, once, and nothing more."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.hypothesis import NOT_ESTABLISHED
from bot.domain.incident import RootCause
from bot.domain.instant import Window, to_rfc3339
from bot.domain.postmortem import DurationName, Question
from bot.domain.projection import project
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.report.clock import Clock, duration_text
from bot.report.compile import compile_postmortem
from tests.report.sample import DIRECTORY, WITHHELD_TEXT, Case, sample_case
from tests.report.sample_facts import ALLOCATOR, CAUSE, COPY, OPENED
from tests.report.sample_script import Script


def test_timeline_is_ordered_by_instant_then_seq():
    lines = sample_case().compile().timeline
    assert [(line.at, line.seq) for line in lines] == sorted((line.at, line.seq) for line in lines)
    assert lines[0].kind is EntryKind.ALERT, "the alert came 464 ms before the incident was opened"


def test_every_entry_is_in_the_timeline_exactly_once():
    case = sample_case()
    seqs = [line.seq for line in case.compile().timeline]
    assert sorted(seqs) == list(range(1, len(case.entries) + 1))


def test_order_in_which_entries_arrive_changes_nothing():
    case = sample_case()
    shuffled = list(case.entries)
    random.Random(7).shuffle(shuffled)
    assert replace(case, entries=tuple(shuffled)).compile() == case.compile()


def test_times_of_the_repeated_hour_stay_apart():
    clock = Clock.named("America/New_York")
    first = datetime(2026, 11, 1, 5, 30, 10, tzinfo=UTC)
    assert clock.stamp(first) == "2026-11-01 01:30:10 -04:00"
    assert clock.stamp(first + timedelta(hours=1)) == "2026-11-01 01:30:10 -05:00"
    assert clock.precise(first + timedelta(milliseconds=464)).startswith("2026-11-01 01:30:10.464")


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [(0, "0 s", "0 秒"), (2390, "39 min 50 s", "39 分钟 50 秒"), (90000, "1 d 1 h", "1 天 1 小时")],
)
def test_durations_read_naturally(seconds, english, chinese):
    assert duration_text(seconds, Locale.EN) == english
    assert duration_text(seconds, Locale.ZH_CN) == chinese


def test_durations_count_from_the_opening():
    durations = sample_case().compile().durations
    assert durations == {
        DurationName.ACKNOWLEDGE: 95.0,
        DurationName.SYMPTOM: 95.0,
        DurationName.FIRST_EVIDENCE: 22.0,
        DurationName.HYPOTHESES: 26.0,
        DurationName.MITIGATE: 290.0,
        DurationName.CONFIRMED_CAUSE: 400.0,
        DurationName.VERIFIED_FIX: 630.0,
        DurationName.RESOLVE: 760.0,
    }


def test_what_did_not_happen_has_no_duration():
    durations = sample_case(is_established=False).compile().durations
    for name in (DurationName.MITIGATE, DurationName.CONFIRMED_CAUSE, DurationName.VERIFIED_FIX):
        assert durations[name] is None
    assert durations[DurationName.RESOLVE] is None


def test_failed_probe_is_no_first_evidence():
    case = sample_case(is_established=False)
    kept = [
        e
        for e in case.entries
        if e.kind is not EntryKind.EVIDENCE and e.data.get("purpose") != "collection"
    ]
    denied = next(e for e in case.entries if (e.data.get("result") or {}).get("status") == "denied")
    report = replace(case, entries=(*kept, denied)).compile()
    assert report.durations[DurationName.FIRST_EVIDENCE] is None


def test_verification_of_an_earlier_fix_does_not_count_for_the_one_that_stands():
    case = sample_case()
    script = Script()
    script.entries = list(case.entries)
    script.add(800, EntryKind.ACTION, "second fix", author="U0LIN", source="slack", op="fix")
    script.add(900, EntryKind.ACTION, Localized.verbatim("gone"), op="verified", verified=True)
    report = Case(
        entries=tuple(script.entries),
        incident=project("INC-7", script.entries),
        directory=DIRECTORY,
    ).compile()
    assert report.durations[DurationName.VERIFIED_FIX] == 900.0


def test_withheld_message_keeps_its_line_and_loses_every_wording():
    report = sample_case().compile()
    line = next(line for line in report.timeline if line.is_withheld)
    assert line.text is None
    assert line.history == ()
    assert WITHHELD_TEXT not in repr(report)


def test_edited_message_shows_the_newest_wording_and_keeps_the_earlier():
    line = next(line for line in sample_case().compile().timeline if line.history)
    assert line.text == Localized.verbatim("GPU clocks look normal")
    assert line.history[0].text == Localized.verbatim("GPU clocks look odd")


def test_correction_points_both_ways():
    lines = {line.seq: line for line in sample_case().compile().timeline}
    correction = next(line for line in lines.values() if line.corrects)
    assert lines[correction.corrects].corrected_by == correction.seq


def test_people_have_names_and_unknown_ones_keep_their_id():
    report = sample_case().compile()
    said = [line.text.en for line in report.timeline if line.text]
    assert any("@Priya <Rao> 请看 KV cache；@U0GONE" in text for text in said)
    assert report.root_cause.by == "林岚"
    assert report.action_items[0].owner == "Priya <Rao>"


def test_half_a_surrogate_pair_does_not_reach_the_exporters():
    assert "\ud83d" not in "".join(
        line.text.en for line in sample_case().compile().timeline if line.text
    )


def test_three_answers_cite_their_evidence():
    answers = {answer.question: answer for answer in sample_case().compile().answers}
    assert answers[Question.TRIGGER].evidence == ("chg-pool",)
    assert answers[Question.DEEP_CAUSE].evidence == (COPY.id, ALLOCATOR.id)
    assert not any(answer.is_unsupported for answer in answers.values())


def test_claim_without_evidence_is_marked():
    case = sample_case()
    root = replace(case.incident.root_cause, evidence=())
    report = replace(case, incident=replace(case.incident, root_cause=root)).compile()
    assert "deep_cause" in report.unsupported
    assert "chain:h2d_copy_slow" in report.unsupported
    assert f"chain:{CAUSE}" not in report.unsupported, "its hypothesis cites evidence"


def test_chain_titles_come_from_the_catalogue_where_no_hypothesis_has_them():
    case = sample_case()
    title = Localized("Slow copies to the device", "拷贝到显卡变慢")
    report = compile_postmortem(
        case.incident,
        case.entries,
        directory={},
        charts={},
        zone="UTC",
        version="0",
        titles={"h2d_copy_slow": title},
    )
    assert report.chain[0].title == title


def test_confirmed_trigger_is_the_only_suspect():
    changes = {item.change.id: item.is_suspect for item in sample_case().compile().changes}
    assert changes == {"chg-pool": True, "chg-gw": False}


def test_searched_window_of_changes_is_stated():
    window = sample_case().compile().changes_window
    assert window.start == OPENED - timedelta(days=7)
    assert window.end == OPENED + timedelta(seconds=25)


def test_search_that_found_no_change_is_a_search_all_the_same():
    case = sample_case(is_established=False)
    kept = [e for e in case.entries if e.kind is not EntryKind.CHANGE]
    since = OPENED - timedelta(days=10)
    asked = [
        replace(e, data={**e.data, "changes_since": to_rfc3339(since)})
        if e.kind is EntryKind.EVIDENCE and "sources" in e.data
        else e
        for e in kept
    ]
    assert replace(case, entries=tuple(kept)).compile().changes_window is None
    window = replace(case, entries=tuple(asked)).compile().changes_window
    assert window == Window(since, OPENED + timedelta(seconds=22))


def test_unfounded_incident_is_a_valid_report():
    report = sample_case(is_established=False).compile()
    assert not report.is_established
    assert all(answer.text is None for answer in report.answers)
    assert report.chain == ()
    assert any(item.cause == NOT_ESTABLISHED for item in report.hypotheses)


def test_root_cause_without_a_chain_is_its_own_chain():
    case = sample_case()
    root = case.incident.root_cause
    bare = RootCause(
        cause=root.cause,
        chain=(),
        trigger=None,
        deep_cause=root.deep_cause,
        prevention=root.prevention,
        evidence=root.evidence,
        by=root.by,
        at=root.at,
    )
    report = replace(case, incident=replace(case.incident, root_cause=bare)).compile()
    assert [link.cause for link in report.chain] == [CAUSE]
    assert report.answers[0].text is None


def test_chart_data_is_found_beside_its_drawing():
    blobs = {"symptom.svg": b"<svg/>", "symptom.csv": b"time\n", "symptom.png": b"png"}
    charts = {chart.id: chart for chart in sample_case(charts=blobs).compile().charts}
    assert (charts["symptom"].svg, charts["symptom"].csv) == (b"<svg/>", b"time\n")
    assert charts["deciding"].svg is None
    assert charts["recovery"].is_after_fix
    assert not charts["symptom"].is_after_fix
