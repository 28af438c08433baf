"""What is proposed for the checklists and what people decide about it: each decision is one durable step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.checklist.diffs import diff_of, parse_diff
from bot.domain.checklist import (
    ChecklistChange,
    CheckRun,
    ProposalStatus,
    UsedChecklist,
    Version,
    VersionOp,
)
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.journal import Journal, Recorded
from bot.incidents.responding import Responding, Via
from bot.incidents.shelf import Shelf, path_of
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
        if change.kind.is_monitoring or "/" in change.checklist:
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
        incident = (await self._journal.load(incident_id)).incident
        for _ in range(_ATTEMPTS):
            change = _find(incident, n)
            version = await self._next(incident, change, via)

            def make(now: Incident, accepted: Version = version) -> list[Draft]:
                _require_undecided(now, n)
                said = say("incident.checklist_accepted", n=n)
                return [_draft(said, via, op="accepted", n=n, version=accepted.number)]

            recorded = await self._responding.write(
                incident_id, via, make, step=f"checklist:{n}", extra=knowledge.add_version(version)
            )
            incident = recorded.incident
            decided = _find(incident, n)
            if recorded.is_new or decided.status is ProposalStatus.ACCEPTED:
                is_file = not version.path.startswith("checklists/")
                return Decision(
                    incident=incident,
                    name=decided.checklist,
                    version=None if is_file else version.number,
                )
        raise CommandError(say("checklist.faster"), reason=Reason.CONFLICT)

    async def roll_back(
        self, incident_id: str, name: str, to: int, reason: str, via: Via
    ) -> Decision:
        """Takes a checklist back to an earlier version (0: the file); later versions stay in the history.

        Raises:
            CommandError: no such checklist or version, it is there already, or somebody was faster.
        """
        now = (await self._shelf.one(name)).edition
        if not 0 <= to <= now.number:
            raise CommandError(say("checklist.no_version", name=name, number=to))
        if to == now.number:
            raise CommandError(say("checklist.already_there", name=name, number=to))
        version = Version(
            path=path_of(name),
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
        if not recorded.is_new and (await self._shelf.one(name)).edition.number < version.number:
            raise CommandError(say("checklist.faster"), reason=Reason.CONFLICT)
        return Decision(incident=recorded.incident, name=name, version=version.number)

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
        known = {
            (item.checklist, item.item): item
            for item in (await self._journal.load(incident_id)).incident.checks
        }
        counted = Batch()
        for run in runs:
            before = known.get((run.checklist, run.item))
            counted.extend(
                knowledge.count([run])
                if before is None
                else knowledge.recount(run.checklist, run.item, before.outcome, run.outcome)
            )
        drafts: list[Draft] = []
        if used is not None:
            drafts.append(_draft(_used(used), via, op="used", used=used.to_json()))
        if runs:
            checks = [run.to_json() for run in runs]
            drafts.append(_draft(_said(runs), via, op="checked", checks=checks))
        return await self._responding.write(
            incident_id, via, lambda _: drafts, step=step, extra=counted
        )

    async def _next(self, incident: Incident, change: ChecklistChange, via: Via) -> Version:
        reason = change.reason or ""
        if "/" in change.checklist:
            path = f"{change.checklist}.yaml"
            number = await knowledge.head(self._store, path) + 1
            diff = change.diff
            parse_diff(diff)
        else:
            path = path_of(change.checklist)
            now = (await self._shelf.one(change.checklist)).edition
            number = now.number + 1
            diff = diff_of(path, now.text, await self._shelf.after(change.checklist, change.diff))
        return Version(
            path=path,
            number=number,
            op=VersionOp.ACCEPTED,
            by=via.by,
            at=via.at,
            reason=reason,
            diff=diff,
            incident=incident.id,
            change=change.n,
        )

    async def _undecided(self, incident_id: str, n: int) -> ChecklistChange:
        incident = (await self._journal.load(incident_id)).incident
        _require_undecided(incident, n)
        return _find(incident, n)


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


def _used(used: UsedChecklist) -> Localized:
    learned = sorted({item.learned_from for item in used.checks if item.learned_from})
    said = say("checklist.entry_used", name=used.id, version=used.version, count=len(used.checks))
    if not learned:
        return said
    more = say("checklist.entry_taught", ids=Localized(", ".join(learned), "、".join(learned)))
    return Localized(f"{said.en} {more.en}", f"{said.zh}{more.zh}")


def _said(runs: Sequence[CheckRun]) -> Localized:
    lines = [
        say(
            "checklist.entry_learned" if run.learned_from else "checklist.entry_one",
            item=run.item,
            id=run.learned_from or "",
            outcome=say(f"checklist.outcome_{run.outcome.value}"),
            summary=run.summary,
        )
        for run in runs
    ]
    said = Localized("; ".join(line.en for line in lines), "；".join(line.zh for line in lines))
    return say("checklist.entry_checked", name=runs[0].checklist if runs else "", said=said)


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
