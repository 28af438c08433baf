"""What a diagnosis is asked, and the doors through which it may look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.cause import Catalogue
from bot.domain.hypothesis import Symptom
from bot.inventory import Inventory, Service
from bot.source import (
    ChangeStore,
    EventsSource,
    LogsSource,
    MetricsSource,
    ProbeRunner,
    SilencesSource,
    TracesSource,
)

CHANGES_BACK_SECONDS = 7 * 86_400.0
"""How far back changes are searched unless somebody asks for more: a weekly release is in it. Basis: design rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRequest:
    """One question to the engine.

    at: the moment that is asked about; nothing after it is read.
    window_seconds: how far back the incident may have begun.
    symptoms: what people declared; the engine adds what it sees itself.
    labels: of the alert; a node that they name wins where two nodes look equally guilty.
    allow_heavy / approver: heavy probes run only with both.
    subject: who asked, for the agents' audit.
    deadline_seconds: for the whole of the collection.
    changes_back_seconds: how far back changes are searched.
    """

    service: str
    at: datetime
    window_seconds: float = 3_600.0
    symptoms: tuple[Symptom, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    allow_heavy: bool = False
    approver: str | None = None
    subject: str = "system"
    deadline_seconds: float = 8.0
    changes_back_seconds: float = CHANGES_BACK_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisPorts:
    """Where the engine looks; a source that is not configured is None and counts as not looked at.

    cluster: events that the cluster itself records, beside the changes that people announce.
    silences: which alerts are silenced at their sender; no evidence, the engine does not ask it.
    """

    inventory: Inventory
    catalogue: Catalogue
    clock: Callable[[], datetime]
    metrics: MetricsSource | None = None
    logs: LogsSource | None = None
    traces: TracesSource | None = None
    changes: ChangeStore | None = None
    cluster: EventsSource | None = None
    probes: ProbeRunner | None = None
    silences: SilencesSource | None = None

    def service(self, name: str) -> Service:
        """The inventory's entry, or a bare one when the service is not listed."""
        return self.inventory.services.get(name) or Service(name=name)
