"""What people do to the report: write their sections, name evidence, find it right, release it, take it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.domain.incident import Incident
from bot.domain.postmortem import JudgementTopic, Postmortem, ReportState
from bot.domain.report_news import ReportOp
from bot.domain.responder import Role
from bot.domain.text import Localized, listed
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.journal import Recorded
from bot.incidents.responding import Responding, Via
from bot.locales import say


class Reviewing:
    """The verbs of a report. A final report changes only after it was taken back to draft."""

    def __init__(self, responding: Responding) -> None:
        self._responding = responding

    async def edit(
        self,
        incident_id: str,
        via: Via,
        *,
        texts: Mapping[JudgementTopic, str],
        evidence: Mapping[str, Sequence[str]],
    ) -> Recorded:
        """Keeps the words of people's sections and the evidence that they name for claims; back to draft.

        texts: only what changed; an empty text empties its section. evidence: claim to ids.

        Raises:
            CommandError: the report is final, or an id names no evidence and no change of this incident.
        """

        def make(incident: Incident) -> list[Draft]:
            _refuse_final(incident)
            known = {item.id for item in incident.evidence} | {c.id for c in incident.changes}
            unknown = [ref for ids in evidence.values() for ref in ids if ref not in known]
            if unknown:
                raise CommandError(say("review.no_such_evidence", ids=listed(unknown[:10])))
            drafts = [
                _draft(via, Localized.verbatim(text), ReportOp.EDITED, topic=topic.value)
                for topic, text in texts.items()
            ]
            drafts += [
                _draft(
                    via,
                    say("review.cited", claim=claim, ids=listed(ids)),
                    ReportOp.CITED,
                    claim=claim,
                    evidence=list(ids),
                )
                for claim, ids in evidence.items()
                if ids
            ]
            return drafts

        return await self._responding.write(incident_id, via, make, step="report_edit")

    async def review(self, incident_id: str, via: Via) -> Recorded:
        """Records that a person has read the report and finds it right; whoever does it becomes the reviewer.

        Raises:
            CommandError: somebody else is the reviewer, or the report is past that.
        """

        def make(incident: Incident) -> list[Draft]:
            _refuse_final(incident)
            if incident.report_state == ReportState.REVIEWED:
                raise CommandError(say("review.already_reviewed"), reason=Reason.CONFLICT)
            return [*_as_reviewer(incident, via), _moved(via, ReportState.REVIEWED)]

        return await self._responding.write(incident_id, via, make, step="report_review")

    async def finalise(self, incident_id: str, via: Via, report: Postmortem) -> Recorded:
        """Releases the report. report: as it stands now.

        Raises:
            CommandError: nobody has reviewed it, or it claims or lacks something; the text lists what.
        """

        def make(incident: Incident) -> list[Draft]:
            _refuse_final(incident)
            if incident.report_state != ReportState.REVIEWED:
                raise CommandError(say("review.not_reviewed"), reason=Reason.CONFLICT)
            if (why := obstacles(report)) is not None:
                raise CommandError(why, reason=Reason.CONFLICT)
            return [*_as_reviewer(incident, via), _moved(via, ReportState.FINAL)]

        return await self._responding.write(incident_id, via, make, step="report_final")

    async def reopen(self, incident_id: str, via: Via) -> Recorded:
        """Takes a reviewed or final report back to draft.

        Raises:
            CommandError: it is a draft.
        """

        def make(incident: Incident) -> list[Draft]:
            if incident.report_state == ReportState.DRAFT:
                raise CommandError(say("review.is_draft"), reason=Reason.CONFLICT)
            return [_draft(via, say("review.reopened"), ReportOp.REOPENED)]

        return await self._responding.write(incident_id, via, make, step="report_reopen")


def obstacles(report: Postmortem) -> Localized | None:
    """What keeps a report from being final, by name; None when nothing does."""
    claims = report.unsupported
    unfounded = say("review.unsupported", claims=listed(claims)) if claims else None
    topics = [say(f"report.judgement.short_{topic.value}") for topic in report.unanswered]
    unwritten = say("review.unanswered", topics=listed(topics)) if topics else None
    parts = [part for part in (unfounded, unwritten) if part is not None]
    if not parts:
        return None
    reasons = Localized(" ".join(part.en for part in parts), "".join(part.zh for part in parts))
    return say("review.refused", reasons=reasons)


def _refuse_final(incident: Incident) -> None:
    if incident.report_state == ReportState.FINAL:
        raise CommandError(say("review.is_final"), reason=Reason.CONFLICT)


def _as_reviewer(incident: Incident, via: Via) -> list[Draft]:
    """The reviewer may; where there is none, whoever reviews becomes it."""
    reviewer = incident.roles.get(Role.REVIEWER)
    if reviewer == via.by:
        return []
    if reviewer is not None:
        raise CommandError(
            say("review.not_the_reviewer", reviewer=f"<@{reviewer}>"), reason=Reason.UNAUTHORISED
        )
    return [
        Draft(
            kind=EntryKind.ROLE,
            at=via.at,
            text=say("review.is_reviewer"),
            author=via.by,
            source=via.source,
            data={"role": Role.REVIEWER.value, "user": via.by},
        )
    ]


def _moved(via: Via, state: ReportState) -> Draft:
    return _draft(via, say(f"review.{state.value}"), ReportOp(state.value), state=state)


def _draft(
    via: Via,
    text: Localized,
    op: ReportOp,
    *,
    state: ReportState = ReportState.DRAFT,
    **data: object,
) -> Draft:
    return Draft(
        kind=EntryKind.REPORT,
        at=via.at,
        text=text,
        author=via.by,
        source=via.source,
        permalink=via.permalink,
        data={"op": op.value, "state": state.value, **data},
    )
