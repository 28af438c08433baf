"""What is done when an incident opens: the card first, then the first question, then the search."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.timeline import SYSTEM_AUTHOR
from bot.incidents.opening import FIRST_STEP, Opening
from bot.jobs import outbox, requests
from bot.message import Message
from bot.store.queue import Job


def jobs_for_new(incident_id: str, opening: Opening) -> Sequence[Job]:
    """Queued in the transaction that opens the incident. Nothing slow stands before the first message."""
    lane = outbox.lane_of(opening.channel)
    card = Job(
        kind=outbox.CARD,
        lane=lane,
        payload={"incident": incident_id},
        coalesce=f"card:{incident_id}",
    )
    prompt = Job(
        kind=outbox.POST,
        lane=lane,
        payload={
            "incident": incident_id,
            "to": "thread",
            "message": Message(view=f"step_{FIRST_STEP}", context={"step": FIRST_STEP}).to_json(),
        },
    )
    search = requests.collect(incident_id, reason="opened", by=SYSTEM_AUTHOR)
    symptom = requests.chart(incident_id, kind="symptom", by=SYSTEM_AUTHOR)
    return (card, prompt, search, symptom)
