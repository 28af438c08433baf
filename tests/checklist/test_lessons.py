"""What the course of an incident teaches beside its cause."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from bot.app import lint_knowledge
from bot.checklist import (
    Background,
    apply_change,
    load_checklists,
    parse_checklist,
    propose_for,
    shipped_checklists,
)
from bot.checklist.diffs import files_of
from bot.checklist.writing import NewItem, appended
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.domain.checklist import CheckOutcome, CheckRun, ProposalKind, Usage
from bot.domain.incident import RootCause
from bot.domain.text import Localized
from bot.domain.timeline import Entry, EntryKind
from bot.locales import say
from tests.checklist.test_proposing import Causes
from tests.report.sample import sample_case
from tests.report.sample_facts import ALLOCATOR, CAUSE, OPENED

NAME = "inference-latency"
PATH = Path(f"{NAME}.yaml")
LIST = load_checklists([shipped_checklists()])[NAME]
KNOWN = {"gpu.host_alloc_slow": "runtime"}


def proposed(incident, checklist=LIST, **about):
    found = propose_for(incident, Causes(), {checklist.id: checklist}, Background(**about))
    return {change.kind: (change, reason) for change, reason in found}


def run(item: str, outcome: CheckOutcome, summary: Localized) -> CheckRun:
    return CheckRun(
        checklist=NAME, item=item, version=1, text=summary, outcome=outcome, summary=summary,
        by="rca-bot", at=OPENED,
    )  # fmt: skip


def test_bound_that_hid_the_trouble_moves_below_what_was_seen():
    incident = sample_case().incident
    metric = "translate_p99_seconds"
    query = NewItem(id="p99", query=metric, above=1.0, text=Localized("P99?", "P99？"))
    checklist = parse_checklist(appended(LIST, "INC-3", [query]), PATH)
    seen = run("p99", CheckOutcome.CLEAN, say("checklist.value", value="0.612 s", bound="1"))
    symptom = replace(incident.symptoms[0], metric=metric)
    hidden = replace(incident, checks=(seen,), symptoms=(symptom,))
    change, reason = proposed(hidden, checklist)[ProposalKind.THRESHOLD]
    after = parse_checklist(apply_change(checklist.source, change.diff), PATH)
    assert after.items[-1].above == 0.49
    assert "0.612" in reason.en and "0.612" in reason.zh
    calm = replace(hidden, symptoms=(replace(symptom, metric="other"),))
    assert ProposalKind.THRESHOLD not in proposed(calm, checklist)


def test_step_that_took_most_of_the_way_begins_with_what_ended_it():
    incident = sample_case().incident
    root = incident.root_cause
    slow = replace(incident, root_cause=replace(root, at=OPENED + timedelta(minutes=40)))

    def entered(seq: int, step: str, minutes: int) -> Entry:
        return Entry(
            seq=seq, kind=EntryKind.STEP, at=OPENED + timedelta(minutes=minutes), author="U1",
            source="slack", text=None, data={"op": "entered", "step": step},
        )  # fmt: skip

    entries = (entered(1, "symptom", 0), entered(2, "information", 5), entered(3, "hypotheses", 35))
    change, reason = proposed(slow, entries=entries)[ProposalKind.STEP]
    item = parse_checklist(apply_change(LIST.source, change.diff), PATH).items[-1]
    assert (item.step, item.learned_from) == ("information", "INC-7")
    assert "30 min" in reason.en and "75 %" in reason.en
    quick = replace(incident, root_cause=replace(root, at=OPENED + timedelta(minutes=6)))
    assert ProposalKind.STEP not in proposed(quick, entries=entries[:2])


def test_checks_that_never_found_anything_are_proposed_for_removal_after_ten_incidents():
    incident = sample_case().incident
    quiet = {CheckOutcome.CLEAN: 7, CheckOutcome.SKIPPED: 3}
    usage = {
        NAME: {
            "cpu-waits": Usage(counts=quiet),
            "gpu-clocks": Usage(counts={**quiet, CheckOutcome.FOUND: 1}),
            "gpu-link": Usage(counts={CheckOutcome.CLEAN: 9}),
            "disk-waits": Usage(counts={CheckOutcome.UNKNOWN: 40, CheckOutcome.CLEAN: 2}),
        }
    }
    change, reason = proposed(incident, usage=usage)[ProposalKind.STALE]
    after = parse_checklist(apply_change(LIST.source, change.diff), PATH)
    gone = {item.id for item in LIST.items} - {item.id for item in after.items}
    assert gone == {"cpu-waits"}, "what could not look is no proof that nothing was there"
    assert "10 incidents" in reason.en


def test_cause_that_no_catalogue_knows_becomes_a_file_that_passes_the_lint(tmp_path):
    incident = sample_case().incident
    words = Localized.verbatim('锁 "x": {{ 7*7 }}\n- evil: yes\u2028# \\')
    hypothesis = replace(incident.hypothesis(CAUSE), cause="person:1", title=words)
    root: RootCause = replace(
        incident.root_cause, cause="person:1", chain=("person:1",), deep_cause=words,
        evidence=(ALLOCATOR.id,),
    )  # fmt: skip
    own = replace(incident, root_cause=root, hypotheses=(hypothesis,))
    change, reason = proposed(own, known=KNOWN)[ProposalKind.CAUSE]
    ((path, text),) = files_of(change.diff).items()
    (tmp_path / "causes").mkdir()
    (tmp_path / path).write_text(text, encoding="utf-8")
    faults, count = lint_knowledge([tmp_path])
    assert (faults, count) == ([], 1)
    cause = load_causes([shipped_causes(), tmp_path / "causes"]).causes[Path(path).stem]
    assert cause.layer.value == "runtime"
    assert cause.evidence[0].basis == f"observed in INC-7 ({ALLOCATOR.id})"
    assert cause.experiments[0].probe == "gpu_allocator"
    assert reason.zh != reason.en
    assert ProposalKind.CAUSE not in proposed(own, known={}), "nothing measured speaks for it"
    spoken = replace(own, root_cause=replace(root, evidence=("E-nobody",)))
    assert ProposalKind.CAUSE in proposed(spoken, known=KNOWN), (
        "what was measured is there all the same"
    )


def test_lint_names_a_probe_that_is_none(tmp_path):
    folder = tmp_path / "checklists"
    folder.mkdir()
    item = NewItem(id="x", probe="host_cpus", text=Localized("?", "？"))
    (folder / f"{NAME}.yaml").write_text(appended(LIST, "INC-1", [item]), encoding="utf-8")
    faults, _ = lint_knowledge([tmp_path])
    assert len(faults) == 1 and "there is no probe 'host_cpus'" in faults[0]
    assert faults[0].startswith(f"{folder}/{NAME}.yaml:")


def test_query_without_a_bound_is_a_fault(tmp_path):
    text = LIST.source + (
        '  - id: q\n    step: information\n    query: "up"\n    text: {en: "?", zh-CN: "？"}\n'
    )
    folder = tmp_path / "checklists"
    folder.mkdir()
    (folder / f"{NAME}.yaml").write_text(text, encoding="utf-8")
    faults, _ = lint_knowledge([tmp_path])
    assert any("exactly one of above, below" in fault for fault in faults)
