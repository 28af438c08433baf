"""Small things that a button does and no word of `/rca` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.command import Call
from bot.domain.action_item import ActionStatus
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.responding import Via
from bot.jobs import followups, outbox, requests
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Message


class SmallSteps:
    """Confirms a scope, names a service, asks again, checks a symptom, quiets a follow-up, ticks off an action item."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def take(self, call: Call, incident_id: str, what: str, key: str) -> Localized:
        """Does what a button says and gives the words for whoever pressed it."""
        send = self._services.outbox.send
        match what:
            case "scope":
                incident = (await self._services.journal.load(incident_id)).incident
                scope = replace(incident.scope, is_confirmed=True)
                await self._services.responding.set_scope(incident_id, scope, _via(call))
                self._services.wake()
                return say("slack.scope_done")
            case "service":
                name = str(call.payload.get("service") or "")
                await self._set_service(incident_id, name, call)
                job = requests.collect(incident_id, reason="scope", by=call.user)
                await send(job, once=f"{key}:collect")
                return say("slack.service_set")
            case "snooze" | "stop":
                change = followups.snooze if what == "snooze" else followups.stop
                named = str(call.payload.get("followup") or "")
                return await change(self._services, incident_id, named, _via(call))
            case "action_done":
                return await self._action_done(call, incident_id)
            case "verify":
                await send(requests.verify(incident_id, by=call.user), once=f"{key}:verify")
                return say("slack.verifying")
            case _:
                job = requests.collect(incident_id, reason="asked", by=call.user)
                await send(job, once=f"{key}:collect")
                return say("slack.collecting")

    async def _set_service(self, incident_id: str, name: str, call: Call) -> None:
        incident = (await self._services.journal.load(incident_id)).incident
        nodes = tuple(node.name for node in self._services.inventory.nodes_of(name))
        scope = replace(incident.scope, nodes=incident.scope.nodes or nodes)
        await self._services.responding.set_scope(incident_id, scope, _via(call), services=(name,))

    async def _action_done(self, call: Call, incident_id: str) -> Localized:
        """Ticks off an action item; a second press says that there is none open any more."""
        n = int(str(call.payload.get("n") or 0))
        text = say("slack.action_done", n=n, incident=incident_id)

        def make(incident: Incident) -> Sequence[Draft]:
            if not any(
                item.n == n and item.status is ActionStatus.OPEN for item in incident.action_items
            ):
                gone = say("slack.action_gone", n=n, incident=incident_id)
                raise CommandError(gone, reason=Reason.NOT_FOUND)
            return [
                Draft(
                    kind=EntryKind.ACTION,
                    at=call.at,
                    text=text,
                    author=call.user,
                    source=call.source,
                    data={"op": "done", "n": n},
                )
            ]

        try:
            await self._services.responding.write(incident_id, _via(call), make, step="done")
        except CommandError as error:
            return error.text
        self._services.wake()
        return text

    async def record(self, call: Call, what: str) -> Localized | None:
        """Records a fix or an action item from its form; None: the thread says it by itself."""
        if call.incident is None or not call.text.strip():
            return say("commands.no_incident")
        if what == "fix":
            recorded = await self._services.responding.record_fix(
                call.incident, call.text, _via(call)
            )
            message = Message(view="fixed", context={"by": call.user})
            post = outbox.thread_post(recorded.incident, message)
            await self._services.outbox.send(post, once=f"{call.key}:fixed")
            return None
        await self._services.responding.add_action_item(
            call.incident,
            call.text,
            _via(call),
            owner=str(call.payload.get("owner") or "") or None,
            due=str(call.payload.get("due") or "") or None,
        )
        self._services.wake()
        return say("slack.action_kept")


def _via(call: Call) -> Via:
    return Via(by=call.user, at=call.at, key=call.key)
