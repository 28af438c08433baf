"""Says things in Slack, durably: a message is a job in its channel's lane; sending it is the Slack package's business."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from bot.domain.incident import Incident
from bot.message import Message
from bot.store import index, queue
from bot.store.queue import Job
from bot.store.transaction import Batch, Store

POST = "slack.post"
CARD = "slack.card"
# A channel takes a message a second: what stands for a whole storm goes first, then what each incident hangs on.
STORM, ANCHOR = 2, 1


def lane_of(channel: str) -> str:
    """One lane a channel: order and pace are kept there."""
    return f"slack:{channel}"


def card_job(incident: Incident) -> Job:
    """Brings the incident's card up to date; many in a row become one."""
    return Job(
        kind=CARD,
        lane=lane_of(incident.channel),
        payload={"incident": incident.id},
        coalesce=f"card:{incident.id}",
        rank=STORM if incident.storm else 0,
    )


def thread_post(incident: Incident, message: Message, *, live: str = "") -> Job:
    """A message in the incident's thread; one with the same name in `live` as an earlier one takes its place."""
    payload = {"incident": incident.id, "to": "thread", "message": message.to_json()}
    if live:
        payload["live"] = live
    return Job(kind=POST, lane=lane_of(incident.channel), payload=payload)


def private_post(
    channel: str, user: str, message: Message, *, thread_ts: str | None, response_url: str | None
) -> Job:
    """A message that only one person sees, where that person is."""
    return Job(
        kind=POST,
        lane=f"private:{channel}:{user}",
        payload={
            "to": "caller",
            "channel": channel,
            "user": user,
            "thread_ts": thread_ts,
            "response_url": response_url,
            "message": message.to_json(),
        },
    )


class Outbox:
    """Queues messages that do not belong to a timeline entry of their own."""

    def __init__(
        self, store: Store, clock: Callable[[], datetime], wake: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake

    async def send(self, job: Job, *, once: str) -> None:
        """Queues `job` at most once under the name `once`.

        Raises:
            StoreError: Redis is not reachable; try again with the same name.
        """
        step: Batch = index.once(once, job.id).extend(queue.enqueue(job, self._clock()))
        await self._store.commit(step, doing="queue a message")
        self._wake()
