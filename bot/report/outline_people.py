"""The sections that belong to people: what they wrote, how far they have taken the report, and what is still asked."""

from __future__ import annotations

from bot.domain.postmortem import (
    REQUIRED_TOPICS,
    Judgement,
    JudgementTopic,
    ReportRevision,
    ReportState,
    RevisionKind,
)
from bot.report.blocks import Block, Inline, Paragraph, Row, Section, Span, Subhead, Table, Tone
from bot.report.wording import Wording, plain

_STATE_TONES = {
    ReportState.DRAFT: Tone.MUTED,
    ReportState.REVIEWED: Tone.WARN,
    ReportState.FINAL: Tone.GOOD,
}


def people_sections(words: Wording) -> tuple[Section, ...]:
    """What only people can write, and the revisions."""
    return _judgement(words), _revisions(words)


def state_blocks(words: Wording) -> list[Block]:
    """For the top of the report: whether somebody has read it, and what keeps it from being final."""
    report = words.report
    blocks: list[Block] = []
    if report.is_drill:
        blocks.append(Paragraph(spans=plain(words.t("drill_banner")), tone=Tone.WARN))
    read = report.reviewed
    if report.header.state is ReportState.DRAFT or read is None:
        blocks.append(Paragraph(spans=plain(words.t("draft_banner")), tone=Tone.MUTED))
    else:
        key = f"{report.header.state.value}_banner"
        said = words.t(key, by=read.by, at=words.stamp(read.at))
        blocks.append(Paragraph(spans=plain(said), tone=_STATE_TONES[report.header.state]))
    return blocks


def obstacle_blocks(words: Wording) -> list[Block]:
    """What is claimed without evidence and what nobody has written; none of it once the report is final."""
    report = words.report
    blocks: list[Block] = []
    if report.unsupported:
        text = words.t("unsupported_banner", claims=words.listed(claim_names(words)))
        blocks.append(Paragraph(spans=plain(text), tone=Tone.WARN))
    if report.unanswered:
        asked = words.listed(
            words.t(f"judgement.short_{topic.value}") for topic in report.unanswered
        )
        text = words.t("unanswered_banner", topics=asked)
        blocks.append(Paragraph(spans=plain(text), tone=Tone.MUTED))
    return blocks


def claim_names(words: Wording) -> list[str]:
    """What is claimed without evidence, each with the id under which evidence can be named for it."""
    titles = {f"chain:{link.cause}": words.say(link.title) for link in words.report.chain}
    tests = {f"experiment:{item.id}": words.test_name(item) for item in words.report.experiments}
    named = []
    for claim in words.report.unsupported:
        title = titles.get(claim) or tests.get(claim) or words.t(f"claim.{claim}")
        named.append(f"{title} ({claim})" if ":" in claim else title)
    return named


def _judgement(words: Wording) -> Section:
    is_final = words.report.header.state is ReportState.FINAL
    intro = Paragraph(spans=plain(words.t("judgement.intro")), tone=Tone.MUTED)
    blocks: list[Block] = [] if is_final else [intro]
    for item in words.report.judgements:
        blocks.append(Subhead(text=words.t(f"judgement.{item.topic.value}")))
        answer = _answer(words, item)
        if item.answer is not None and item.by and item.at:
            said = words.t("judgement.by", by=item.by, at=words.stamp(item.at))
            # One paragraph: a page never breaks between an answer and its author.
            answer = (*answer, Span("\n"), Span(said, Tone.MUTED))
        blocks.append(Paragraph(spans=answer))
    return Section(id="judgement", title=words.t("section.judgement"), blocks=tuple(blocks))


def _answer(words: Wording, item: Judgement) -> Inline:
    is_final = words.report.header.state is ReportState.FINAL
    key = "required" if item.topic in REQUIRED_TOPICS else "left_empty" if is_final else "empty"
    return plain(words.say(item.answer)) or plain(words.t(f"judgement.{key}"), Tone.MUTED)


def _revisions(words: Wording) -> Section:
    title = words.t("section.revisions")
    found = words.report.revisions
    if not found:
        none = Paragraph(spans=plain(words.t("revision.none")), tone=Tone.MUTED)
        return Section(id="revisions", title=title, blocks=(none,))
    rows = tuple(
        Row(
            cells=(
                plain(str(item.n)),
                plain(words.stamp(item.at)),
                plain(item.by),
                plain(_what(words, item)),
                plain(words.t(f"badge.state.{item.state.value}"), _STATE_TONES[item.state]),
            )
        )
        for item in found
    )
    columns = tuple(words.t(f"revision.{name}") for name in ("n", "at", "by", "what", "state"))
    table = Table(caption=title, columns=columns, rows=rows, widths=(6, 24, 18, 38, 14))
    return Section(id="revisions", title=title, blocks=(table,))


def _what(words: Wording, item: ReportRevision) -> str:
    key = f"revision.{item.kind.value}"
    if item.kind is RevisionKind.EDITED:
        topics = set(JudgementTopic)
        named = [
            words.t(f"judgement.short_{name}") if name in topics else name.removeprefix("claim:")
            for name in item.details
        ]
    else:
        named = list(item.details)
    return words.labelled(key, words.listed(named)) if named else words.t(key)
