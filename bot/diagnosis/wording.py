"""Sentences about observations and findings, in both languages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from bot.cause import EPOCH, KnownFinding, Movement
from bot.diagnosis.observation import Observation
from bot.domain.change import Change
from bot.domain.evidence import NOT_CONFIGURED, Evidence, EvidenceSource, Gap, digest_of
from bot.domain.finding import UNANSWERED, Finding, ProbeResult, ProbeStatus
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.errors import Reason
from bot.locales import say

_SOURCES = {
    "metrics": EvidenceSource.METRICS,
    "logs": EvidenceSource.LOGS,
    "traces": EvidenceSource.TRACES,
}

_REASONS = tuple(reason.value for reason in Reason)

_UNCHANGED = 1.1
"""A level within a tenth of what it was is told as unchanged, unless its signal has a finer mark. Basis: judgement."""

_MOVES = frozenset({Movement.UP, Movement.DOWN, Movement.CHANGED, Movement.STOPPED})


def quantity(value: float, unit: str) -> str:
    """A number with its unit as people write it.

    >>> quantity(0.0123, "s"), quantity(0.25, "ratio"), quantity(3e9, "bytes")
    ('12.3 ms', '25 %', '3 GB')
    >>> quantity(1_793_387_531.0, "epoch")
    '2026-10-30 18:32:11Z'
    """
    if unit == EPOCH:
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S}Z"
    if unit == "ratio":
        return f"{_round(value * 100)} %"
    if unit == "percent":
        return f"{_round(value)} %"
    if unit == "s" and abs(value) < 1:
        return f"{_round(value * 1000)} ms"
    if unit in ("bytes", "bytes/s"):
        for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
            if abs(value) >= size:
                return f"{_round(value / size)} {name}{unit[5:]}"
        return f"{_round(value)} B{unit[5:]}"
    return f"{_round(value)} {unit}" if unit != "celsius" else f"{_round(value)} °C"


def is_unchanged(observation: Observation) -> bool:
    """Whether a reading stands where it stood, so that it is told "as before"."""
    step = observation.signal.ratio
    least = min(_UNCHANGED, step if step >= 1 else 1 / max(step, 1e-9))
    return observation.moved(ratio=least) is Movement.FLAT


def describe(observation: Observation, *, told: Movement | None = None) -> Localized:
    """One sentence: which signal of whom, from where to where, since when.

    told: what a test found by marks of its own: a move finer than the signal's, growth over more than the window, or
        a level (`ABOVE`, `BELOW`) where the time before is no measure; None compares by the signal's marks.
    """
    unit = observation.signal.unit
    entity = f" ({observation.entity.label})" if observation.entity.label else ""
    if observation.ended:
        return say("diagnosis.observation.ended", signal=observation.signal.title, entity=entity)
    if _is_idle(observation):
        return say("diagnosis.observation.idle", signal=observation.signal.title, entity=entity)
    if observation.during is None:
        return say("diagnosis.observation.unknown", signal=observation.signal.title, entity=entity)
    now: str | Localized = quantity(observation.during.middle, unit)
    if observation.is_capped and observation.beyond is not None:
        largest, share = observation.beyond
        now = say(
            "diagnosis.observation.beyond",
            now=quantity(largest, unit),
            share=quantity(share, "ratio"),
        )
    if observation.before is None:
        return say(
            "diagnosis.observation.new", signal=observation.signal.title, entity=entity, now=now
        )
    if told is Movement.RISING and observation.growth is not None:
        grown = quantity(observation.growth[0], unit)
        return say(
            "diagnosis.observation.growing",
            signal=observation.signal.title, entity=entity, now=now, grown=grown,
        )  # fmt: skip
    if told not in _MOVES and is_unchanged(observation):
        key = "flat" if told is None else "level"
        return say(
            f"diagnosis.observation.{key}",
            signal=observation.signal.title, entity=entity, now=now,
        )  # fmt: skip
    then = quantity(observation.before.middle, unit)
    since = f"{observation.onset.end:%H:%M:%S}Z" if observation.onset else ""
    key = "diagnosis.observation.moved_since" if since else "diagnosis.observation.moved"
    return say(
        key, signal=observation.signal.title, entity=entity, before=then, now=now, since=since
    )


def _is_idle(observation: Observation) -> bool:
    """Whether a quantile or a mean per request has samples but never a value: there was nothing to measure."""
    series = observation.series
    per_request = "histogram_quantile(" in observation.query or " / " in observation.query
    return bool(per_request and not observation.samples and series and series.samples)


def describe_standing(observation: Observation, usual: tuple[float, float]) -> Localized:
    """One sentence about a level that has been wrong for longer than the window."""
    unit = observation.signal.unit
    now = observation.during.middle if observation.during else 0.0
    return say(
        "diagnosis.observation.standing",
        signal=observation.signal.title,
        now=quantity(now, unit),
        low=quantity(usual[0], unit),
        high=quantity(usual[1], unit),
    )


def describe_beside(observation: Observation, peers: tuple[float, float]) -> Localized:
    """One sentence about a part that has no time before, beside its peers."""
    unit = observation.signal.unit
    return say(
        "diagnosis.observation.beside",
        signal=observation.signal.title,
        entity=f" ({observation.entity.label})" if observation.entity.label else "",
        now=quantity(observation.during.middle if observation.during else 0.0, unit),
        low=quantity(peers[0], unit),
        high=quantity(peers[1], unit),
    )


def evidence_of(
    observation: Observation, *, abnormal: bool, told: Movement | None = None
) -> Evidence:
    """The citation of an observation; `told` as in `describe`."""
    during, before = observation.during, observation.before
    return Evidence(
        source=_SOURCES[observation.source],
        plugin=observation.signal.name,
        summary=describe(observation, told=told),
        query=observation.query,
        window=observation.window,
        samples=observation.samples,
        digest=digest_of(
            [
                observation.entity.node,
                observation.entity.part,
                _stable(before.middle if before else None),
                _stable(during.middle if during else None),
                observation.samples,
            ]
        ),
        node=observation.entity.node or None,
        component=observation.entity.part or None,
        is_abnormal=abnormal,
    )


def evidence_of_finding(
    result: ProbeResult, finding: Finding | None, known: KnownFinding | None, service: str
) -> Evidence:
    """The citation of a probe's finding, or of a probe that looked and did not report it."""
    when = Window(result.started_at, result.started_at)
    if finding is None:
        summary = say("diagnosis.finding.absent", probe=result.probe, node=result.node)
    else:
        title = known.title if known else Localized.verbatim(finding.id)
        summary = say(
            "diagnosis.finding.found", title=title, node=result.node, said=finding.summary
        )
    return Evidence(
        source=EvidenceSource.PROBE,
        plugin=result.probe,
        summary=summary,
        query=f"{result.probe} on {result.node}",
        window=when,
        samples=1,
        digest=digest_of([item.to_json() for item in result.findings]),
        node=result.node,
        component=service,
        finding=finding.id if finding else None,
        is_abnormal=finding is not None and not (known is not None and known.clean),
    )


