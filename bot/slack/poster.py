"""Sends what the queue holds: the card, thread posts, answers for one person; each exactly once, in the channel's pace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from bot.checkpoint import reached
from bot.domain.incident import Incident
from bot.domain.text import Locale
from bot.domain.timeline import Draft, EntryKind
from bot.errors import DeliveryError
from bot.incidents.journal import UnknownIncidentError
from bot.jobs.services import Services
from bot.jobs.verbosity import is_said
from bot.jobs.worker import Done, Later
from bot.locales import say
from bot.message import Message
from bot.slack.delivery import Delivery, Sent
from bot.slack.directory import Directory
from bot.slack.links import with_links
from bot.slack.present import Part, Presented, Presenter
from bot.slack.text import mentions
from bot.slack.undelivered import Undelivered
from bot.slack.uploads import Uploads
from bot.slack.web import SlackRefusalError, Web
from bot.store import surface
from bot.store.queue import Claim
from bot.store.transaction import Batch

log = structlog.get_logger(__name__)

# Slack takes about one message per second and channel. Source: docs.slack.dev, rate limits.
PAUSE_SECONDS = 1.0


class Poster:
    """Handlers of the `slack.card` and `slack.post` jobs."""

    def __init__(
        self, services: Services, web: Web, directory: Directory, presenter: Presenter
    ) -> None:
        self._services = services
        self._web = web
        self._directory = directory
        self._presenter = presenter
        self._delivery = Delivery(web, services.store, services.clock)
        self._undelivered = Undelivered(services)
        self._uploads = Uploads(web, services.store, services.clock)

    async def card(self, claim: Claim) -> Done | Later:
        """Posts an incident's card once, then keeps it up to date in place; nothing is sent where nothing changed."""
        incident_id = str(claim.job.payload["incident"])
        try:
            incident = (await self._services.journal.load(incident_id)).incident
            if await self._undelivered.is_archived(incident):
                return Done()
            return await self._card(incident, claim)
        except DeliveryError as error:
            return await self._undelivered.failed(claim, error, incident_id)

    async def post(self, claim: Claim) -> Done | Later:
        """Posts into an incident's thread, or shows one person an answer."""
        payload = claim.job.payload
        message = Message.from_json(payload["message"])
        incident_id = payload.get("incident")
        try:
            if payload.get("to") == "thread":
                return await self._thread(claim, str(incident_id), message)
            return await self._private(claim, message)
        except DeliveryError as error:
            return await self._undelivered.failed(
                claim, error, str(incident_id) if incident_id else None
            )

    async def _card(self, incident: Incident, claim: Claim) -> Done:
        presented = await self._presented(Message(view="card"), incident, incident.locale)
        part = presented.parts[0]
        name = f"card:{incident.id}"
        if incident.card_ts is None:
            sent = await self._delivery.send(
                key=name,
                channel=incident.channel,
                thread_ts=incident.thread_ts,
                part=part,
                plain=presented.plain[0],
                first=_meanings(presented),
                is_first_try=claim.attempt == 1,
                possible_since=incident.opened_at,
            )
            await self._attach(incident, sent.ts, part.digest)
            reached("post.recorded")
            return Done(pause_seconds=PAUSE_SECONDS)
        if await surface.shown(self._services.store, name) == part.digest:
            return Done()
        await self._remember(presented)
        try:
            await self._delivery.update(
                channel=incident.channel, ts=incident.card_ts, part=part, plain=presented.plain[0]
            )
        except SlackRefusalError as error:
            if not error.is_permanent:
                raise
            # Deleted by a person, or too old to edit: the thread goes on without it.
            log.warning("slack.card_lost", incident=incident.id, code=error.code)
        return Done(step=surface.remember_shown(name, part.digest))

    async def _attach(self, incident: Incident, ts: str, digest: str) -> None:
        """Records where the incident lives; a second run finds it recorded."""
        thread_ts = incident.thread_ts or ts
        step = surface.remember_shown(f"card:{incident.id}", digest)
        step.extend(surface.remember_message(incident.channel, ts, incident.id))
        step.extend(surface.remember_message(incident.channel, thread_ts, incident.id))
        link = self._directory.known.permalink(incident.channel, ts, thread_ts)
        draft = Draft(
            kind=EntryKind.SYSTEM,
            at=self._services.clock(),
            text=say("slack.attached"),
            permalink=link,
            data={"op": "attached", "thread_ts": thread_ts, "card_ts": ts},
        )
        await self._services.journal.record(
            incident.id, lambda _: [draft], once="attached", extra=step
        )

    async def _thread(self, claim: Claim, incident_id: str, message: Message) -> Done | Later:
        incident = (await self._services.journal.load(incident_id)).incident
        if incident.thread_ts is None:
            # The card stands before it in the lane; where that failed for good, it was said there.
            log.warning("slack.no_thread", incident=incident.id, view=message.view)
            return Done()
        if not is_said(self._services.settings, incident.channel, message):
            return Done()
        if await self._undelivered.is_archived(incident):
            return Done()
        # What a step asks may have been changed on another replica.
        await self._services.knowledge.refresh()
        presented = await self._presented(message, incident, incident.locale)
        if message.files and not presented.meanings:
            # A file with a caption is one message; two would be noise.
            await self._upload(claim, incident, message, presented.parts[0].text)
            return Done()
        await self._send_parts(claim, incident, presented)
        if message.files:
            await self._upload(claim, incident, message, "")
        return Done(pause_seconds=PAUSE_SECONDS)

    async def _send_parts(self, claim: Claim, incident: Incident, presented: Presented) -> None:
        live = claim.job.payload.get("live")
        key = f"live:{live}:" if live else f"{claim.job.id}:"
        parts = presented.parts
        for place, part in enumerate(parts):
            plain = _plain_of(presented, part)
            sent: Sent = await self._delivery.send(
                key=f"{key}{place}",
                channel=incident.channel,
                thread_ts=incident.thread_ts,
                part=part,
                plain=plain,
                also=lambda ts: surface.remember_message(incident.channel, ts, incident.id),
                first=_meanings(presented),
            )
            if live:
                await self._keep_current(f"{key}{place}", sent, incident.channel, part, plain)
            if sent.is_new and place + 1 < len(parts):
                await self._delivery.pace(PAUSE_SECONDS)

    async def _keep_current(
        self, name: str, sent: Sent, channel: str, part: Part, plain: Part
    ) -> None:
        """Brings a message that was sent before up to date, where what it says has changed."""
        if not sent.is_new and await surface.shown(self._services.store, name) != part.digest:
            try:
                await self._delivery.update(channel=channel, ts=sent.ts, part=part, plain=plain)
            except SlackRefusalError as error:
                if not error.is_permanent:
                    raise
                log.warning("slack.live_lost", name=name, code=error.code)
        step = surface.remember_shown(name, part.digest)
        await self._services.store.commit(step, doing="record what a message says")

    async def _upload(
        self, claim: Claim, incident: Incident, message: Message, comment: str
    ) -> None:
        await self._uploads.share(
            key=f"{claim.job.id}:files",
            blobs=message.files,
            channel=incident.channel,
            thread_ts=incident.thread_ts or "",
            comment=comment,
            title=_title(message, incident.locale),
            alt=_alt(message, incident.locale),
        )

    async def _private(self, claim: Claim, message: Message) -> Done:
        payload = claim.job.payload
        locale = Locale(payload.get("locale") or self._services.settings.locale)
        named = payload.get("incident") or message.context.get("incident_id")
        incident = None
        if named:
            try:
                incident = (await self._services.journal.load(str(named))).incident
                locale = incident.locale
            except UnknownIncidentError:
                incident = None
        locale = await self._directory.locale(str(payload["user"]), locale)
        await self._services.knowledge.refresh()
        presented = await self._presented(message, incident, locale)
        await self._remember(presented)
        for part in presented.parts:
            plain = _plain_of(presented, part)
            await self._delivery.send_private(
                channel=str(payload["channel"]),
                user=str(payload["user"]),
                thread_ts=payload.get("thread_ts"),
                response_url=payload.get("response_url"),
                part=part,
                plain=plain,
            )
        return Done()

    async def _presented(
        self, message: Message, incident: Incident | None, locale: Locale
    ) -> Presented:
        names = await self._directory.names(_people(message, incident))
        link = None
        if incident is not None and incident.thread_ts:
            identity = self._directory.known
            link = identity.permalink(incident.channel, incident.thread_ts, None)
        linked = with_links(message, self._directory.known)
        return self._presenter.present(linked, incident, locale, names, thread_link=link)

    async def _remember(self, presented: Presented) -> None:
        """Stores what the buttons mean before anybody can press one."""
        if not presented.meanings:
            return
        await self._services.store.commit(_meanings(presented), doing="store what buttons mean")


