"""What an incident would change for the next one, and what came of the checks that earlier incidents left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.domain.text import Localized


class ProposalStatus(StrEnum):
    """The closed set of the JSON export."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    DECLINED = "declined"


class ProposalKind(StrEnum):
    """What a proposal is about: the team's knowledge, or (the last four) its monitoring."""

    CHECK = "check"
    THRESHOLD = "threshold"
    STEP = "step"
    SOURCE = "source"
    CAUSE = "cause"
    STALE = "stale"
    ALERT = "alert"
    METRIC = "metric"
    LOG = "log"
    TRACE = "trace"

    @property
    def is_monitoring(self) -> bool:
        """Whether it changes alerts, metrics, logs or traces and not the checklist."""
        return self in (
            ProposalKind.ALERT,
            ProposalKind.METRIC,
            ProposalKind.LOG,
            ProposalKind.TRACE,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistChange:
    """A proposed change: `diff` is a unified diff, `reason` why (or why not).

    checklist: the id of the checklist that it changes; `sops/<id>` for the SOP; `causes/<id>` or `monitoring/<name>`
    for a file of its own.
    why: the reason in both languages; None where its author took it back. by: who decided; None while it is proposed.
    is_edited: whether a person reworded it first.
    """

    n: int
    checklist: str
    diff: str
    reason: str | None = None
    status: ProposalStatus = ProposalStatus.PROPOSED
    kind: ProposalKind = ProposalKind.CHECK
    why: Localized | None = None
    by: str | None = None
    is_edited: bool = False


class CheckOutcome(StrEnum):
    """What a check came to. Only FOUND and CLEAN say that somebody looked."""

    FOUND = "found"
    CLEAN = "clean"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCheck:
    """One check as an incident's checklist holds it. learned_from: the incident that taught it, None for a shipped one.

    probe, query: what answers it by itself; neither for a question to people.
    """

    id: str
    step: str
    text: Localized
    learned_from: str | None = None
    probe: str | None = None
    query: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What a timeline entry carries."""
        return {
            "id": self.id,
            "step": self.step,
            "text": self.text.to_json(),
            "learned_from": self.learned_from,
            "probe": self.probe,
            "query": self.query,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ListedCheck:
        """Reads `to_json`'s shape."""
        return cls(
            id=value["id"],
            step=value["step"],
            text=Localized.from_json(value["text"]),
            learned_from=value.get("learned_from"),
            probe=value.get("probe"),
            query=value.get("query"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedChecklist:
    """The checklist that an incident works with; `version` is 0 for the file without accepted changes."""

    id: str
    title: Localized
    version: int
    checks: tuple[ListedCheck, ...]

    def to_json(self) -> dict[str, Any]:
        """What a timeline entry carries."""
        return {
            "id": self.id,
            "title": self.title.to_json(),
            "version": self.version,
            "checks": [item.to_json() for item in self.checks],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> UsedChecklist:
        """Reads `to_json`'s shape."""
        return cls(
            id=value["id"],
            title=Localized.from_json(value["title"]),
            version=int(value["version"]),
            checks=tuple(ListedCheck.from_json(item) for item in value["checks"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedProcedure:
    """The SOP that an incident follows. version: of the accepted changes; learned: incidents whose prompts it shows."""

    sop: str
    version: int
    learned: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What a timeline entry carries."""
        return {"sop": self.sop, "version": self.version, "learned": list(self.learned)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> UsedProcedure:
        """Reads `to_json`'s shape."""
        return cls(
            sop=value["sop"],
            version=int(value["version"]),
            learned=tuple(str(item) for item in value.get("learned") or ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One check of a checklist in one incident.

    item: its id in the checklist. learned_from: the incident whose accepted change brought it, None for a shipped one.
    version: of the checklist when it ran, 0 for the file without changes. by: who answered; the bot for a probe or a
    query.
    """

    checklist: str
    item: str
    version: int
    text: Localized
    outcome: CheckOutcome
    summary: Localized
    by: str
    at: datetime
    learned_from: str | None = None
    probe: str | None = None
    query: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What a timeline entry carries."""
        return {
            "checklist": self.checklist,
            "item": self.item,
            "version": self.version,
            "text": self.text.to_json(),
            "outcome": self.outcome.value,
            "summary": self.summary.to_json(),
            "by": self.by,
            "at": to_rfc3339(self.at),
            "learned_from": self.learned_from,
            "probe": self.probe,
            "query": self.query,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CheckRun:
        """Reads `to_json`'s shape."""
        return cls(
            checklist=value["checklist"],
            item=value["item"],
            version=int(value["version"]),
            text=Localized.from_json(value["text"]),
            outcome=CheckOutcome(value["outcome"]),
            summary=Localized.from_json(value["summary"]),
            by=value["by"],
            at=parse_rfc3339(value["at"]),
            learned_from=value.get("learned_from"),
            probe=value.get("probe"),
            query=value.get("query"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How often a check was due in an incident, by what it came to."""

    counts: Mapping[CheckOutcome, int] = field(default_factory=dict)

    @property
    def incidents(self) -> int:
        """In how many incidents it was due and could be answered: what could not look says nothing."""
        return sum(n for outcome, n in self.counts.items() if outcome is not CheckOutcome.UNKNOWN)

    @property
    def found(self) -> int:
        """How often it found something."""
        return self.counts.get(CheckOutcome.FOUND, 0)


class VersionOp(StrEnum):
    """How a version came about."""

    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One accepted change of a knowledge file, or the return to an earlier version.

    path: of the file, relative to the knowledge folder (`checklists/inference-latency.yaml`).
    number: from 1, without gaps. diff: against the version before; empty for a return.
    why: the reason in both languages, where the bot gave it. incident, change: the proposal that it comes from. to: the version that a return goes back to, 0 for the file.
    """

    path: str
    number: int
    op: VersionOp
    by: str
    at: datetime
    reason: str
    diff: str = ""
    incident: str | None = None
    change: int | None = None
    to: int | None = None
    why: Localized | None = None

    def to_json(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "path": self.path,
            "number": self.number,
            "op": self.op.value,
            "by": self.by,
            "at": to_rfc3339(self.at),
            "reason": self.reason,
            "diff": self.diff,
            "incident": self.incident,
            "change": self.change,
            "to": self.to,
            "why": self.why.to_json() if self.why else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Version:
        """Reads `to_json`'s shape."""
        return cls(
            path=value["path"],
            number=int(value["number"]),
            op=VersionOp(value["op"]),
            by=value["by"],
            at=parse_rfc3339(value["at"]),
            reason=value["reason"],
            diff=value.get("diff") or "",
            incident=value.get("incident"),
            change=value.get("change"),
            to=value.get("to"),
            why=Localized.from_json(value["why"]) if value.get("why") else None,
        )
