"""The App Home of one person: open incidents, their action items, what waits for their decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bot.command import Permission, allowed
from bot.domain.action_item import ActionItem, ActionStatus
from bot.domain.checklist import ChecklistChange, ProposalStatus
from bot.domain.incident import Incident, IncidentStatus
from bot.domain.responder import Role
from bot.domain.text import Locale
from bot.errors import DeliveryError
from bot.jobs.services import Services
from bot.jobs.worker import Done, Later
from bot.locales import say
from bot.message import Button
from bot.slack.directory import Directory, Identity
from bot.slack.home_view import HomeView, Named
from bot.slack.web import SlackRefusalError, Web
from bot.store import approvals, index, queue, surface
from bot.store.approvals import Approval
from bot.store.queue import Claim, Job
from bot.store.transaction import Batch

log = structlog.get_logger(__name__)

HOME = "slack.home"

# How far back action items and proposals are looked for; older ones are in their reports.
MOST_INCIDENTS = 100
MOST_LISTED = 15
MOST_DECISIONS = 8
_ATTEMPTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An action item and the incident that it comes from."""

    incident: Incident
    item: ActionItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposed change of the checklist and the incident that it comes from."""

    incident: Incident
    change: ChecklistChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What one person's Home shows."""

    user: str
    open: tuple[Incident, ...]
    tasks: tuple[Task, ...]
    approvals: tuple[Approval, ...]
    proposals: tuple[Proposal, ...]


def home_job(user: str) -> Job:
    """Brings a person's Home up to date; many in a row become one."""
    return Job(kind=HOME, lane=f"home:{user}", payload={"user": user}, coalesce=f"home:{user}")


def refresh(user: str, services: Services) -> Batch:
    """The step that queues it."""
    return queue.enqueue(home_job(user), services.clock())


class Home:
    """Handler of `slack.home` jobs."""

    def __init__(self, services: Services, web: Web, directory: Directory, view: HomeView) -> None:
        self._services = services
        self._web = web
        self._directory = directory
        self._view = view

    async def publish(self, claim: Claim) -> Done | Later:
        """Shows the newest state; a Home that Slack will not take is logged, since the next look publishes it again."""
        user = str(claim.job.payload["user"])
        locale = await self._directory.locale(user, Locale(self._services.settings.locale))
        desk = await self._desk(user)
        names = await self._directory.names(item.by for item in desk.approvals)
        shown = self._view.build(
            rows(desk, self._directory.known), names, locale, self._services.clock()
        )
        step = Batch()
        for opaque, meaning in shown.meanings.items():
            step.extend(surface.remember_button(opaque, meaning))
        await self._services.store.commit(step, doing="store what buttons mean")
        try:
            await self._publish(user, shown.body, shown.plain)
        except DeliveryError as error:
            is_final = isinstance(error, SlackRefusalError) and error.reason.value != "rate_limited"
            if not is_final and claim.attempt < _ATTEMPTS:
                raise
            log.warning("slack.home", user=user, reason=error.reason.value, error=str(error))
        return Done()

    async def _publish(self, user: str, body: dict[str, object], plain: dict[str, object]) -> None:
        try:
            await self._web.call("views.publish", user_id=user, view=body)
        except SlackRefusalError as error:
            if not error.is_about_content:
                raise
            log.error("slack.content_refused", view="home", code=error.code)
            await self._web.call("views.publish", user_id=user, view=plain)

    async def _desk(self, user: str) -> Desk:
        summaries = await index.summaries(self._services.store, before=None, limit=500)
        is_over = IncidentStatus.RESOLVED.value
        ordered = sorted(summaries, key=lambda item: item.status == is_over)
        loaded = [
            (await self._services.journal.load(item.id)).incident
            for item in ordered[:MOST_INCIDENTS]
        ]
        waiting: Sequence[Approval] = ()
        if allowed(self._services.settings.policy, user, Permission.APPROVE_HEAVY):
            waiting = await approvals.waiting(self._services.store, self._services.clock())
        return Desk(
            user=user,
            open=tuple(item for item in loaded if item.is_open),
            tasks=tuple(
                Task(incident=incident, item=item)
                for incident in loaded
                for item in incident.action_items
                if item.status is ActionStatus.OPEN and _is_for(user, incident, item)
            ),
            approvals=tuple(waiting),
            proposals=tuple(
                Proposal(incident=incident, change=change)
                for incident in loaded
                for change in incident.checklist_changes
                if change.status is ProposalStatus.PROPOSED
            ),
        )


def rows(desk: Desk, identity: Identity) -> Named:
    """A desk as the view takes it: each list with its first entries, how many more there are, and buttons."""
    shown = [
        *desk.open,
        *(task.incident for task in desk.tasks),
        *(proposal.incident for proposal in desk.proposals),
    ]
    links = {
        item.id: identity.permalink(item.channel, item.thread_ts, None)
        for item in shown
        if item.thread_ts
    }
    buttons: dict[str, tuple[str | None, tuple[Button, ...]]] = {}
    for place, task in enumerate(desk.tasks[:MOST_LISTED]):
        done = _button("rca.action.done", "done", n=task.item.n)
        buttons[f"t{place}"] = (task.incident.id, (done,))
    for place, approval in enumerate(desk.approvals[:MOST_DECISIONS]):
        buttons[f"a{place}"] = (approval.incident, (_approve(approval),))
    for place, proposal in enumerate(desk.proposals[:MOST_DECISIONS]):
        n = proposal.change.n
        both = (
            _button("rca.checklist.accept", "accept", n=n),
            _button("rca.checklist.decline", "decline", n=n),
        )
        buttons[f"c{place}"] = (proposal.incident.id, both)
    return Named(
        context={
            "incidents": desk.open[:MOST_LISTED],
            "more_incidents": max(0, len(desk.open) - MOST_LISTED),
            "tasks": desk.tasks[:MOST_LISTED],
            "more_tasks": max(0, len(desk.tasks) - MOST_LISTED),
            "approvals": desk.approvals[:MOST_DECISIONS],
            "proposals": desk.proposals[:MOST_DECISIONS],
            "more_decisions": max(0, len(desk.approvals) - MOST_DECISIONS)
            + max(0, len(desk.proposals) - MOST_DECISIONS),
            "links": links,
        },
        buttons=buttons,
    )


def _is_for(user: str, incident: Incident, item: ActionItem) -> bool:
    """Their own, and what nobody owns where they lead."""
    return item.owner == user or (item.owner is None and incident.roles.get(Role.LEAD) == user)


def _button(action_id: str, label: str, **payload: object) -> Button:
    return Button(action_id=action_id, label=say(f"slack.button_{label}"), payload=payload)


def _approve(approval: Approval) -> Button:
    listed = f"{', '.join(approval.probes)} @ {', '.join(approval.nodes)}"
    return Button(
        action_id="rca.probe.approve",
        label=say("commands.approve"),
        payload={
            "id": approval.id,
            "probes": list(approval.probes),
            "nodes": list(approval.nodes),
            "args": dict(approval.args),
        },
        style="danger",
        confirm=say("commands.approve_sure", what=listed),
    )
