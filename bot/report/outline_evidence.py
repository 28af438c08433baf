"""The sections that show what was seen: the sources with their evidence, and the charts."""

from __future__ import annotations

from collections.abc import Callable

from bot.domain.evidence import EvidenceSource, SourceState
from bot.domain.instant import Window
from bot.domain.postmortem import CitedEvidence, ReportChart
from bot.report.blocks import Block, Figure, Paragraph, Row, Section, Subhead, Table, Tone
from bot.report.svg import clean_svg
from bot.report.wording import Wording, anchor_of, plain, safe_name

_STATE_TONES = {
    SourceState.OK: Tone.GOOD,
    SourceState.EMPTY: Tone.MUTED,
    SourceState.UNREACHABLE: Tone.BAD,
}
_EXPECTED = ("metrics", "logs", "traces", "events", "probes")


def evidence_sections(words: Wording) -> tuple[Section, ...]:
    """Evidence by source, then the charts."""
    return _evidence(words), _charts(words)


def _evidence(words: Wording) -> Section:
    report = words.report
    blocks: list[Block] = [_sources(words)]
    for source in EvidenceSource:
        found = [item for item in report.evidence if item.evidence.source is source]
        if found:
            blocks.append(_of_source(words, source, found))
    if not report.evidence:
        blocks.append(Paragraph(spans=plain(words.t("evidence.none")), tone=Tone.MUTED))
    for key, ids in (("helped", report.helped), ("misled", report.misled)):
        if ids:
            blocks.append(Paragraph(spans=(*plain(words.t(f"evidence.{key}")), *words.refs(ids))))
    if report.gaps:
        blocks.append(_gaps(words))
    return Section(id="evidence", title=words.t("section.evidence"), blocks=tuple(blocks))


def _sources(words: Wording) -> Table:
    states = words.report.sources
    names = [*_EXPECTED, *(name for name in states if name not in _EXPECTED)]
    rows = []
    for name in names:
        state = states.get(name)
        text = words.t(f"source.state_{state.value if state else 'not_asked'}")
        tone = _STATE_TONES[state] if state else Tone.WARN
        rows.append(Row(cells=(plain(words.source_name(name)), plain(text, tone))))
    columns = (words.t("source.name"), words.t("source.state"))
    return Table(
        caption=words.t("source.caption"), columns=columns, rows=tuple(rows), widths=(30, 70)
    )


def _of_source(words: Wording, source: EvidenceSource, found: list[CitedEvidence]) -> Table:
    clock = words.clock
    windows = [item.evidence.window for item in found]
    day = clock.shared_day(at for window in windows for at in (window.start, window.end))
    span = clock.hours if day else clock.span
    rows = [_evidence_row(words, readings, span) for readings in _alike(found)]
    titles = (
        words.t("evidence.id"),
        words.t("evidence.summary"),
        words.t("evidence.where"),
        words.t("evidence.query"),
        words.t("evidence.window"),
        f"{words.t('evidence.samples')} / {words.t('evidence.digest')}",
    )
    key = "evidence.caption_day" if day else "evidence.caption"
    caption = words.t(key, source=words.source_name(source), count=len(found), day=day)
    return Table(caption=caption, columns=titles, rows=tuple(rows), widths=(12, 25, 11, 29, 12, 11))


def _alike(found: list[CitedEvidence]) -> list[list[CitedEvidence]]:
    """The same question with the same outcome, asked again in a later pass, is one row; the newest reading last."""
    groups: dict[tuple[object, ...], list[CitedEvidence]] = {}
    for cited in found:
        item = cited.evidence
        asked = (item.plugin, item.query, item.component, item.node, item.finding)
        groups.setdefault((*asked, item.is_abnormal), []).append(cited)
    return [sorted(group, key=lambda cited: cited.evidence.window.end) for group in groups.values()]


def _evidence_row(
    words: Wording, readings: list[CitedEvidence], span: Callable[[Window], str]
) -> Row:
    *earlier, cited = readings
    item = cited.evidence
    verdict = (
        plain(words.t("evidence.abnormal"), Tone.BAD)
        if item.is_abnormal
        else plain(words.t("evidence.clean"), Tone.GOOD)
    )
    where = "\n".join(part for part in (item.component, item.node) if part)
    shown = plain(words.say(item.summary))
    if item.finding:
        shown = (*shown, *plain("\n"), *plain(item.finding, Tone.CODE))
    before = [name for name in dict.fromkeys(other.id for other in earlier) if name != cited.id]
    if before:
        ids = words.listed(before)
        shown = (*shown, *plain("\n"), *plain(words.t("evidence.earlier", ids=ids), Tone.MUTED))
    return Row(
        cells=(
            (*plain(cited.id, Tone.CODE), *plain("\n"), *verdict),
            shown,
            plain(where or "–"),
            (*plain(item.query, Tone.CODE), *plain("\n"), *plain(item.plugin, Tone.MUTED)),
            plain(span(item.window)),
            (*plain(str(item.samples)), *plain("\n"), *plain(item.digest[:8], Tone.MUTED)),
        ),
        anchor=anchor_of(cited.id),
        also=tuple(map(anchor_of, before)),
    )


def _gaps(words: Wording) -> Table:
    rows = tuple(
        Row(
            cells=(
                plain(words.source_name(gap.source.value)),
                plain(gap.query, Tone.CODE),
                plain(gap.node or "–"),
                plain(f"{gap.reason}: {gap.detail}" if gap.detail else gap.reason),
            )
        )
        for gap in words.report.gaps
    )
    columns = (
        words.t("source.name"),
        words.t("evidence.query"),
        words.t("evidence.where"),
        words.t("evidence.gap_reason"),
    )
    return Table(
        caption=words.t("evidence.gaps"), columns=columns, rows=rows, widths=(12, 38, 14, 36)
    )


def _charts(words: Wording) -> Section:
    charts = words.report.charts
    blocks: list[Block] = []
    names = figure_names(charts)
    for number, chart in enumerate(charts, 1):
        if not chart.is_after_fix:
            blocks += _figure(words, chart, number, names[number - 1])
    if not blocks:
        blocks.append(Paragraph(spans=plain(words.t("chart.none")), tone=Tone.MUTED))
    return Section(id="charts", title=words.t("section.charts"), blocks=tuple(blocks))


def fix_figures(words: Wording) -> list[Block]:
    """The charts that were taken after the fix: before and after in one picture."""
    charts = words.report.charts
    names = figure_names(charts)
    blocks: list[Block] = []
    for number, chart in enumerate(charts, 1):
        if chart.is_after_fix:
            blocks += _figure(words, chart, number, names[number - 1])
    return [Subhead(text=words.t("chart.after")), *blocks] if blocks else []


def figure_names(charts: tuple[ReportChart, ...]) -> list[str]:
    """A file name for each chart, unique even where unsafe characters made two the same."""
    return [f"{number:02d}-{safe_name(chart.id)}" for number, chart in enumerate(charts, 1)]


def _figure(words: Wording, chart: ReportChart, number: int, name: str) -> list[Block]:
    alt = words.say(chart.alt)
    drawn = chart.svg_in(words.locale)
    svg = clean_svg(drawn, name=name, alt=alt) if drawn is not None else None
    if svg is None and chart.png is None:
        missing = words.t("chart.missing", alt=alt)
        return [Paragraph(spans=plain(missing), tone=Tone.MUTED)]
    caption = f"{words.t('chart.figure', n=number)} · {words.say(chart.title)}"
    return [Figure(name=name, caption=caption, alt=alt, svg=svg, png=chart.png, csv=chart.csv)]
