"""Takes reports to where the team keeps them. What a target did not take is tried for a day; nothing done is done twice.

Each target of an incident has a lane of its own: one that is down holds nothing else up. Every step of a delivery is
remembered (`bot/store/deliveries.py`), so that a crash or a failure only ever costs the step in hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta

import httpx
import structlog

from bot.checkpoint import reached
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Entry, EntryKind
from bot.errors import CommandError, ConfigError, DeliveryError, Reason
from bot.exporter import ExportOptions
from bot.exporters import RENDER_TIMEOUT_SECONDS, report_worker
from bot.jobs.delivery_news import Telling, title_of
from bot.jobs.reporting import compile_report
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.settings import Settings
from bot.store import queue
from bot.store.deliveries import StoredProgress
from bot.store.queue import Claim, Job
from bot.target import Means, Parcel, Target
from bot.targets import packed, targets

log = structlog.get_logger(__name__)

DELIVER = "incident.deliver"
FIRST_RETRY_SECONDS = 5.0
LAST_RETRY_SECONDS = 900.0
PATIENCE = 3
LONG_WAIT_SECONDS = 30.0
"""From this try on, or with a longer wait than this, people are told: a hiccup is none of their business."""
MOST_TRIES = 100
"""With the waits above: about a day, the time in which somebody repairs a wiki."""

_PASSING = (Reason.REFUSED, Reason.TIMEOUT, Reason.RATE_LIMITED, Reason.CONFLICT)


def deliver_job(incident_id: str, target: str, *, by: str) -> Job:
    """Bring what `target` has of an incident up to date; many in a row become one."""
    return Job(
        kind=DELIVER,
        lane=f"deliver:{incident_id}:{target}",
        payload={"incident": incident_id, "target": target, "by": by},
        coalesce=f"deliver:{incident_id}:{target}",
    )


async def ask(services: Services, incident_id: str, target: str, *, by: str, once: str) -> None:
    """Queues a delivery, once under this name; one that waits for its next try is tried now.

    Raises:
        StoreError: Redis is not reachable; try again with the same name.
    """
    job = deliver_job(incident_id, target, by=by)
    await services.outbox.send(job, once=once)
    step = queue.hurry(job.lane, services.clock())
    await services.queue.settle(step, doing="try a delivery now")
    services.wake()


async def renew(services: Services, incident_id: str, *, once: str) -> None:
    """Queues a delivery to every place that has the incident's report: words that their author took back stand there.

    Raises:
        StoreError: Redis is not reachable; try again with the same name.
    """
    incident = (await services.journal.load(incident_id)).incident
    places = {name for name in targets() if name in incident.report_formats}
    if any(item.issue_url for item in incident.action_items):
        places.add("github")
    for name in sorted(places):
        job = deliver_job(incident_id, name, by=SYSTEM_AUTHOR)
        await services.outbox.send(job, once=f"{once}:{name}")


def issues_in_step(incident: Incident, settings: Settings) -> tuple[Job, ...]:
    """What an incident whose action items are issues already wants when one of them changes."""
    items = incident.action_items
    if settings.github is None or not any(item.issue_url for item in items):
        return ()
    if all(item.is_in_step or item.text is None for item in items):
        return ()
    return (deliver_job(incident.id, "github", by=SYSTEM_AUTHOR),)


def refused(target: Target, settings: Settings) -> Localized | None:
    """Why a target cannot be delivered to at all; None where it is set up."""
    if target.is_set_up(settings):
        return None
    return say("delivery.not_set_up", target=target.name)


def key_of(incident: Incident) -> str:
    """Our mark on everything that is made for this incident; another deployment's INC-1 has another one."""
    seed = f"{incident.id}|{incident.channel}|{incident.opened_at.isoformat()}"
    return f"rca-{incident.id.lower()}-{hashlib.sha256(seed.encode()).hexdigest()[:10]}"


def wait_after(attempt: int) -> float:
    """Seconds until the next try after this many, where the target does not say itself."""
    return min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(attempt - 1, 10))


