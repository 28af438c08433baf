"""What the doors of an exercise answer alike, whether a script or a saved case is played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from bot.cause import Catalogue
from bot.diagnosis.plan import is_heavy
from bot.domain.evidence import Sample
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.instant import Window


def moments(window: Window, step_seconds: float) -> list[datetime]:
    """The times of a range query, both ends included."""
    count = int(window.seconds // step_seconds) + 1
    return [window.start + timedelta(seconds=at * step_seconds) for at in range(count)]


def volume_of(query: str) -> str:
    """Which volume of logs a query asks for: lines or bytes of the service, or bytes of others on the node."""
    if query.startswith("sum by"):
        return "logs.bytes_others"
    return "logs.bytes" if "bytes" in query else "logs.lines"


def volume_samples(
    value: Callable[[datetime], float | None], window: Window, step_seconds: float
) -> tuple[Sample, ...]:
    """The samples of a volume; a log store leaves out what is zero."""
    return tuple(
        Sample(at=at, value=got) for at in moments(window, step_seconds) if (got := value(at))
    )


def probe_result(
    node: str,
    probe: str,
    now: datetime,
    *,
    status: ProbeStatus = ProbeStatus.OK,
    error: str | None = None,
    findings: Sequence[Finding] = (),
) -> ProbeResult:
    """What a node of the exercise answers."""
    return ProbeResult(
        probe=probe,
        node=node,
        status=status,
        started_at=now,
        duration_seconds=0.1,
        findings=tuple(findings),
        error=error,
    )


def not_played(node: str, probe: str, now: datetime) -> ProbeResult:
    """The answer of a node or for a probe that has no part in the exercise."""
    error = "not part of this exercise"
    return probe_result(node, probe, now, status=ProbeStatus.UNSUPPORTED, error=error)


def refused(node: str, probe: str, now: datetime, approved_by: str | None) -> ProbeResult | None:
    """The answer to a heavy probe without its approval; None where it may run."""
    if approved_by is not None or not is_heavy(probe):
        return None
    error = "needs an approval"
    return probe_result(node, probe, now, status=ProbeStatus.DENIED, error=error)


def clean_finding(catalogue: Catalogue, probe: str) -> Finding | None:
    """What a probe says of a node that is well; None where the catalogue knows no such word of it."""
    for item in catalogue.findings.values():
        if item.probe == probe and item.clean:
            return Finding(id=item.id, severity=FindingSeverity.INFO, summary=item.title.en)
    return None
