"""What commands and background work stand on, wired once by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.cause import Catalogue
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.incident import Incident
from bot.exporter import Exporter
from bot.incidents.checklists import Checklists
from bot.incidents.journal import Journal
from bot.incidents.knowledge import Knowledge
from bot.incidents.opening import Openings
from bot.incidents.responding import Responding
from bot.incidents.shelf import Shelf
from bot.inventory import Inventory
from bot.jobs.outbox import Outbox
from bot.learning.archive import Archive
from bot.learning.drills.exercise import exercise_ports
from bot.learning.members import Members, NobodyKnown
from bot.settings import Settings
from bot.sop import Sop
from bot.store.queue import Queue
from bot.store.transaction import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """One deployment's parts. `clock` answers aware UTC time; `wake` makes the worker look for new jobs at once.

    knowledge: the SOP and the causes that count, refreshed before something is decided by them.
    archive: all incidents as later ones see them. shelf: the checklists as they count now. members: who may read which channel.
    """

    settings: Settings
    clock: Callable[[], datetime]
    store: Store
    queue: Queue
    inventory: Inventory
    journal: Journal
    openings: Openings
    responding: Responding
    outbox: Outbox
    ports: DiagnosisPorts
    knowledge: Knowledge
    exporters: Mapping[str, Exporter]
    wake: Callable[[], None]
    archive: Archive
    shelf: Shelf
    checklists: Checklists
    members: Members = field(default_factory=NobodyKnown)

    @property
    def catalogue(self) -> Catalogue:
        """The causes as they were known at the last look."""
        return self.knowledge.catalogue

    @property
    def sop(self) -> Sop:
        """The procedure as it was known at the last look."""
        return self.knowledge.sop

    def ports_of(self, incident: Incident) -> DiagnosisPorts:
        """Where the engine looks for this incident: the real sources, or what its exercise plays.

        Raises:
            BotError: the saved case of an exercise cannot be read.
        """
        ports = replace(self.ports, catalogue=self.catalogue)
        return exercise_ports(ports, incident, self.clock, self.settings.knowledge_dir)
