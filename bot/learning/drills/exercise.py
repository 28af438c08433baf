"""An exercise as an incident: which evidence it plays, since when it is over, and what stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from bot.diagnosis.request import DiagnosisPorts
from bot.domain.incident import Incident
from bot.domain.precedent import Drill
from bot.learning.case_folder import read_case
from bot.learning.cases import Case
from bot.learning.drills.playing import ports_of
from bot.learning.drills.recorded import recorded_ports
from bot.learning.drills.script import Stage
from bot.learning.drills.writing import write_script

SERVICE = "training-api"
NODE = "training-1"
_PEER = "feature-store"


def saved_cases(knowledge: Path | None) -> dict[str, Path]:
    """The team's saved cases by name: the directories under `cases/` of the knowledge folder."""
    folder = knowledge / "cases" if knowledge is not None else None
    if folder is None or not folder.is_dir():
        return {}
    return {
        path.name: path
        for path in sorted(folder.iterdir())
        if any((path / f"case.json{end}").is_file() for end in ("", ".gz", ".xz"))
    }


@lru_cache(maxsize=4)
def load_case(path: Path) -> Case:
    """A saved case, read once.

    Raises:
        BotError: not in shape.
    """
    return read_case(path)


def recovered_at(incident: Incident) -> datetime | None:
    """Since when the played fault is gone: a fix helps only where the confirmed cause is the one that is played.

    A mitigation helps whatever the cause, as a restart or a rollback does.
    """
    drill, root = incident.drill, incident.root_cause
    moments = [item.at for item in incident.mitigations[:1]]
    if drill is not None and root is not None and incident.fix is not None:
        known = {root.cause, *root.chain}
        if drill.cause in known:
            moments.append(incident.fix.at)
    return min(moments, default=None)


def exercise_ports(
    real: DiagnosisPorts, incident: Incident, clock: Callable[[], datetime], knowledge: Path | None
) -> DiagnosisPorts:
    """The doors of an incident: the real ones, or those of the exercise that it is.

    Raises:
        BotError: the saved case that it replays cannot be read.
    """
    drill = incident.drill
    if drill is None:
        return real
    recovered = recovered_at(incident)
    path = saved_cases(knowledge).get(drill.case) if drill.case else None
    if path is not None:
        return recorded_ports(
            load_case(path), real, began=incident.opened_at, recovered=recovered, clock=clock
        )
    cause = real.catalogue.causes.get(drill.cause)
    if cause is None:
        # Taken out of the catalogue since: an exercise never falls back on the real sources.
        return replace(
            real, metrics=None, logs=None, traces=None, changes=None, cluster=None, probes=None
        )
    stage = stage_of(incident, drill, real, recovered)
    return ports_of(write_script(cause, real.catalogue, stage), stage, real, clock)


def stage_of(
    incident: Incident, drill: Drill, real: DiagnosisPorts, recovered: datetime | None
) -> Stage:
    """Where a generated exercise takes place: the names are real ones, so that the responder knows them."""
    service = real.service(incident.service or SERVICE)
    return Stage(
        service=service.name,
        nodes=service.nodes or (NODE,),
        peers=service.depends_on or (_PEER,),
        matchers=service.selectors,
        began=incident.opened_at,
        recovered=recovered,
        seed=drill.seed,
    )
