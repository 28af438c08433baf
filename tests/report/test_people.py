"""What people write is theirs: it stands where it was compiled before, is never overwritten, and can be taken back."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.checklist import ChecklistChange, ProposalKind
from bot.domain.postmortem import (
    REQUIRED_TOPICS,
    JudgementTopic,
    MonitoringKind,
    Question,
    ReportState,
    RevisionKind,
)
from bot.domain.projection import project
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.exporter import ExportOptions
from bot.exporters import render_report
from bot.incidents.reviewing import obstacles
from bot.report.revisions import compare
from tests.report.sample import DIRECTORY, Case, sample_case
from tests.report.sample_facts import ALLOCATOR
from tests.report.sample_script import Script


def _then(*changes: tuple[str, dict[str, object]], case: Case | None = None) -> Case:
    script = Script()
    script.entries = list((case or sample_case()).entries)
    for place, (text, data) in enumerate(changes):
        script.add(
            1000 + place, EntryKind.REPORT, text, author="U0LIN", source="slack", **data
        )  # fmt: skip
    entries = tuple(script.entries)
    return Case(entries=entries, incident=project("INC-7", entries), directory=DIRECTORY)


def _edit(topic: JudgementTopic, text: str) -> tuple[str, dict[str, object]]:
    return text, {"op": "edited", "topic": topic.value, "state": "draft"}


def test_newest_words_count_and_emptied_section_is_asked_again():
    case = _then(
        _edit(JudgementTopic.IMPACT, "first"),
        _edit(JudgementTopic.IMPACT, "second"),
        _edit(JudgementTopic.LESSONS, "gone soon"),
        _edit(JudgementTopic.LESSONS, ""),
    )
    answers = {item.topic: item for item in case.compile().judgements}
    assert answers[JudgementTopic.IMPACT].answer == Localized.verbatim("second")
    assert answers[JudgementTopic.IMPACT].by == "林岚"
    assert answers[JudgementTopic.LESSONS].answer is None


def test_prevention_of_people_replaces_the_compiled_one():
    report = _then(_edit(JudgementTopic.PREVENTION, "our own plan")).compile()
    answer = next(item for item in report.answers if item.question is Question.PREVENTION)
    assert answer.text == Localized.verbatim("our own plan")
    assert report.root_cause is not None
    assert report.root_cause.prevention == Localized.verbatim("our own plan")


def test_evidence_that_people_name_founds_a_claim():
    before = sample_case().compile()
    assert "chain:h2d_copy_slow" in before.unsupported
    data = {
        "op": "cited", "claim": "chain:h2d_copy_slow", "evidence": [ALLOCATOR.id], "state": "draft",
    }  # fmt: skip
    after = _then(("named", data)).compile()
    assert "chain:h2d_copy_slow" not in after.unsupported
    link = next(item for item in after.chain if item.cause == "h2d_copy_slow")
    assert link.evidence == (ALLOCATOR.id,)


def test_obstacles_name_every_unfounded_claim_and_every_unwritten_section():
    why = obstacles(sample_case().compile())
    assert why is not None
    assert "chain:h2d_copy_slow" in why.en
    for word in ("impact", "what helped", "what misled", "prevention", "lessons"):
        assert word in why.en
    assert "影响" in why.zh
    everything = [_edit(topic, "x") for topic in REQUIRED_TOPICS]
    data = {"op": "cited", "claim": "chain:h2d_copy_slow", "evidence": ["E-1"], "state": "draft"}
    assert obstacles(_then(*everything, ("named", data)).compile()) is None


def test_not_established_report_may_be_final():
    case = sample_case(is_established=False)
    everything = [_edit(topic, "x") for topic in REQUIRED_TOPICS]
    report = _then(*everything, case=case).compile()
    assert not report.is_established
    assert obstacles(report) is None


def test_revisions_tell_who_did_what_and_the_state_since():
    case = _then(
        ("compiled", {"formats": ["md"], "state": "draft"}),
        _edit(JudgementTopic.IMPACT, "a"),
        ("reviewed", {"op": "reviewed", "state": "reviewed"}),
        ("delivered", {"op": "delivered", "target": "git", "url": None}),
        ("final", {"op": "final", "state": "final"}),
    )
    report = case.compile()
    assert [(item.n, item.kind, item.state) for item in report.revisions] == [
        (1, RevisionKind.COMPILED, ReportState.DRAFT),
        (2, RevisionKind.EDITED, ReportState.DRAFT),
        (3, RevisionKind.REVIEWED, ReportState.REVIEWED),
        (4, RevisionKind.FINAL, ReportState.FINAL),
    ]
    assert report.header.state is ReportState.FINAL
    assert report.reviewed is not None
    assert report.reviewed.by == "林岚"


def test_withheld_words_of_a_section_are_in_no_revision():
    case = _then(_edit(JudgementTopic.IMPACT, "the customer's name"))
    taken_back = tuple(
        replace(entry, text=None) if entry.op == "edited" else entry for entry in case.entries
    )
    report = replace(case, entries=taken_back).compile()
    assert "the customer's name" not in repr(report)
    assert report.judgements[0].answer is None


def test_difference_of_two_revisions_is_what_they_state():
    older = _then().compile()
    newer = _then(_edit(JudgementTopic.IMPACT, "nobody")).compile()
    found = compare(older, newer, Locale.EN, names=("r1", "r2"))
    assert "+nobody" in found.text
    assert found.added >= 1
    assert compare(newer, newer, Locale.EN, names=("r2", "r2")).text == ""


def test_monitoring_changes_are_exported_in_the_closed_set():
    case = sample_case()
    change = ChecklistChange(
        n=9, checklist="monitoring/x", diff="+ a", reason="late", kind=ProposalKind.ALERT
    )
    incident = replace(case.incident, monitoring_changes=(change,))
    report = replace(case, incident=incident).compile()
    assert [item.kind for item in report.monitoring_changes] == [MonitoringKind.ALERT]
    written = render_report(report, ["json"], ExportOptions(locale=Locale.EN))["json"]
    assert b'"kind": "alert"' in written.content


def test_file_of_a_message_is_named_and_not_taken_along():
    script = Script()
    script.entries = list(sample_case().entries)
    held = {"name": "dump | x.log", "size": 12_600, "mimetype": "text/plain", "url": "https://x/y"}
    script.say(900, "U0LIN", "see this", files=[held])
    entries = tuple(script.entries)
    case = Case(entries=entries, incident=project("INC-7", entries), directory=DIRECTORY)
    made = render_report(case.compile(), ["md"], ExportOptions(locale=Locale.EN))["md"]
    assert "file: dump \\| x.log (12.3 KiB)" in made.content.decode()
    assert not any("dump" in path for path in made.files)
