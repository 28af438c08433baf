"""Puts a postmortem into sections of neutral blocks, in one language."""

from __future__ import annotations

from bot.domain.alert import Alert
from bot.domain.postmortem import (
    Answer,
    Postmortem,
    TimelineLine,
)
from bot.domain.text import Locale
from bot.domain.timeline import SYSTEM_AUTHOR
from bot.report.blocks import (
    Block,
    Card,
    Cards,
    Page,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    Tone,
)
from bot.report.clock import duration_text, size_text
from bot.report.outline_cause import cause_sections
from bot.report.outline_evidence import evidence_sections
from bot.report.outline_facts import facts_section
from bot.report.outline_followup import appendix_section, followup_sections
from bot.report.outline_key import key_facts
from bot.report.outline_people import obstacle_blocks, people_sections, state_blocks
from bot.report.wording import Wording, plain, web_address

_SEVERITY_TONES = {"sev1": Tone.BAD, "sev2": Tone.WARN}
_STATUS_TONES = {
    "open": Tone.BAD,
    "mitigated": Tone.WARN,
    "recovered": Tone.GOOD,
    "resolved": Tone.GOOD,
}


def outline(report: Postmortem, locale: Locale) -> Page:
    """The report as a page of sections; every text in it is raw and has to be escaped by the format."""
    words = Wording.of(report, locale)
    header = report.header
    services = words.listed(header.services) or words.t("no_service")
    sections = (
        _summary(words),
        facts_section(words),
        _impact(words),
        _timeline(words),
        *evidence_sections(words),
        *cause_sections(words),
        *followup_sections(words),
        *people_sections(words),
        appendix_section(words),
    )
    return Page(
        id=header.id,
        title=f"{header.id} · {header.title}",
        subtitle=words.t("subtitle", services=services),
        badges=(
            Span(header.severity.value, _SEVERITY_TONES.get(header.severity.value, Tone.PLAIN)),
            Span(
                words.t(f"badge.status.{header.status.value}"),
                _STATUS_TONES[header.status.value],
            ),
            Span(words.t(f"badge.state.{header.state.value}"), Tone.MUTED),
        ),
        lang=locale.value,
        zone=report.zone,
        footer=words.t("footer", id=header.id, version=report.version, zone=report.zone),
        sections=sections,
    )


def _summary(words: Wording) -> Section:
    report = words.report
    blocks = state_blocks(words)
    if not report.is_established:
        blocks.append(Paragraph(spans=plain(words.t("not_established.banner")), tone=Tone.WARN))
    blocks.append(key_facts(words))
    blocks.append(Cards(cards=tuple(_card(words, answer) for answer in report.answers)))
    if report.root_cause:
        root = report.root_cause
        confirmed = words.t("confirmed_by", by=root.by, at=words.stamp(root.at))
        blocks.append(Paragraph(spans=plain(confirmed)))
    blocks += obstacle_blocks(words)
    return Section(id="summary", title=words.t("section.summary"), blocks=tuple(blocks))


def _card(words: Wording, answer: Answer) -> Card:
    title = words.t(f"answer.{answer.question.value}")
    if answer.text is None:
        body = list(plain(_unanswered(words, answer)))
        return Card(title=title, body=tuple(body), tone=Tone.WARN)
    body = list(plain(words.say(answer.text)))
    if answer.needs_evidence:
        body += [
            Span("\n"),
            Span(words.t("evidence_refs"), Tone.MUTED),
            *words.refs(answer.evidence),
        ]
    return Card(title=title, body=tuple(body), tone=Tone.GOOD)


def _unanswered(words: Wording, answer: Answer) -> str:
    if words.report.is_established:
        return words.t("not_established.no_trigger")
    text = words.t("not_established.text")
    candidates = [item for item in words.report.hypotheses if item.cause != "not_established"]
    if answer.question.value != "deep_cause" or not candidates:
        return text
    best = max(candidates, key=lambda item: item.probability)
    nearest = words.t(
        "not_established.leading",
        title=words.say(best.title),
        probability=words.percent(best.probability),
    )
    return f"{text} {nearest}"