def _last_news(entries: Sequence[Entry]) -> int | None:
    """Seq of the last entry that says more than that the report was written or delivered.

    Later ones are left to the next delivery that has something else to say: a delivery is an entry itself, and the
    same report asked for twice would never be the same.
    """
    news = (
        entry.seq
        for entry in reversed(entries)
        if not (entry.kind is EntryKind.REPORT and entry.op in ("", "delivered"))
        and not (entry.kind is EntryKind.SYSTEM and entry.op == "delivery")
    )
    return next(news, None)


class Delivering:
    """Handler of the delivery jobs."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def deliver(self, claim: Claim) -> Done | Later:
        """One try; what is there already is not sent again."""
        target = targets()[str(claim.job.payload["target"])]
        incident_id = str(claim.job.payload["incident"])
        incident = (await self._services.journal.load(incident_id)).incident
        progress = StoredProgress(self._services.store, incident_id, target.name)
        telling = Telling(self._services, claim, target, progress)
        try:
            await self._may_go(target, incident)
            parcel = await self._parcel(target, incident)
            reached("delivery.packed")
            async with httpx.AsyncClient(follow_redirects=False) as http:
                means = Means(
                    settings=self._services.settings,
                    http=http,
                    progress=progress,
                    clock=self._services.clock,
                )
                delivered = await target.deliver(parcel, means)
        except (DeliveryError, ConfigError, CommandError) as error:
            return await self._failed(claim, target, incident, telling, error)
        reached("delivery.done")
        await telling.done(incident, delivered)
        log.info("delivery.done", incident=incident.id, target=target.name, attempt=claim.attempt)
        return Done()

    async def _may_go(self, target: Target, incident: Incident) -> None:
        settings = self._services.settings
        if (why := refused(target, settings)) is not None:
            raise CommandError(why, reason=Reason.UNSUPPORTED)
        if target.may_be_private(settings):
            return
        if not await self._services.members.is_public(incident.channel):
            text = say("delivery.private", incident=incident.id, target=target.name)
            raise CommandError(text, reason=Reason.UNAUTHORISED)

    async def _parcel(self, target: Target, incident: Incident) -> Parcel:
        entries = (await self._services.journal.load(incident.id)).entries
        report = await compile_report(self._services, incident.id, until=_last_news(entries))
        options = ExportOptions(locale=incident.locale)
        return await report_worker().run(
            packed,
            target.name,
            report,
            options,
            key_of(incident),
            timeout_seconds=RENDER_TIMEOUT_SECONDS,
        )

    async def _failed(
        self,
        claim: Claim,
        target: Target,
        incident: Incident,
        telling: Telling,
        error: DeliveryError | ConfigError | CommandError,
    ) -> Done | Later:
        """Tries again later where that can help; says so once it takes long, and once more when it was the last try."""
        now = self._services.clock()
        log.warning(
            "delivery.failed",
            incident=incident.id,
            target=target.name,
            reason=error.reason.value,
            attempt=claim.attempt,
            error=str(error),
        )
        title = title_of(target)
        if isinstance(error, CommandError):
            await telling.trouble(incident, error.text, error.reason, step="refused", is_last=True)
            return Done()
        why = say("delivery.why", detail=str(error))
        if error.reason in _PASSING and claim.attempt < MOST_TRIES:
            wait = wait_after(claim.attempt)
            if isinstance(error, DeliveryError) and error.retry_after_seconds is not None:
                wait = error.retry_after_seconds
            if claim.attempt >= PATIENCE or wait > LONG_WAIT_SECONDS:
                text = say("delivery.waits", target=title, why=why)
                await telling.trouble(incident, text, error.reason, step="waits", is_last=False)
            return Later(until=now + timedelta(seconds=wait), why=str(error))
        advice = say(f"delivery.advice_{error.reason.value}")
        text = say("delivery.failed", target=title, why=why, advice=advice)
        await telling.trouble(incident, text, error.reason, step="failed", is_last=True)
        return Done()


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {DELIVER: Delivering(services).deliver}
