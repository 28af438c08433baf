"""What a delivery came to, on the timeline and in the thread: once, and no more than people need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.errors import Reason
from bot.incidents.responding import Via
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Button, Message
from bot.store.queue import Claim, Job
from bot.target import Delivered, Progress, Target

TITLES: Mapping[str, str] = {"confluence": "Confluence", "git": "git", "github": "GitHub"}


def title_of(target: Target) -> str:
    """What people call a target."""
    return TITLES.get(target.name, target.name)


class Telling:
    """Writes down how one try of a delivery ended.

    Every entry may make the bot want a delivery by itself (an issue that is not in step), and that delivery may fail
    too. So what the bot did unasked is told only where it is news, or the two would call each other for ever.
    """

    def __init__(
        self, services: Services, claim: Claim, target: Target, progress: Progress
    ) -> None:
        self._services = services
        self._claim = claim
        self._target = target
        self._progress = progress
        self._by = str(claim.job.payload["by"])

    @property
    def _is_asked(self) -> bool:
        return self._by != SYSTEM_AUTHOR

    async def done(self, sent: Incident, delivered: Delivered) -> None:
        """It is there. sent: the incident as it was delivered.

        Raises:
            StoreError: Redis is not reachable; nothing was written.
        """
        newest = (await self._services.journal.load(sent.id)).incident
        if not self._is_asked and not self._links(newest, sent, delivered):
            await self._progress.put("told", "")
            return
        text = say("delivery.delivered", target=title_of(self._target), text=delivered.text)
        message = Message(
            view="delivery",
            context={
                "text": text.to_json(),
                "url": delivered.url,
                "target": title_of(self._target),
            },
        )

        def drafts(incident: Incident) -> Sequence[Draft]:
            links = self._links(incident, sent, delivered)
            return [*links, self._report(text, delivered)] if self._is_asked else links

        def jobs(after: Incident) -> Sequence[Job]:
            return (outbox.thread_post(after, message),) if self._is_asked else ()

        await self._write(sent.id, drafts, step="delivered", jobs=jobs, by=self._by)
        await self._progress.put("told", "")

    async def trouble(
        self, incident: Incident, text: Localized, reason: Reason, *, step: str, is_last: bool
    ) -> None:
        """It is not there. step: `waits`, `failed` or `refused`. is_last: a person has to ask for the next try.

        Raises:
            StoreError: Redis is not reachable; nothing was written.
        """
        if not self._is_asked and await self._progress.get("told") == reason.value:
            return
        draft = Draft(
            kind=EntryKind.SYSTEM,
            at=self._services.clock(),
            text=text,
            source="engine",
            data={"op": "delivery", "target": self._target.name, "state": step},
        )
        again = Button(
            action_id="rca.export",
            label=say("delivery.button_again"),
            payload={"formats": [self._target.name]},
        )
        message = Message(
            view="error", context={"text": text.to_json()}, buttons=(again,) if is_last else ()
        )
        await self._progress.put("told", reason.value)
        await self._write(
            incident.id,
            lambda _: [draft],
            step=step,
            jobs=lambda after: (outbox.thread_post(after, message),),
            by=SYSTEM_AUTHOR,
        )

    async def _write(
        self,
        incident_id: str,
        drafts: Callable[[Incident], Sequence[Draft]],
        *,
        step: str,
        jobs: Callable[[Incident], Sequence[Job]],
        by: str,
    ) -> None:
        via = Via(by=by, at=self._services.clock(), key=self._claim.job.id, source="engine")
        await self._services.responding.write(incident_id, via, drafts, step=step, jobs=jobs)

    def _report(self, text: Localized, delivered: Delivered) -> Draft:
        # A report that lies where the team reads is a report: the last step asks for one.
        formats = [self._target.name] if self._target.write is not None else []
        return Draft(
            kind=EntryKind.REPORT,
            at=self._services.clock(),
            text=text,
            author=self._by,
            source="engine",
            data={
                "op": "delivered",
                "target": self._target.name,
                "url": delivered.url,
                "formats": formats,
            },
        )

    def _links(self, newest: Incident, sent: Incident, delivered: Delivered) -> list[Draft]:
        """The entries that say which issue an action item is; none for what the incident knows."""
        known = {item.n: item for item in newest.action_items}
        told = {item.n: item for item in sent.action_items}
        made = []
        for n, url in sorted(delivered.links.items()):
            if n not in known or n not in told:
                continue
            if known[n].issue_url == url and known[n].issue_status is told[n].status:
                continue
            data = {"op": "linked", "n": n, "url": url, "status": told[n].status.value}
            made.append(
                Draft(
                    kind=EntryKind.ACTION,
                    at=self._services.clock(),
                    text=say("delivery.linked", n=n, url=url),
                    source="engine",
                    data=data,
                )
            )
        return made