def _impact(words: Wording) -> Section:
    report = words.report
    blocks: list[Block] = []
    if report.symptoms:
        unknown = plain(words.t("symptom.unknown"), Tone.MUTED)
        rows = tuple(
            Row(
                cells=(
                    plain(item.id, Tone.CODE),
                    plain(words.say(item.summary)),
                    plain(item.scope or "") or unknown,
                    plain(words.since(item.since)) or unknown,
                    plain(item.metric or "", Tone.CODE) or unknown,
                )
            )
            for item in report.symptoms
        )
        columns = tuple(
            words.t(f"symptom.{key}") for key in ("id", "what", "scope", "since", "metric")
        )
        blocks.append(
            Table(
                caption=words.t("symptom.caption"),
                columns=columns,
                rows=rows,
                widths=(8, 30, 16, 20, 26),
            )
        )
    else:
        blocks.append(Paragraph(spans=plain(words.t("symptom.none")), tone=Tone.MUTED))
    if report.alerts:
        rows = tuple(
            Row(
                cells=(
                    plain(alert.name, Tone.STRONG),
                    plain(alert.summary),
                    plain(words.stamp(alert.starts_at)),
                    plain(words.stamp(alert.ends_at)) or plain(words.t("alerts.firing"), Tone.BAD),
                    plain(_lasted(words, alert)) or plain("–", Tone.MUTED),
                )
            )
            for alert in report.alerts
        )
        columns = tuple(
            words.t(f"alerts.{key}") for key in ("name", "summary", "starts", "ends", "lasted")
        )
        blocks.append(
            Table(
                caption=words.t("alerts.caption"),
                columns=columns,
                rows=rows,
                widths=(25, 26, 18, 18, 13),
            )
        )
    return Section(id="impact", title=words.t("section.impact"), blocks=tuple(blocks))


def _lasted(words: Wording, alert: Alert) -> str:
    if alert.ends_at is None:
        return ""
    seconds = (alert.ends_at - alert.starts_at).total_seconds()
    return duration_text(max(0.0, seconds), words.locale)


def _timeline(words: Wording) -> Section:
    lines = words.report.timeline
    clock = words.clock
    day = clock.shared_day(line.at for line in lines)
    offset = clock.shared_offset(line.at for line in lines)
    key, write = "caption", clock.precise
    if day or offset:
        key, write = ("caption_day", clock.time) if day else ("caption_offset", clock.bare)
    rows = tuple(_line(words, line, write(line.at)) for line in lines)
    columns = tuple(words.t(f"timeline.{key}") for key in ("seq", "at", "who", "what", "text"))
    table = Table(
        caption=words.t(f"timeline.{key}", count=len(rows), day=day, offset=offset),
        columns=columns,
        rows=rows,
        widths=(6, 13, 16, 12, 53) if day else (6, 22, 14, 12, 46),
        is_log=True,
    )
    return Section(id="timeline", title=words.t("section.timeline"), blocks=(table,))


def _line(words: Wording, line: TimelineLine, at: str) -> Row:
    text: list[Span] = []
    if line.is_withheld:
        text.append(Span(words.t("timeline.withheld"), Tone.MUTED))
    else:
        text += plain(words.say(line.text))
    for file in line.files:
        name = words.t("timeline.file", name=file.name, size=size_text(file.size_bytes))
        text += [Span("\n"), Span(name, Tone.MUTED)]
    for revision in line.history:
        earlier = words.t("timeline.earlier", at=words.clock.precise(revision.replaced_at))
        text += [Span("\n"), Span(earlier, Tone.MUTED), Span(words.say(revision.text), Tone.MUTED)]
    if line.corrects is not None:
        note = words.t("timeline.corrects", seq=line.corrects)
        text += [Span("\n"), Span(note, Tone.MUTED, f"#t-{line.corrects}")]
    if line.corrected_by is not None:
        note = words.t("timeline.corrected_by", seq=line.corrected_by)
        text += [Span("\n"), Span(note, Tone.WARN, f"#t-{line.corrected_by}")]
    link = web_address(line.permalink)
    who: list[Span] = [Span(line.author)]
    if line.source not in ("slack", SYSTEM_AUTHOR, line.author):
        via = words.t("timeline.via", source=line.source)
        # The space stands where a narrow page drops the line break.
        who += [Span("\n"), Span(f" {via}", Tone.MUTED)]
    return Row(
        cells=(
            (Span(str(line.seq), Tone.PLAIN if link else Tone.MUTED, link),),
            plain(at),
            tuple(who),
            plain(words.t(f"kind.{line.kind.value}")),
            tuple(text),
        ),
        anchor=f"t-{line.seq}",
        tone=Tone.MUTED if line.is_withheld else Tone.PLAIN,
    )
