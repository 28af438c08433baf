"""The contract of a probe: one read-only look at a node, described by a value and run in a child process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from bot.argument import Argument, Arguments
from bot.device.artefact import ArtefactFolder
from bot.device.cgroup import CgroupTree
from bot.device.field import plain
from bot.device.proc import ProcRoot
from bot.device.service import ServiceTarget, find_processes
from bot.domain.finding import Finding, FindingSeverity, ProbeStatus
from bot.errors import ProbeError, Reason

T = TypeVar("T")


class Cost(StrEnum):
    """What a run costs the node, and so what it needs: nothing, a rate limit, a person's approval."""

    CHEAP = "cheap"
    MODERATE = "moderate"
    HEAVY = "heavy"


@dataclass(frozen=True, slots=True)
class Sampled(Generic[T]):
    """The same thing read twice, `seconds` apart by the monotonic clock."""

    before: T
    after: T
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeContext:
    """All that a probe may touch. Time is handed in; paths are configured; services are the node's own.

    `wait` sleeps; `monotonic` and `now` are seconds (`now` since the Unix epoch). `mark` tells the runner what is
    about to be read, so that a call that never returns can be named; `skipped` holds what an earlier child hung on.
    `artefacts` is set for a probe that declares to leave a file.
    """

    proc: ProcRoot
    sys_root: Path
    nvml_library: str = ""
    cuda_library: str = ""
    kernel_log: Path = Path("/dev/kmsg")
    package_log: Path = Path("/var/log/apt/history.log")
    services: Mapping[str, ServiceTarget] = field(default_factory=dict)
    artefacts: ArtefactFolder | None = None
    wait: Callable[[float], None]
    monotonic: Callable[[], float]
    now: Callable[[], float]
    mark: Callable[[str], None] = lambda _what: None
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def cgroups(self) -> CgroupTree:
        """The cgroup tree of this node."""
        return CgroupTree(self.sys_root)

    def service(self, name: str) -> ServiceTarget:
        """The service's own configuration on this node.

        Raises:
            ProbeError: `unsupported` when this node has no such service.
        """
        target = self.services.get(name)
        if target is None:
            raise ProbeError(
                "service is not mapped in the agent configuration; add [services.<name>] on this node",
                reason=Reason.UNSUPPORTED,
            )
        return target

    def members(self) -> Mapping[str, tuple[int, ...]]:
        """Process ids by service, for the services of this node that run now."""
        found: dict[str, tuple[int, ...]] = {}
        for name, target in self.services.items():
            with contextlib.suppress(ProbeError):
                found[name] = tuple(task.pid for task in find_processes(self.proc, target))
        return found

    def sample_twice(self, read: Callable[[], T], window_seconds: float) -> Sampled[T]:
        """Reads, waits, reads again."""
        start = self.monotonic()
        before = read()
        self.wait(window_seconds)
        after = read()
        return Sampled(before, after, max(1e-6, self.monotonic() - start))


