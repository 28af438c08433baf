"""The sections about what was done: mitigations, fix, checklist, action items, raw results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.action_item import ActionItem
from bot.domain.checklist import CheckOutcome
from bot.domain.incident import Fix
from bot.domain.postmortem import RawProbe
from bot.report.blocks import (
    Block,
    Details,
    Diff,
    Facts,
    Inline,
    Paragraph,
    Row,
    Section,
    Span,
    Subhead,
    Table,
    Tone,
)
from bot.report.outline_evidence import fix_figures
from bot.report.proposal_files import shown_diff
from bot.report.wording import Wording, plain

RAW_LIMIT = 8_000
"""Characters of one raw probe result in the report: some three pages; one result may be 64 KiB."""

_CHECK_TONES = {
    CheckOutcome.FOUND: Tone.BAD,
    CheckOutcome.CLEAN: Tone.GOOD,
    CheckOutcome.UNKNOWN: Tone.WARN,
    CheckOutcome.SKIPPED: Tone.MUTED,
}
_PROBE_TONES = {"ok": Tone.GOOD, "unsupported": Tone.MUTED}


def followup_sections(words: Wording) -> tuple[Section, ...]:
    """From the first mitigation to what is left to do."""
    return (
        _mitigations(words),
        _fix(words),
        _checklist(words),
        _actions(words),
    )


def _muted(text: str) -> Paragraph:
    return Paragraph(spans=plain(text), tone=Tone.MUTED)


def _withheld(words: Wording) -> Inline:
    return plain(words.t("timeline.withheld"), Tone.MUTED)


def _mitigations(words: Wording) -> Section:
    title = words.t("section.mitigations")
    done = words.report.mitigations
    if not done:
        return Section(id="mitigations", title=title, blocks=(_muted(words.t("mitigation.none")),))
    rows = tuple(
        Row(
            cells=(
                plain(words.stamp(item.at)),
                plain(item.by),
                plain(words.say(item.text)) or _withheld(words),
                plain(words.listed(item.captured), Tone.CODE)
                or plain(words.t("mitigation.nothing"), Tone.WARN),
            )
        )
        for item in done
    )
    columns = tuple(words.t(f"mitigation.{name}") for name in ("at", "by", "text", "captured"))
    table = Table(caption=title, columns=columns, rows=rows, widths=(21, 14, 40, 25))
    return Section(id="mitigations", title=title, blocks=(table,))


def _fix(words: Wording) -> Section:
    title = words.t("section.fix")
    fix = words.report.fix
    if fix is None:
        return Section(id="fix", title=title, blocks=(_muted(words.t("fix.none")),))
    rows: tuple[tuple[str, Inline], ...] = (
        (words.t("fix.text"), plain(words.say(fix.text)) or _withheld(words)),
        (words.t("fix.by"), plain(fix.by)),
        (words.t("fix.at"), plain(words.stamp(fix.at))),
        (words.t("fix.verified"), _verification(words, fix)),
    )
    return Section(id="fix", title=title, blocks=(Facts(rows=rows), *fix_figures(words)))


def _verification(words: Wording, fix: Fix) -> Inline:
    if fix.verified is None:
        return plain(words.t("fix.unknown"), Tone.WARN)
    said = (
        Span(words.t("fix.gone"), Tone.GOOD)
        if fix.verified
        else Span(words.t("fix.still_there"), Tone.BAD)
    )
    return (said, Span(" "), *words.refs(fix.evidence))


def _checks(words: Wording) -> list[Block]:
    """What was looked at because the checklist says so, and which incident taught it."""
    checks = words.report.checks
    if not checks:
        return []
    rows = tuple(
        Row(
            cells=(
                plain(words.say(item.text)),
                plain(words.t(f"check.{item.outcome.value}"), _CHECK_TONES[item.outcome]),
                plain(words.say(item.summary)),
                plain(item.learned_from or "–"),
                plain(item.by),
            )
        )
        for item in checks
    )
    columns = tuple(
        words.t(f"check.{name}") for name in ("what", "outcome", "summary", "from", "by")
    )
    caption = words.t("check.caption", checklist=checks[0].checklist, version=checks[0].version)
    return [Table(caption=caption, columns=columns, rows=rows, widths=(30, 12, 32, 12, 14))]


def _checklist(words: Wording) -> Section:
    report = words.report
    blocks = _checks(words)
    for change in report.checklist_changes:
        status = words.t(f"checklist.status_{change.status.value}")
        heading = words.t(
            "checklist.heading", n=change.n, checklist=change.checklist, status=status
        )
        blocks.append(Subhead(text=heading))
        reason = words.say(report.checklist_reasons.get(change.n)) or change.reason
        if reason:
            blocks.append(Paragraph(spans=plain(words.t("checklist.reason", reason=reason))))
        blocks.append(Diff(text=change.diff))
    for proposal in report.monitoring_changes:
        status = words.t(f"checklist.status_{proposal.status.value}")
        heading = words.t("checklist.monitoring", kind=proposal.kind.value, status=status)
        blocks.append(Subhead(text=heading))
        why = words.say(report.checklist_reasons.get(proposal.n)) or proposal.reason
        if why:
            blocks.append(Paragraph(spans=plain(words.t("checklist.reason", reason=why))))
        blocks.append(Diff(text=shown_diff(proposal.diff)))
    if not (report.checklist_changes or report.monitoring_changes):
        blocks.append(_muted(words.t("checklist.none")))
    return Section(id="checklist", title=words.t("section.checklist"), blocks=tuple(blocks))


def _actions(words: Wording) -> Section:
    title = words.t("section.actions")
    items = words.report.action_items
    if not items:
        return Section(id="actions", title=title, blocks=(_muted(words.t("action.none")),))
    rows = tuple(
        Row(
            cells=(
                plain(str(item.n)),
                (plain(words.say(item.text)) or _withheld(words)) + _issue(item),
                plain(item.owner or "") or plain(words.t("action.nobody"), Tone.WARN),
                plain(item.due or "") or plain(words.t("action.no_date"), Tone.WARN),
                plain(words.t(f"action.status_{item.status.value}")),
            )
        )
        for item in items
    )
    columns = tuple(words.t(f"action.{name}") for name in ("n", "text", "owner", "due", "status"))
    table = Table(caption=title, columns=columns, rows=rows, widths=(7, 49, 17, 15, 12))
    return Section(id="actions", title=title, blocks=(table,))


def _issue(item: ActionItem) -> Inline:
    """The issue that an action item became, by its number."""
    if item.issue_url is None:
        return ()
    number = item.issue_url.rstrip("/").rpartition("/")[2]
    return (Span("\n"), Span(f"#{number}", Tone.PLAIN, item.issue_url))


def appendix_section(words: Wording) -> Section:
    """Each probe result as its node answered it, and what was masked."""
    report = words.report
    blocks: list[Block] = []
    if report.probes:
        groups = _alike(report.probes)
        rows = tuple(_probe_row(words, runs) for runs in groups)
        names = ("name", "node", "status", "duration", "findings", "purpose", "entry")
        columns = tuple(words.t(f"probe.{name}") for name in names)
        blocks.append(
            Table(
                caption=words.t("probe.caption"),
                columns=columns,
                rows=rows,
                widths=(17, 10, 12, 10, 32, 10, 9),
            )
        )
        blocks += [_raw(words, runs) for runs in groups]
    else:
        blocks.append(_muted(words.t("probe.none")))
    if report.masked:
        kinds = words.listed(
            words.t(f"masked.{kind}", count=n) for kind, n in report.masked.items()
        )
        blocks.append(_muted(words.t("masked.note", kinds=kinds)))
    return Section(id="appendix", title=words.t("section.appendix"), blocks=tuple(blocks))


def _alike(probes: Sequence[RawProbe]) -> list[list[RawProbe]]:
    """Runs of one probe on one node that came to the same are one row: each pass asks the nodes anew."""
    groups: dict[tuple[object, ...], list[RawProbe]] = {}
    for probe in probes:
        result = probe.result
        found = tuple((finding.id, finding.summary) for finding in result.findings)
        kind = (result.probe, result.node, result.status, result.error, result.truncated)
        groups.setdefault((*kind, found, probe.purpose), []).append(probe)
    return list(groups.values())


def _duration(runs: list[RawProbe]) -> str:
    texts = [f"{seconds:.2f}" for seconds in sorted(run.result.duration_seconds for run in runs)]
    return f"{texts[0]} s" if texts[0] == texts[-1] else f"{texts[0]}–{texts[-1]} s"


def _purpose(words: Wording, probe: RawProbe) -> str:
    """Why it was run; a purpose that the catalogue does not know keeps its own name."""
    try:
        return words.t(f"probe.purpose_{probe.purpose}")
    except KeyError:
        return probe.purpose or "–"


def _entries(runs: list[RawProbe]) -> Inline:
    spans: list[Span] = []
    for seq in dict.fromkeys(run.seq for run in runs):
        spans += [Span(" ")] if spans else []
        spans.append(Span(str(seq), Tone.PLAIN, f"#t-{seq}"))
    return tuple(spans)


def _probe_row(words: Wording, runs: list[RawProbe]) -> Row:
    probe = runs[-1]
    result = probe.result
    found = "\n".join(f"{finding.id}: {finding.summary}" for finding in result.findings)
    if result.error:
        found = f"{found}\n{result.error}".strip()
    status = plain(result.status.value, _PROBE_TONES.get(result.status.value, Tone.WARN))
    if result.truncated:
        status = (*status, Span("\n"), Span(words.t("probe.truncated"), Tone.WARN))
    return Row(
        cells=(
            plain(result.probe, Tone.CODE),
            plain(result.node),
            status,
            plain(_duration(runs)),
            plain(found) or plain(words.t("probe.no_findings"), Tone.MUTED),
            plain(_purpose(words, probe)),
            _entries(runs),
        )
    )


def _raw(words: Wording, runs: list[RawProbe]) -> Details:
    """What the node answered in each of the runs, the oldest first."""
    last = runs[-1].result
    seqs = words.listed(str(seq) for seq in dict.fromkeys(run.seq for run in runs))
    summary = words.t("probe.raw", probe=last.probe, node=last.node, seq=seqs)
    texts = []
    known = set()
    for run in runs:
        answer = run.result.to_json()
        when = {name: answer.pop(name) for name in ("started_at", "duration_s")}
        said = _json(answer, indent=None)
        # Each pass asks every node anew: the same answer again is told by when it came.
        texts.append(_json(when, indent=None) if said in known else _json(answer | when, indent=2))
        known.add(said)
    return Details(summary=summary, text="\n".join(_shortened(words, text) for text in texts))


def _json(value: Mapping[str, Any], *, indent: int | None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=True, default=str)


def _shortened(words: Wording, text: str) -> str:
    if len(text) <= RAW_LIMIT:
        return text
    left = len(text) - RAW_LIMIT
    return f"{text[:RAW_LIMIT]}\n{words.t('probe.shortened', left=left)}"
