"""What people wrote and named themselves, in the place of what was compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.domain.incident import Incident
from bot.domain.postmortem import Judgement, JudgementTopic, MonitoringChange, MonitoringKind
from bot.domain.report_news import Written


def as_people_left_it(
    incident: Incident,
    words: Mapping[JudgementTopic, Written],
    named: Mapping[str, tuple[str, ...]],
    measured: Mapping[str, tuple[str, ...]],
) -> Incident:
    """The incident with what people wrote and named themselves in the place of what was compiled.

    measured: experiment id to the entries that hold its readings; they count where nothing else is cited.
    """
    root, fix = incident.root_cause, incident.fix
    prevention = words.get(JudgementTopic.PREVENTION)
    if root is not None and prevention is not None and prevention.text is not None:
        root = replace(root, prevention=prevention.text)
    if fix is not None:
        fix = replace(fix, evidence=with_named(fix.evidence, named.get("fix")))
    tests = tuple(
        replace(
            item,
            evidence=with_named(
                item.evidence or measured.get(item.id, ()), named.get(f"experiment:{item.id}")
            ),
        )
        for item in incident.experiments
    )
    return replace(incident, root_cause=root, fix=fix, experiments=tests)


def with_named(cited: Sequence[str], named: Sequence[str] | None) -> tuple[str, ...]:
    """What is cited already and what people named, each once."""
    return tuple(dict.fromkeys((*cited, *(named or ()))))


def judgement(
    topic: JudgementTopic,
    words: Mapping[JudgementTopic, Written],
    directory: Mapping[str, str],
) -> Judgement:
    """One section of people, with its author by name."""
    found = words.get(topic)
    if found is None or found.text is None:
        return Judgement(topic=topic)
    return Judgement(
        topic=topic, answer=found.text, by=directory.get(found.by, found.by), at=found.at
    )


def monitoring(incident: Incident) -> tuple[MonitoringChange, ...]:
    """The proposed changes of alerts, metrics, logs and traces, and what people decided."""
    kinds = {item.value for item in MonitoringKind}
    return tuple(
        MonitoringChange(
            n=item.n,
            kind=MonitoringKind(item.kind.value),
            diff=item.diff,
            reason=item.reason,
            status=item.status,
        )
        for item in sorted(incident.monitoring_changes, key=lambda item: item.n)
        if item.kind.value in kinds
    )
