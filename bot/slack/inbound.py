"""Does the work of what Slack delivered; every step is named after its job, so that a second run repeats nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from bot.command import Call
from bot.domain.alert import AlertGroup
from bot.domain.incident import IncidentStatus
from bot.errors import BotError, StoreError
from bot.intake.slack_message import parse
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.jobs.worker import Done, Later
from bot.message import Message
from bot.slack.capture import Capture
from bot.slack.directory import Directory
from bot.slack.dispatch import Dispatcher
from bot.slack.home import refresh
from bot.slack.interactions import Interactions
from bot.slack.reactions import Reactions
from bot.slack.reading import NEW_SUBTYPES, moment
from bot.slack.text import after_mention, command_text, mentions, prose_text
from bot.store import index, surface
from bot.store.queue import Claim
from commands._words import split_word

log = structlog.get_logger(__name__)

Json = Mapping[str, Any]

# A payload that fails again and again is set aside: what follows in its channel must not wait for ever.
MOST_ATTEMPTS = 4
# Words whose text is recorded in full by the command itself.
_SELF_RECORDED = ("note", "symptom", "mitigate")
# Words that are made of names: a person stays an id, a host stays a host whatever Slack linked it to.
_OF_NAMES = ("role", "probe", "chart")


class Inbound:
    """Handler of `slack.inbound` jobs."""

    def __init__(
        self,
        services: Services,
        directory: Directory,
        capture: Capture,
        reactions: Reactions,
        dispatcher: Dispatcher,
        interactions: Interactions,
    ) -> None:
        self._services = services
        self._directory = directory
        self._capture = capture
        self._reactions = reactions
        self._dispatcher = dispatcher
        self._interactions = interactions

    async def handle(self, claim: Claim) -> Done | Later:
        """Works on one payload; one that cannot be worked on is parked, logged and counted."""
        try:
            await self._route(claim)
        except StoreError:
            raise
        except Exception as error:
            if claim.attempt < MOST_ATTEMPTS:
                raise
            unknown = None if isinstance(error, BotError) else error
            log.error("slack.parked", id=claim.job.id, error=str(error), exc_info=unknown)
            return Done(step=surface.park("inbound", claim.job.to_json()))
        return Done()

    async def _route(self, claim: Claim) -> None:
        body: Json = claim.job.payload["body"]
        key = f"in:{claim.job.id}"
        match claim.job.payload["type"]:
            case "action":
                await self._interactions.pressed(body, key)
            case "view":
                await self._interactions.submitted(body, key)
            case "shortcut":
                await self._interactions.shortcut(body, key)
            case "command":
                await self._command(body, key)
            case "event":
                if not self._directory.known.is_known:
                    await self._directory.warm()
                await self._event(body, key)

    async def _command(self, body: Json, key: str) -> None:
        word, rest = await self._read(str(body.get("text") or ""))
        call = Call(
            word=word or "help",
            text=rest,
            user=str(body.get("user_id") or ""),
            channel=str(body.get("channel_id") or body.get("user_id") or ""),
            thread_ts=None,
            message_ts=None,
            incident=None,
            key=key,
            at=self._services.clock(),
            locale=self._services.settings.locale_of(str(body.get("channel_id") or "")),
        )
        await self._dispatcher.answer(call, str(body.get("response_url") or "") or None)

    async def _event(self, body: Json, key: str) -> None:
        event: Json = body["event"]
        if event.get("type") == "member_joined_channel":
            await self._joined(event, key)
            return
        if self._is_own(event, body):
            return
        match event.get("type"):
            case "app_mention":
                await self._said(event)
            case "message":
                await self._message(event, key)
            case "reaction_added" | "reaction_removed":
                await self._reactions.reacted(event, key=key)
            case "app_home_opened" if event.get("tab") == "home" and event.get("user"):
                step = refresh(str(event["user"]), self._services)
                await self._services.store.commit(step, doing="queue a Home tab")
                self._services.wake()
            case _:
                return

    async def _joined(self, event: Json, key: str) -> None:
        """The bot was invited: what it could not say before is said now."""
        if event.get("user") == self._directory.known.user:
            await self._catch_up(str(event.get("channel") or ""), key)

    async def _catch_up(self, channel: str, key: str) -> None:
        """Open incidents of a channel in which the bot could not speak get their card and prompt.

        The card may be there already (any news brings it); what else was lost is known by its entry in the record.
        """
        send = self._services.outbox.send
        for summary in await index.summaries(self._services.store, before=None, limit=200):
            if summary.channel != channel or summary.status == IncidentStatus.RESOLVED.value:
                continue
            ledger = await self._services.journal.load(summary.id)
            incident = ledger.incident
            if not any(entry.op == "undelivered" for entry in ledger.entries):
                continue
            await send(outbox.card_job(incident), once=f"{key}:card:{incident.id}")
            views = [f"step_{incident.current_step}"] if incident.current_step else []
            views += ["hypotheses"] if incident.hypotheses else []
            for view in views:
                message = Message(view=view)
                await send(
                    outbox.thread_post(incident, message), once=f"{key}:{view}:{incident.id}"
                )

    def _is_own(self, event: Json, body: Json) -> bool:
        identity = self._directory.known
        actor = event.get("message") if event.get("subtype") == "message_changed" else event
        actor = actor if isinstance(actor, Mapping) else event
        return bool(
            (identity.bot and actor.get("bot_id") == identity.bot)
            or (identity.user and actor.get("user") == identity.user)
            or (actor.get("app_id") and actor.get("app_id") == body.get("api_app_id"))
        )

    async def _message(self, event: Json, key: str) -> None:
        match event.get("subtype"):
            case "channel_archive" | "group_archive":
                step = surface.remember_archived(str(event["channel"]))
                await self._services.store.commit(step, doing="record that a channel is archived")
            case "channel_unarchive" | "group_unarchive":
                channel = str(event["channel"])
                step = surface.forget_archived(channel)
                await self._services.store.commit(step, doing="record that a channel is open")
                await self._catch_up(channel, key)
            case "message_changed":
                await self._alert(event.get("message") or {}, str(event["channel"]))
                await self._capture.changed(event)
            case "message_deleted":
                await self._capture.deleted(event)
            case subtype if subtype in NEW_SUBTYPES:
                await self._said(event)
            case _:
                return

    async def _said(self, event: Json) -> None:
        """A new message: an alert of another app, words for the bot, or something to be kept; told of once or twice."""
        channel, ts = str(event["channel"]), str(event["ts"])
        if event.get("bot_id") and await self._alert(event, channel):
            return
        thread_ts = str(event.get("thread_ts") or "") or None
        incident_id = await self._capture.incident_of(channel, thread_ts)
        words = self._for_bot(event)
        word, rest = await self._read(words) if words is not None else ("", "")
        is_command = words is not None and self._dispatcher.knows(word or "help")
        if incident_id is not None and not (is_command and word in _SELF_RECORDED):
            await self._capture.message(event, incident_id)
        if words is None or event.get("bot_id"):
            return
        if is_command and incident_id is not None and word in _SELF_RECORDED:
            step = surface.remember_message(channel, ts, incident_id)
            await self._services.store.commit(step, doing="keep a message's place")
        if self._is_foreign(event):
            # They read along and are recorded; what steers the incident is for the people of this workspace.
            log.warning("slack.foreign", user=str(event.get("user"))[:20], channel=channel)
            return
        await self._mention(event, word or "help", rest, incident_id, thread_ts)
        if incident_id is not None and await surface.is_gone(self._services.store, channel, ts):
            # The deletion overtook the words; what they recorded is withheld as well.
            await self._services.journal.withhold(incident_id, ts)

    def _is_foreign(self, event: Json) -> bool:
        own = self._directory.known.team
        theirs = event.get("user_team") or event.get("team")
        return bool(own and theirs and own != theirs)

    def _for_bot(self, event: Json) -> str | None:
        """The words after a mention of the bot at the beginning; all words in a direct message."""
        text = str(event.get("text") or "")
        own = self._directory.known.user
        if not own and event.get("type") == "app_mention":
            # Slack has not said yet who the bot is, but that these words are for it.
            own = next(iter(mentions(text)), "")
        rest = after_mention(text, own)
        if rest is None and event.get("channel_type") == "im" and not event.get("bot_id"):
            rest = text
        return rest

    async def _read(self, raw: str) -> tuple[str, str]:
        """The word and the rest of a line as Slack delivers it; what goes into the record names people."""
        word, rest = split_word(command_text(raw))
        if word in _OF_NAMES or "<" not in raw:
            return word, rest
        names = await self._directory.names(mentions(raw))
        return split_word(prose_text(raw, names))

    async def _mention(
        self, event: Json, word: str, rest: str, incident_id: str | None, thread_ts: str | None
    ) -> None:
        channel, ts = str(event["channel"]), str(event["ts"])
        locale = self._services.settings.locale_of(channel)
        if incident_id is not None:
            locale = (await self._services.journal.load(incident_id)).incident.locale
        call = Call(
            word=word,
            text=rest,
            user=str(event.get("user") or ""),
            channel=channel,
            # A mention outside any thread is answered below itself; `start` opens its incident there.
            thread_ts=thread_ts or (ts if word == "start" else None),
            message_ts=ts,
            incident=incident_id,
            # Both of app_mention and message tell of it: one name for the two.
            key=f"mention:{channel}:{ts}",
            at=moment(ts),
            locale=locale,
            permalink=self._directory.known.permalink(channel, ts, thread_ts),
        )
        await self._dispatcher.answer(call, None)
        if word == "start" and incident_id is None and call.thread_ts is not None:
            await self._capture.backfill(channel, call.thread_ts)

    async def _alert(self, message: Json, channel: str) -> bool:
        """Takes an alert that another app posted in an attached channel; by the app's id, never by a phrase."""
        entry = self._services.settings.channel(channel)
        sender = entry.alert_bots.get(str(message.get("bot_id") or "")) if entry else None
        if sender is None:
            return False
        ts = str(message.get("ts") or "")
        thread_ts = str(message.get("thread_ts") or "")
        if thread_ts and thread_ts != ts:
            return False
        group = parse(sender, message, moment(ts))
        if group is None:
            log.info("slack.alert_ignored", sender=sender, channel=channel, ts=ts)
            return False
        route = self._services.settings.route(dict(group.common_labels))
        taken = await self._services.openings.take(
            await self._same_alert(group),
            channel=channel,
            severity=route.severity if route else None,
            thread_ts=ts,
        )
        if taken is None:
            return True
        log.info("slack.alert", incident=taken.incident_id, rule=taken.rule, sender=sender)
        if taken.is_new:
            await self._capture.message({**message, "channel": channel}, taken.incident_id)
        step = surface.remember_message(channel, ts, taken.incident_id)
        await self._services.store.commit(step, doing="keep a message's place")
        self._services.wake()
        return True

    async def _same_alert(self, group: AlertGroup) -> AlertGroup:
        """The group with the fingerprints of alerts that came by webhook, where they are the same ones."""
        labels = dict(group.common_labels)
        service = self._services.inventory.service_of(labels)
        name = labels.get("alertname")
        if not name or service is None:
            return group
        found = await index.incident_of(
            self._services.store, index.correlation_key(f"alert:{name}:{service.name}")
        )
        if found is None:
            return group
        known = (await self._services.journal.load(found)).incident.alerts.values()
        twins = [item for item in known if item.name == name]
        if len(twins) != 1 or len(group.alerts) != 1:
            return group
        alert = replace(
            group.alerts[0], fingerprint=twins[0].fingerprint, starts_at=twins[0].starts_at
        )
        return replace(group, alerts=(alert,))
