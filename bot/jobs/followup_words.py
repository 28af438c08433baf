"""What each kind of follow-up says, and what it has to look at before it can say it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.diagnosis.recovery import SymptomCheck, SymptomState, check_symptom
from bot.domain.alert import AlertStatus
from bot.domain.incident import Incident, IncidentStatus
from bot.domain.instant import Window
from bot.domain.text import Localized, listed
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.errors import EvidenceError
from bot.incidents.due import MOST, Due, FollowupKind, due_at, open_items, unreachable
from bot.jobs import requests
from bot.jobs.charting import request_of
from bot.jobs.services import Services
from bot.locales import say
from bot.store import index
from bot.store.queue import Job

ASK_SECONDS = 5.0
CHECK_WINDOW_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a follow-up says. drafts and jobs: what is written and queued with it; data: of its timeline entry."""

    text: Localized
    reminder: Localized | None = None
    asks_lead: bool = False
    drafts: tuple[Draft, ...] = ()
    jobs: tuple[Job, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


class Wording:
    """Makes the words of follow-ups; None where there is nothing to say yet."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._makers: Mapping[FollowupKind, Callable[[Incident, Due], Awaitable[Told | None]]] = {
            FollowupKind.UNACKNOWLEDGED: self._unacknowledged,
            FollowupKind.STEP_IDLE: self._step_idle,
            FollowupKind.SOURCE_BACK: self._source_back,
            FollowupKind.SYMPTOM: self._symptom,
            FollowupKind.RECURRENCE: self._recurrence,
            FollowupKind.REPORT_DUE: self._report_due,
            FollowupKind.ACTION_DUE: self._action_due,
        }

    async def tell(self, incident: Incident, due: Due) -> Told | None:
        """The words, after a look where the kind needs one; every look has a deadline."""
        return await self._makers[due.kind](incident, due)

    async def _unacknowledged(self, incident: Incident, due: Due) -> Told:
        text = say(
            "followup.unacknowledged",
            incident=incident.id,
            minutes=self._minutes_since(incident.opened_at),
            title=incident.title,
        )
        return Told(text=text, reminder=_reminder(due))

    async def _step_idle(self, incident: Incident, due: Due) -> Told:
        step = self._services.sop.step(incident.current_step or "")
        if incident.status is IncidentStatus.RECOVERED:
            text = say("followup.step_idle_recovered", incident=incident.id)
        elif step is None:
            text = say("followup.step_idle_done", incident=incident.id)
        else:
            minutes = self._minutes_since(incident.active_at or incident.opened_at)
            text = say("followup.step_idle", incident=incident.id, step=step.title, minutes=minutes)
        return Told(text=text, reminder=_reminder(due), asks_lead=True)

    async def _source_back(self, incident: Incident, _: Due) -> Told | None:
        back = [name for name in unreachable(incident) if await self._answers(name)]
        if not back:
            return None
        text = say("followup.source_back", sources=listed(back))
        search = requests.collect(incident.id, reason="asked", by=SYSTEM_AUTHOR)
        return Told(text=text, jobs=(search,), data={"sources": back})

    async def _answers(self, name: str) -> bool:
        """Whether a source takes a small question now."""
        ports = self._services.ports
        now = self._services.clock()
        window = Window.before(now, 60.0)
        try:
            match name:
                case "metrics" if ports.metrics is not None:
                    await ports.metrics.instant("vector(1)", now, timeout_seconds=ASK_SECONDS)
                case "logs" if ports.logs is not None:
                    query = '{rca_bot_probe="none"}'
                    await ports.logs.lines(query, window, limit=1, timeout_seconds=ASK_SECONDS)
                case "traces" if ports.traces is not None:
                    await ports.traces.spans(
                        "rca-bot", window, limit=1, timeout_seconds=ASK_SECONDS
                    )
                case "probes" if ports.probes is not None:
                    return await self._any_agent_answers()
                case _:
                    return False
        except EvidenceError:
            return False
        return True

    async def _any_agent_answers(self) -> bool:
        runner = self._services.ports.probes
        for node in self._services.inventory.nodes.values():
            if runner is None or node.url is None:
                continue
            result = await runner.run(
                node.name, "host_cpu", {}, subject="system", timeout_seconds=ASK_SECONDS
            )
            if result.status.value in ("ok", "unsupported", "denied"):
                return True
        return False

    async def _symptom(self, incident: Incident, due: Due) -> Told:
        fix = incident.fix
        since = fix.at if fix else incident.opened_at
        check = await self._check(incident, since)
        word = {SymptomState.CLEARED: "gone", SymptomState.FOUND: "stays"}.get(
            check.state, "unseen"
        )
        text = say(
            f"followup.symptom_{word}",
            incident=incident.id,
            minutes=self._minutes_since(since),
            detail=check.summary,
        )
        now = self._services.clock()
        is_gone = {SymptomState.CLEARED: True, SymptomState.FOUND: False}.get(check.state)
        found = Draft(
            kind=EntryKind.EVIDENCE,
            at=now,
            text=check.summary,
            source="engine",
            data={"evidence": [item.to_json() for item in check.evidence]},
        )
        verified = Draft(
            kind=EntryKind.ACTION,
            at=now,
            text=text,
            source="engine",
            data={
                "op": "verified",
                "verified": is_gone,
                "evidence": [item.id for item in check.evidence],
            },
        )
        drafts = (found, verified) if check.evidence else (verified,)
        reminder = None if is_gone else _reminder(due)
        return Told(text=text, reminder=reminder, asks_lead=not is_gone, drafts=drafts)

    async def _recurrence(self, incident: Incident, _: Due) -> Told:
        resolved_at = incident.resolved_at or incident.opened_at
        details = await self._signs(incident)
        check = await self._check(incident, resolved_at)
        if details or check.state is SymptomState.FOUND:
            word = "back"
        else:
            word = "quiet" if check.state is SymptomState.CLEARED else "unseen"
        detail = _joined([*details, check.summary])
        hours = (self._services.clock() - resolved_at).total_seconds() / 3600
        text = say(
            f"followup.recurrence_{word}",
            incident=incident.id,
            hours=f"{hours:.1f}".removesuffix(".0"),
            detail=detail,
        )
        return Told(text=text, asks_lead=word == "back", data={"found": word})

    async def _signs(self, incident: Incident) -> list[Localized]:
        """What alerts say: those that never ended, and newer incidents that are linked to this one."""
        signs = []
        firing = [
            alert.name for alert in incident.alerts.values() if alert.status is AlertStatus.FIRING
        ]
        if firing:
            signs.append(say("followup.recurrence_alerts", alerts=listed(firing[:5])))
        ledger = await self._services.journal.load(incident.id)
        for entry in ledger.entries:
            if entry.kind is EntryKind.SYSTEM and entry.op == "recurred":
                later = str(entry.data["incident"])
                summary = await index.summary_of(self._services.store, later)
                if summary is not None and summary.status != IncidentStatus.RESOLVED.value:
                    signs.append(say("followup.recurrence_episode", incident=later))
        return signs

    async def _report_due(self, incident: Incident, due: Due) -> Told:
        text = say("followup.report_due", incident=incident.id)
        return Told(text=text, reminder=_reminder(due), asks_lead=True)

    async def _action_due(self, incident: Incident, due: Due) -> Told:
        now = self._services.clock()
        zone = self._services.settings.zone
        items = [
            say(
                "followup.action_item",
                n=item.n,
                text=item.text or say("followup.withheld"),
                due=item.due,
            )
            for item in open_items(incident)
            if (at := due_at(item, zone)) and at <= now
        ]
        text = say("followup.action_due", incident=incident.id, items=_joined(items, "; ", "；"))
        return Told(text=text, reminder=_reminder(due), asks_lead=True)

    async def _check(self, incident: Incident, since: datetime) -> SymptomCheck:
        if incident.service is None:
            return SymptomCheck(state=SymptomState.UNKNOWN, summary=say("followup.no_service"))
        request = request_of(
            self._services, incident, by=SYSTEM_AUTHOR, window_seconds=CHECK_WINDOW_SECONDS
        )
        begins = [item.since for item in incident.symptoms if item.since is not None]
        onset = min(begins, default=None)
        # The engine reads a bounded window; an onset before it is found from the series itself.
        if onset is not None and onset < request.at - timedelta(seconds=request.window_seconds):
            onset = None
        return await check_symptom(request, since, self._services.ports, onset=onset)

    def _minutes_since(self, at: datetime) -> str:
        return f"{max(0.0, (self._services.clock() - at).total_seconds()) / 60:.0f}"


def _reminder(due: Due) -> Localized:
    if due.is_last:
        return say("followup.last", n=due.count, most=MOST)
    minutes = f"{due.next_seconds / 60:.0f}"
    return say("followup.again", n=due.count, most=MOST, minutes=minutes)


def _joined(parts: Sequence[Localized], en: str = " ", zh: str = "") -> Localized:
    return Localized(en.join(item.en for item in parts), zh.join(item.zh for item in parts))