def finding_words(finding: Finding, known: KnownFinding | None) -> Localized:
    """What a finding says. Probes speak English alone, so the Chinese wording begins with the finding's title."""
    said = finding.summary or finding.id
    return Localized(said, f"{known.title.zh}（{said}）") if known else Localized.verbatim(said)


def gap_of(result: ProbeResult) -> str:
    """Why a run brought no reading, as one word: a `Reason` where no agent answered, else the run's own status."""
    told = result.data.get(UNANSWERED)
    return str(told) if told in _REASONS else result.status.value


def not_read(result: ProbeResult) -> Localized:
    """Why a run brought no reading, with what was said about it."""
    why = say(f"diagnosis.unread.{gap_of(result)}")
    return say("diagnosis.unread_because", why=why, detail=result.error or result.probe)


def shared_gap(results: Sequence[ProbeResult]) -> str:
    """`gap_of` all runs where it is the same for each; empty where they differ or nothing ran."""
    gaps = {gap_of(result) for result in results}
    is_shared = len(gaps) == 1 and all(item.status is not ProbeStatus.OK for item in results)
    return gaps.pop() if is_shared else ""


def not_answered(gap: Gap | None) -> Localized:
    """Why a source said nothing at all; None where no gap was kept."""
    if gap is not None and gap.reason == NOT_CONFIGURED:
        return say("diagnosis.blind.not_configured")
    return say("diagnosis.blind.unreachable", detail=gap.detail if gap else "–")


def change_text(change: Change) -> str:
    """Everything that a change says, for patterns."""
    details = " ".join(f"{key} {value}" for key, value in sorted(change.details.items()))
    return f"{change.kind.value} {change.summary} {details}"


def evidence_of_change(change: Change) -> Evidence:
    """The citation of a change."""
    return Evidence(
        source=EvidenceSource.EVENTS,
        plugin="changes",
        summary=say(
            "diagnosis.change.found",
            id=change.id,
            kind=Localized.verbatim(change.kind.value),
            summary=change.summary,
            at=f"{change.at:%Y-%m-%d %H:%M:%S}Z",
        ),
        query=f"change {change.id}",
        window=Window(change.at, change.at),
        samples=1,
        digest=digest_of(change.to_json()),
        component=change.service,
    )


def _stable(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"


def _round(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
