"""What is proposed for the checklists and what people decide about it: each decision is one durable step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.checklist.diffs import diff_of, parse_diff
from bot.domain.checklist import (
    ChecklistChange,
    CheckRun,
    ProposalKind,
    ProposalStatus,
    UsedChecklist,
    Version,
    VersionOp,
)
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.check_words import runs_said, used_said
from bot.incidents.journal import Journal, Recorded
from bot.incidents.responding import Responding, Via
from bot.incidents.shelf import Shelf, is_monitoring, path_of
from bot.locales import say
from bot.store import knowledge
from bot.store.transaction import Batch, Store

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What came of a decision. name: of the checklist or file; version: its newest, None where it is a file alone."""

    incident: Incident
    name: str
    version: int | None


class Checklists:
    """What people do to the checklists of one deployment."""

    def __init__(
        self, shelf: Shelf, store: Store, journal: Journal, responding: Responding
    ) -> None:
        self._shelf = shelf
        self._store = store
        self._journal = journal
        self._responding = responding

    async def propose(
        self, incident_id: str, changes: Sequence[tuple[ChecklistChange, Localized]], via: Via
    ) -> Recorded:
        """Records proposals, each with its reason; one whose diff is there already is not recorded again."""

        def make(incident: Incident) -> list[Draft]:
            known = (*incident.checklist_changes, *incident.monitoring_changes)
            diffs = {item.diff for item in known}
            fresh = [item for item in changes if item[0].diff not in diffs]
            if not known and not fresh:
                return [_draft(say("checklist.entry_none"), via, op="none")]
            first = max((item.n for item in known), default=0) + 1
            return [
                _draft(
                    reason,
                    via,
                    op="proposed",
                    n=n,
                    kind=item.kind.value,
                    checklist=item.checklist,
                    diff=item.diff,
                )
                for n, (item, reason) in enumerate(fresh, start=first)
            ]

        return await self._responding.write(incident_id, via, make, step="checklist")

    async def edit(self, incident_id: str, n: int, diff: str, via: Via) -> Recorded:
        """Puts a person's wording in a proposal's place; it still has to be accepted.

        Raises:
            CommandError: it is decided already, or the checklist would be broken.
        """
        change = await self._undecided(incident_id, n)
        if is_monitoring(change.checklist):
            parse_diff(diff)
        else:
            await self._shelf.after(change.checklist, diff)

        def make(incident: Incident) -> list[Draft]:
            _require_undecided(incident, n)
            return [_draft(say("checklist.entry_edited", n=n), via, op="edited", n=n, diff=diff)]

        return await self._responding.write(incident_id, via, make, step=f"edit:{n}")

    async def decline(self, incident_id: str, n: int, reason: str, via: Via) -> Decision:
        """Declines a proposal, with the reason.

        Raises:
            CommandError: there is no such proposal, or somebody has decided it.
        """

        def make(incident: Incident) -> list[Draft]:
            _require_undecided(incident, n)
            return [_draft(Localized.verbatim(reason), via, op="declined", n=n)]

        recorded = await self._responding.write(incident_id, via, make, step=f"checklist:{n}")
        change = _find(recorded.incident, n)
        return Decision(incident=recorded.incident, name=change.checklist, version=None)

    async def accept(self, incident_id: str, n: int, via: Via) -> Decision:
        """Accepts a proposal: the decision and the checklist's next version become durable together.

        Of two who accept at once one wins; the other's change goes over the winner's where it still fits.

        Raises:
            CommandError: somebody has decided it, its place is gone, or the checklist would be broken.
            StoreError: Redis is not reachable; try again with the same key.
        """
        for _ in range(_ATTEMPTS):
            incident = (await self._journal.load(incident_id)).incident
            change = _find(incident, n)
            if change.status is not ProposalStatus.PROPOSED:
                return await self._accepted_before(incident_id, n, via)
            try:
                version = await self._next(incident, change, via)
            except CommandError:
                # Where somebody accepted it a moment ago, its lines are there twice: then that is what is to be told.
                _require_undecided((await self._journal.load(incident_id)).incident, n)
                raise

            def make(now: Incident, accepted: Version = version) -> list[Draft]:
                _require_undecided(now, n)
                said = say("incident.checklist_accepted", n=n)
                return [_draft(said, via, op="accepted", n=n, version=accepted.number)]

            recorded = await self._responding.write(
                incident_id, via, make, step=f"checklist:{n}", extra=knowledge.add_version(version)
            )
            if recorded.is_new:
                return _decision(recorded.incident, change, version)
        raise CommandError(say("checklist.faster"), reason=Reason.CONFLICT)

    async def _accepted_before(self, incident_id: str, n: int, via: Via) -> Decision:
        """The decision of the same step, taken before a crash; anybody else's is told.

        Raises:
            CommandError: another step decided it.
        """

        def refuse(now: Incident) -> list[Draft]:
            _require_undecided(now, n)
            return []

        recorded = await self._responding.write(incident_id, via, refuse, step=f"checklist:{n}")
        change = _find(recorded.incident, n)
        path = path_of(change.checklist)
        made = [
            item
            for item in await knowledge.versions(self._store, path)
            if (item.incident, item.change) == (incident_id, n)
        ]
        if not made:
            raise CommandError(say("checklist.faster"), reason=Reason.CONFLICT)
        return _decision(recorded.incident, change, made[-1])

    async def roll_back(
        self, incident_id: str, name: str, to: int, reason: str, via: Via
    ) -> Decision:
        """Takes a checklist back to an earlier version (0: the file); later versions stay in the history.

        Raises:
            CommandError: no such checklist or version, it is there already, or somebody was faster.
        """
        now = await self._shelf.edition_of(name)
        if not 0 <= to <= now.number:
            raise CommandError(say("checklist.no_version", name=name, number=to))
        if to == now.number:
            raise CommandError(say("checklist.already_there", name=name, number=to))
        version = Version(
            path=now.path,
            number=now.number + 1,
            op=VersionOp.ROLLED_BACK,
            by=via.by,
            at=via.at,
            # The words are a person's, so they are in the timeline alone, where they can be taken back.
            reason=incident_id,
            incident=incident_id,
            to=to,
        )
        said = say("checklist.rolled_back", name=name, to=to, number=version.number, reason=reason)
        draft = _draft(said, via, op="rolled_back", checklist=name, to=to, version=version.number)
        recorded = await self._responding.write(
            incident_id,
            via,
            lambda _: [draft],
            step="rollback",
            extra=knowledge.add_version(version),
        )
        if recorded.is_new:
            return Decision(incident=recorded.incident, name=name, version=version.number)
        newest = (await self._shelf.edition_of(name)).versions[-1]
        if (newest.incident, newest.to, newest.by) != (incident_id, to, via.by):
            raise CommandError(say("checklist.faster"), reason=Reason.CONFLICT)
        return Decision(incident=recorded.incident, name=name, version=newest.number)

    async def record_checks(
        self,
        incident_id: str,
        runs: Sequence[CheckRun],
        via: Via,
        *,
        used: UsedChecklist | None = None,
        step: str = "checks",
    ) -> Recorded:
        """Records what checks came to, and counts it, once a check and incident; a newer answer replaces the older.

        used: the checklist that the incident works with from now on.
        """
        incident = (await self._journal.load(incident_id)).incident
        known = {(item.checklist, item.item): item for item in incident.checks}
        counted = Batch()
        # What an exercise answers tells nothing of which checks are worth keeping.
        for run in () if incident.drill else runs:
            before = known.get((run.checklist, run.item))
            counted.extend(
                knowledge.count([run])
                if before is None
                else knowledge.recount(run.checklist, run.item, before.outcome, run.outcome)
            )
        drafts: list[Draft] = []
        if used is not None:
            drafts.append(_draft(used_said(used), via, op="used", used=used.to_json()))
        if runs:
            checks = [run.to_json() for run in runs]
            drafts.append(_draft(runs_said(runs), via, op="checked", checks=checks))
        return await self._responding.write(
            incident_id, via, lambda _: drafts, step=step, extra=counted
        )

    async def _next(self, incident: Incident, change: ChecklistChange, via: Via) -> Version:
        path = path_of(change.checklist)
        number = await knowledge.head(self._store, path) + 1
        diff = change.diff
        if is_monitoring(change.checklist):
            parse_diff(diff)
        elif change.kind is ProposalKind.CAUSE:
            # The whole file anew: it takes the place of what an earlier incident made of the same cause.
            before = (await self._shelf.edition_of(change.checklist)).text if number > 1 else ""
            diff = diff_of(path, before, await self._shelf.after(change.checklist, diff))
        else:
            now = await self._shelf.edition_of(change.checklist)
            number = now.number + 1
            diff = diff_of(path, now.text, await self._shelf.after(change.checklist, diff))
        return Version(
            path=path,
            number=number,
            op=VersionOp.ACCEPTED,
            by=via.by,
            at=via.at,
            reason=change.reason or "",
            why=change.why,
            diff=diff,
            incident=incident.id,
            change=change.n,
        )

    async def _undecided(self, incident_id: str, n: int) -> ChecklistChange:
        incident = (await self._journal.load(incident_id)).incident
        _require_undecided(incident, n)
        return _find(incident, n)


def _decision(incident: Incident, change: ChecklistChange, version: Version) -> Decision:
    number = None if is_monitoring(change.checklist) else version.number
    return Decision(incident=incident, name=change.checklist, version=number)


def _find(incident: Incident, n: int) -> ChecklistChange:
    known = (*incident.checklist_changes, *incident.monitoring_changes)
    found = next((item for item in known if item.n == n), None)
    if found is None:
        raise CommandError(say("incident.no_checklist_change", n=n), reason=Reason.NOT_FOUND)
    return found


def _require_undecided(incident: Incident, n: int) -> None:
    change = _find(incident, n)
    if change.status is not ProposalStatus.PROPOSED:
        status = say(f"slack.proposal_{change.status.value}")
        said = say(
            "checklist.decided", n=n, incident=incident.id, status=status, who=f"<@{change.by}>"
        )
        raise CommandError(said, reason=Reason.CONFLICT)


def _draft(text: Localized, via: Via, **data: object) -> Draft:
    if via.message_ts is not None:
        data["ts"] = via.message_ts
    return Draft(
        kind=EntryKind.CHECKLIST,
        at=via.at,
        text=text,
        author=via.by,
        source=via.source,
        permalink=via.permalink,
        data=data,
    )
