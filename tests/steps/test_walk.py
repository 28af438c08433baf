"""Gates say what is missing; people pass them with a reason; a cause is confirmed only when it may be."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.domain.evidence import EvidenceSource, SourceState
from bot.domain.hypothesis import (
    NOT_ESTABLISHED,
    Contribution,
    Hypothesis,
    HypothesisStatus,
    Symptom,
)
from bot.domain.incident import (
    Experiment,
    ExperimentVerdict,
    Fix,
    Incident,
    IncidentStatus,
    Scope,
    StepState,
)
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.errors import CommandError, ConfigError
from bot.sop import GateRule, StepId, lint, load_sop, shipped_sops
from bot.steps.confirming import why_not, with_evidence
from bot.steps.gates import missing
from bot.steps.walk import GateClosedError, Move, Walker, drafts_for, resolve_gate

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SOP = load_sop([shipped_sops()])
WHO = Walker(by="U0LEAD", at=NOW)
EXACT = Symptom(id="S-1", summary=Localized.verbatim("P99 is 600 ms"), since=NOW)


def _incident(step: str = "symptom", **more: object) -> Incident:
    made = Incident(
        id="INC-1",
        title="t",
        status=IncidentStatus.OPEN,
        severity=Severity.SEV2,
        services=("translate-api",),
        channel="C1",
        opened_at=NOW,
        locale=Locale.EN,
        current_step=step,
        steps={step: StepState.CURRENT},
    )
    return replace(made, **more)  # type: ignore[arg-type]


def _because(source: EvidenceSource, ref: str = "E-1") -> Contribution:
    return Contribution(source=source, summary=Localized.verbatim("why"), ref=ref, weight=1.0)


def _hypothesis(cause: str = "lock_contention", **more: object) -> Hypothesis:
    made = Hypothesis(
        cause=cause,
        title=Localized("lock", "锁"),
        probability=0.8,
        chain=(cause,),
        explains=("S-1",),
        supports=(_because(EvidenceSource.METRICS), _because(EvidenceSource.TRACES, "E-2")),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def _experiment(verdict: ExperimentVerdict | None, n: int = 1) -> Experiment:
    return Experiment(
        id=f"X-{n}",
        cause="lock_contention",
        probe="process_stacks",
        node="gpu-1",
        args={},
        query=None,
        predicted=Localized.verbatim("waits in acquire"),
        would_refute=Localized.verbatim("no waits"),
        by="U0SRE",
        at=NOW,
        result=Localized.verbatim("waits") if verdict else None,
        verdict=verdict,
        evidence=("E-9",),
    )


def test_shipped_sop_has_no_fault_and_all_gates_have_a_rule() -> None:
    assert lint([shipped_sops()]) == []
    assert {rule for step in SOP.steps for rule in step.gate} == set(GateRule)


def test_faults_of_an_sop_file_name_their_line(tmp_path: Path) -> None:
    text = (shipped_sops() / "inference.yaml").read_text(encoding="utf-8")
    broken = text.replace("gate: [ranked]", "gate: [ranked, guessed]").replace(
        "    title: {en: Symptom, zh-CN: 现象确认}", "    title: {en: Symptom}\n    colour: red"
    )
    folder = tmp_path / "sops"
    folder.mkdir()
    path = folder / "inference.yaml"
    path.write_text(broken, encoding="utf-8")
    faults = [str(fault) for fault in lint([tmp_path])]
    lines = broken.split("\n")
    at = next(n for n, line in enumerate(lines, 1) if "guessed" in line)
    assert any(f.startswith(f"{path}:{at}: ") and "guessed" in f for f in faults)
    assert any("colour" in f for f in faults)
    assert any("zh-CN" in f for f in faults)
    with pytest.raises(ConfigError):
        load_sop([folder])
    path.write_text("id: [", encoding="utf-8")
    assert "no YAML" in str(lint([path])[0])


def test_symptom_gate_asks_for_figures_scope_and_time() -> None:
    vague = Symptom(id="S-1", summary=Localized.verbatim("it is slow"))
    asked = [item.en for item in missing(_incident(symptoms=(vague,)), SOP, "symptom")]
    assert len(asked) == 3
    assert "it is slow" in asked[0]
    whole = _incident(symptoms=(EXACT,), scope=Scope(nodes=("gpu-1",), is_confirmed=True))
    assert missing(whole, SOP, "symptom") == ()
    assert missing(_incident(), SOP, "symptom")[0].zh.startswith("用一句话")


def test_vague_title_is_a_headline_once_a_symptom_is_stated_exactly() -> None:
    def asked(*symptoms: Symptom) -> list[str]:
        found = missing(_incident(title="it is slow", symptoms=symptoms), SOP, "symptom")
        return [item.en for item in found if "figures" in item.en]

    headline = Symptom(id="S-1", summary=Localized.verbatim("it is slow"))
    assert len(asked(headline)) == 1
    assert asked(headline, replace(EXACT, id="S-2")) == []
    # What somebody states beside it needs its figures all the same.
    other = Symptom(id="S-3", summary=Localized.verbatim("answers are garbled"))
    assert "garbled" in asked(headline, replace(EXACT, id="S-2"), other)[0]
    assert len(asked(headline, other)) == 1


def test_information_gate_takes_any_answer_but_not_silence() -> None:
    half = _incident(sources={"metrics": SourceState.OK, "logs": SourceState.UNREACHABLE})
    assert "traces, events" in missing(half, SOP, "information")[0].en
    names = ("metrics", "logs", "traces", "events")
    whole = _incident(sources=dict.fromkeys(names, SourceState.UNREACHABLE))
    assert missing(whole, SOP, "information") == ()


def test_verification_gate_wants_the_leading_one_tested_and_a_contrary_result_weighed() -> None:
    base = _incident(hypotheses=(_hypothesis(), _hypothesis(NOT_ESTABLISHED)))
    assert len(missing(base, SOP, "verification")) == 1
    planned = replace(base, experiments=(_experiment(None),))
    assert len(missing(planned, SOP, "verification")) == 1
    contrary = replace(base, experiments=(_experiment(ExperimentVerdict.CONTRARY),))
    assert "contrary" in missing(contrary, SOP, "verification")[0].en
    struck = replace(
        contrary,
        hypotheses=(
            _hypothesis(status=HypothesisStatus.REJECTED),
            _hypothesis(NOT_ESTABLISHED),
        ),
    )
    assert missing(struck, SOP, "verification") == ()
    good = replace(base, experiments=(_experiment(ExperimentVerdict.AS_PREDICTED),))
    assert missing(good, SOP, "verification") == ()


def test_next_through_a_closed_gate_is_refused_and_pass_records_what_was_missing() -> None:
    incident = _incident(symptoms=(EXACT,))
    with pytest.raises(GateClosedError) as refused:
        drafts_for(Move.NEXT, incident, SOP, WHO)
    assert len(refused.value.missing) == 1
    with pytest.raises(CommandError):
        drafts_for(Move.PASS, incident, SOP, WHO)
    drafts = drafts_for(Move.PASS, incident, SOP, replace(WHO, reason="no time"))
    assert [d.kind for d in drafts] == [EntryKind.GATE, EntryKind.STEP, EntryKind.STEP]
    assert drafts[0].text.en == "no time"
    assert drafts[0].data["missing"][0]["zh-CN"]
    assert (drafts[1].data["op"], drafts[2].data["step"]) == ("passed", "information")


def test_back_and_skip_and_the_ends_of_the_walk() -> None:
    with pytest.raises(CommandError):
        drafts_for(Move.BACK, _incident(), SOP, WHO)
    back = drafts_for(Move.BACK, _incident("information"), SOP, WHO)
    assert [d.data["op"] for d in back] == ["back", "entered"]
    with pytest.raises(CommandError):
        drafts_for(Move.SKIP, _incident(), SOP, WHO)
    last = drafts_for(Move.SKIP, _incident("review"), SOP, replace(WHO, reason="drill"))
    assert [d.data["op"] for d in last] == ["skipped"]
    with pytest.raises(CommandError):
        drafts_for(Move.NEXT, _incident("", current_step=None), SOP, WHO)


def test_resolve_needs_a_reason_only_while_the_review_is_open() -> None:
    with pytest.raises(GateClosedError):
        resolve_gate(_incident("review"), SOP, WHO)
    kept = resolve_gate(_incident("review"), SOP, replace(WHO, reason="false alarm"))
    assert kept[0].kind is EntryKind.GATE
    fix = Fix(text=Localized.verbatim("pool"), by="U0SRE", at=NOW, verified=False)
    asked = missing(_incident("review", fix=fix), SOP, StepId.REVIEW)
    assert "still saw it" in asked[0].en


@pytest.mark.parametrize(
    ("hypothesis", "words"),
    [
        (_hypothesis(explains=()), "does not explain"),
        (_hypothesis(supports=()), "no evidence"),
        (_hypothesis(supports=(_because(EvidenceSource.METRICS),)), "moved together"),
        (_hypothesis(status=HypothesisStatus.REJECTED), "was rejected"),
    ],
    ids=["unexplained", "no_evidence", "co_movement", "rejected"],
)
def test_cause_that_may_not_be_confirmed_is_refused_with_the_reason(
    hypothesis: Hypothesis, words: str
) -> None:
    incident = _incident("root_cause", symptoms=(EXACT,), hypotheses=(hypothesis,))
    refusal = why_not(incident, hypothesis)
    assert refusal is not None
    assert words in refusal.en


def test_test_that_came_out_as_predicted_backs_what_only_moved_together() -> None:
    hypothesis = _hypothesis(supports=(_because(EvidenceSource.METRICS),))
    incident = _incident(
        symptoms=(EXACT,),
        hypotheses=(hypothesis,),
        experiments=(_experiment(ExperimentVerdict.AS_PREDICTED),),
    )
    assert why_not(incident, hypothesis) is None
    assert "E-9" in {item.ref for item in with_evidence(incident, hypothesis).supports}
    contrary = replace(
        incident,
        experiments=(*incident.experiments, _experiment(ExperimentVerdict.CONTRARY, 2)),
    )
    assert why_not(contrary, hypothesis) is not None


def test_not_established_claims_nothing_and_may_be_accepted() -> None:
    nothing = _hypothesis(NOT_ESTABLISHED, supports=(), explains=())
    assert why_not(_incident(hypotheses=(nothing,)), nothing) is None
