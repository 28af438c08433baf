"""What is done when an incident opens, changes or recovers: the card first, then the first question, then the search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR
from bot.incidents import heartbeats, storms
from bot.incidents.opening import FIRST_STEP, Opening
from bot.incidents.silencing import ALERTMANAGER
from bot.jobs import outbox, requests
from bot.jobs.delivering import issues_in_step
from bot.jobs.followups import first_timers, timers_of
from bot.jobs.silencing import look_at, looks_of
from bot.jobs.storms import list_job
from bot.jobs.verbosity import Verbosity, level_of
from bot.locales import say
from bot.message import Button, Message
from bot.settings import Settings
from bot.store.queue import Job

HEAD_START_SECONDS = 0.2
"""How long search and charts wait after an opening: several times what the card takes (our measurement: 20-30 ms)."""

MOST_WORDS = 20
"""How many alerts of one notification are named in the thread; the timeline has them all."""

# Incidents of the bot's own making: no service to ask about, nothing to search for.
_OWN = (storms.SOURCE, heartbeats.SOURCE)
DRILL = "drill"


class Beginnings:
    """The jobs that are queued in the transaction of what makes them necessary."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock

    def for_new(self, incident_id: str, opening: Opening) -> Sequence[Job]:
        """When one opens. Nothing slow stands before the first message."""
        now = opening.at or self._clock()
        if opening.storm_of is not None:
            return (list_job(opening.storm_of, now),)
        lane = outbox.lane_of(opening.channel)
        # Nobody is paged or reminded for an exercise.
        timers = () if opening.source == DRILL else first_timers(incident_id, self._settings, now)
        notes = _notes(incident_id, lane, [*opening.notes, *_help(opening)])
        if opening.source in _OWN:
            rank = outbox.STORM if opening.source == storms.SOURCE else outbox.ANCHOR
            return (_card(incident_id, lane, rank), *notes, *timers)
        return (
            *_work(incident_id, lane, notes, now),
            *timers,
            *self._first_look(incident_id, opening),
        )

    def for_news(self, incident: Incident) -> Sequence[Job]:
        """When one changes: its card, and the follow-ups that it now wants."""
        if incident.is_only_listed:
            return ()
        timers = () if incident.drill else timers_of(incident, self._settings)
        timers = (*timers, *looks_of(incident, self._settings, self._clock()))
        if incident.storm_of is not None and incident.card_ts is None:
            # Somebody took up what a storm only listed: from here on it is an incident like any other.
            lane = outbox.lane_of(incident.channel)
            return (*_work(incident.id, lane, (), self._clock()), *timers)
        issues = () if incident.drill else issues_in_step(incident, self._settings)
        return (outbox.card_job(incident), *timers, *_recalled(incident), *issues)

    def _first_look(self, incident_id: str, opening: Opening) -> tuple[Job, ...]:
        """Somebody may have silenced the alert while it was on its way."""
        if self._settings.alertmanager_url is None or opening.source != ALERTMANAGER:
            return ()
        soon = (opening.at or self._clock()) + timedelta(seconds=HEAD_START_SECONDS)
        return (look_at(incident_id, soon),)

    def for_words(self, incident: Incident, words: Sequence[Localized]) -> Sequence[Job]:
        """When alerts join: said in the thread where the channel wants to hear everything."""
        is_chatty = level_of(self._settings, incident.channel) is Verbosity.CHATTY
        if not words or not is_chatty or incident.is_only_listed:
            return ()
        return _notes(incident.id, outbox.lane_of(incident.channel), words[:MOST_WORDS])

    def for_recovery(self, incident: Incident) -> Sequence[Job]:
        """When all its alerts are over: step 6 is asked for."""
        if incident.is_only_listed:
            return ()
        buttons: tuple[Button, ...] = ()
        if incident.fix is not None or incident.mitigations:
            buttons = (Button(action_id="rca.verify", label=say("slack.button_verify")),)
        text = say("intake.recovered", incident=incident.id)
        message = Message(
            view="followup_note", context={"notes": [text.to_json()]}, buttons=buttons
        )
        return (outbox.thread_post(incident, message),)


def _work(incident_id: str, lane: str, notes: Sequence[Job], now: datetime) -> tuple[Job, ...]:
    prompt = Job(
        kind=outbox.POST,
        lane=lane,
        payload={
            "incident": incident_id,
            "to": "thread",
            "message": Message(view=f"step_{FIRST_STEP}", context={"step": FIRST_STEP}).to_json(),
        },
        coalesce=f"prompt:{incident_id}",
    )
    # The first message has the processor to itself.
    soon = now + timedelta(seconds=HEAD_START_SECONDS)
    search = requests.collect(incident_id, reason="opened", by=SYSTEM_AUTHOR)
    search = replace(search, due_at=soon)
    chart = requests.chart(incident_id, kind="symptom", by=SYSTEM_AUTHOR)
    symptom = replace(chart, coalesce=f"chart:symptom:{incident_id}", due_at=soon)
    recall = replace(requests.recall(incident_id, reason="opened"), due_at=soon)
    return (_card(incident_id, lane, outbox.ANCHOR), prompt, *notes, recall, search, symptom)


def _recalled(incident: Incident) -> tuple[Job, ...]:
    """A cause that was just confirmed is looked for among the earlier ones; an exercise that is over is scored."""
    if incident.drill is not None:
        return () if incident.is_open else (requests.debrief(incident.id),)
    root = incident.root_cause
    is_news = root is not None and incident.active_at is not None and root.at >= incident.active_at
    return (requests.recall(incident.id, reason="confirmed"),) if is_news else ()


def _card(incident_id: str, lane: str, rank: int) -> Job:
    return Job(
        kind=outbox.CARD,
        lane=lane,
        payload={"incident": incident_id},
        coalesce=f"card:{incident_id}",
        rank=rank,
    )


def _notes(incident_id: str, lane: str, notes: Sequence[Localized]) -> tuple[Job, ...]:
    if not notes:
        return ()
    message = Message(view="followup_note", context={"notes": [note.to_json() for note in notes]})
    payload = {"incident": incident_id, "to": "thread", "message": message.to_json()}
    return (Job(kind=outbox.POST, lane=lane, payload=payload),)


def _help(opening: Opening) -> list[Localized]:
    """What to look at when a heartbeat stays away."""
    if opening.source != heartbeats.SOURCE:
        return []
    texts = [
        str(draft.data["alert"]["annotations"].get("description", ""))
        for draft in opening.drafts
        if "alert" in draft.data
    ]
    return [Localized.verbatim(text) for text in texts if text]