def _plain_of(presented: Presented, part: Part) -> Part:
    """What stands for a part that Slack refuses: its own words, not those of the part before it."""
    return presented.plain[0] if len(presented.parts) == 1 else Part(blocks=(), text=part.text)


def _meanings(presented: Presented) -> Batch:
    """The step that stores what the buttons mean."""
    step = Batch()
    for opaque, meaning in presented.meanings.items():
        step.extend(surface.remember_button(opaque, meaning))
    return step


def _people(message: Message, incident: Incident | None) -> Iterable[str]:
    """Everybody whose name the message may show."""
    for key in ("by", "user"):
        if value := message.context.get(key):
            yield str(value)
    if isinstance(text := message.context.get("text"), Mapping):
        for wording in text.values():
            yield from mentions(str(wording))
    if incident is None:
        return
    yield from incident.roles.values()
    if incident.root_cause is not None:
        yield incident.root_cause.by
    if incident.fix is not None:
        yield incident.fix.by
    yield from (item.by for item in incident.experiments[-3:])
    yield from mentions(incident.title)


def _title(message: Message, locale: Locale) -> str:
    return _words(message.context.get("title"), locale)


def _alt(message: Message, locale: Locale) -> str:
    return _words(message.context.get("alt"), locale)


def _words(value: Any, locale: Locale) -> str:
    if isinstance(value, Mapping):
        return str(value.get(locale.value) or value.get(Locale.EN.value) or "")
    return str(value or "")