_UNIT_SUFFIX = {"ratio": "ratio", "s": "seconds", "MB/s": "megabytes_per_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a probe measured. `status` is other than `OK` when it could tell why it could not look.

    `not_checked` lists what it could not judge and why; where it is not empty the probe must not report its
    `*.ok` finding.
    """

    findings: tuple[Finding, ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)
    not_checked: tuple[str, ...] = ()
    status: ProbeStatus = ProbeStatus.OK
    error: str | None = None

    def wire_data(self) -> dict[str, Any]:
        """`data` in JSON's own types, with the findings' figures beside it under their own names."""
        whole: dict[str, Any] = {"finding_count": len(self.findings)}
        for finding in self.findings:
            if isinstance(finding.value, (int, float)):
                suffix = _UNIT_SUFFIX.get(finding.unit or "", "value")
                whole.setdefault(f"{finding.id.partition('.')[2]}_{suffix}", finding.value)
        whole.update(plain(self.data))  # type: ignore[call-overload]
        if self.not_checked:
            whole["partial"] = True
            whole["not_checked"] = list(self.not_checked)
        return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe's description and the function that looks.

    `findings` are all ids that it can report; `needs` says in words what it stands on; `serial_group` names what
    may run only one at a time on a node; `deadline_seconds` is the default time limit; `makes_artefact` lets its
    process write files, bounded, into the agent's own folder.
    """

    name: str
    summary: str
    cost: Cost
    findings: tuple[str, ...]
    look: Callable[[ProbeContext, Arguments], Reading]
    arguments: tuple[Argument, ...] = ()
    needs: tuple[str, ...] = ()
    serial_group: str | None = None
    deadline_seconds: float = 5.0
    makes_artefact: bool = False

    def accept(self, raw: Mapping[str, object]) -> Arguments:
        """Checks what a caller sent.

        Raises:
            ProbeError: `malformed`, with every fault in one line.
        """
        known = {argument.name: argument for argument in self.arguments}
        faults = [
            f"argument {name[:40]!r} is not known to {self.name}"
            for name in raw
            if name not in known
        ]
        values: dict[str, object] = {}
        for name, argument in known.items():
            if raw.get(name) is None:
                if argument.is_required:
                    faults.append(f"argument {name} is missing")
                elif argument.default is not None:
                    values[name] = argument.default
                continue
            try:
                values[name] = argument.accept(raw[name])
            except ProbeError as fault:
                faults.append(str(fault))
        if faults:
            raise ProbeError("; ".join(faults), reason=Reason.MALFORMED)
        return Arguments(values)

    def time_limit(self, arguments: Arguments) -> float:
        """Seconds that a run with these arguments may take unless the caller says otherwise."""
        return self.deadline_seconds + sum(
            item.unit_seconds * max(0.0, arguments.number(item.name) - float(item.default or 0))
            for item in self.arguments
            if item.unit_seconds and item.name in arguments.values
        )

    def catalogue_entry(self) -> dict[str, Any]:
        """The probe as `GET /v1/probes` lists it."""
        return {
            "name": self.name,
            "summary": self.summary,
            "cost": self.cost.value,
            "args": {
                "type": "object",
                "properties": {argument.name: argument.schema() for argument in self.arguments},
                "required": [item.name for item in self.arguments if item.is_required],
                "additionalProperties": False,
            },
            "needs": list(self.needs),
            "findings": list(self.findings),
            "deadline_s": self.deadline_seconds,
        }


def describe(
    *,
    summary: str,
    cost: Cost,
    findings: tuple[str, ...],
    arguments: tuple[Argument, ...] = (),
    needs: tuple[str, ...] = (),
    serial_group: str | None = None,
    deadline_seconds: float = 5.0,
    makes_artefact: bool = False,
) -> Callable[[Callable[[ProbeContext, Arguments], Reading]], Probe]:
    """Turns a look function into a `Probe` of the same name; it registers nothing."""

    def wrap(look: Callable[[ProbeContext, Arguments], Reading]) -> Probe:
        return Probe(
            name=look.__name__,
            summary=summary,
            cost=cost,
            findings=findings,
            look=look,
            arguments=arguments,
            needs=needs,
            serial_group=serial_group,
            deadline_seconds=deadline_seconds,
            makes_artefact=makes_artefact,
        )

    return wrap


def info(finding_id: str, summary: str) -> Finding:
    """A finding that says checked and clean, or something worth knowing that is no fault."""
    return Finding(id=finding_id, severity=FindingSeverity.INFO, summary=summary)


def warning(
    finding_id: str, summary: str, *, value: float, unit: str, threshold: float | None
) -> Finding:
    """A finding whose figure went past its threshold."""
    return Finding(
        id=finding_id,
        severity=FindingSeverity.WARNING,
        summary=summary,
        value=round(value, 4),
        unit=unit,
        threshold=threshold,
    )


def critical(
    finding_id: str, summary: str, *, value: float, unit: str, threshold: float | None
) -> Finding:
    """As `warning`, for what cannot go on like this."""
    return replace(
        warning(finding_id, summary, value=value, unit=unit, threshold=threshold),
        severity=FindingSeverity.CRITICAL,
    )
