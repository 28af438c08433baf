"""The sections that argue: hypotheses, experiments, the causal chain, layers, changes, blind spots."""

from __future__ import annotations

from bot.domain.hypothesis import Contribution, Hypothesis, HypothesisStatus, LayerState
from bot.domain.incident import ExperimentVerdict
from bot.report.blocks import (
    Block,
    Figure,
    Inline,
    Paragraph,
    Row,
    Section,
    Span,
    Subhead,
    Table,
    Tone,
)
from bot.report.chain_svg import chain_svg
from bot.report.outline_guards import guard_sections
from bot.report.wording import Wording, anchor_of, plain

_STATUS_TONES = {
    HypothesisStatus.CANDIDATE: Tone.PLAIN,
    HypothesisStatus.TESTING: Tone.WARN,
    HypothesisStatus.SUPPORTED: Tone.GOOD,
    HypothesisStatus.REJECTED: Tone.MUTED,
    HypothesisStatus.CONFIRMED: Tone.GOOD,
}
_VERDICT_TONES = {
    ExperimentVerdict.AS_PREDICTED: Tone.GOOD,
    ExperimentVerdict.CONTRARY: Tone.BAD,
    ExperimentVerdict.UNCLEAR: Tone.WARN,
}
_LAYER_TONES = {
    LayerState.ABNORMAL: Tone.BAD,
    LayerState.CLEAN: Tone.GOOD,
    LayerState.NOT_CHECKED: Tone.WARN,
}


# Twenty-eight candidates with all their reasons fill eight pages that nobody reads; the JSON export has them all.
ARGUED_PLACES = 5
ARGUED_PROBABILITY = 0.01


def cause_sections(words: Wording) -> tuple[Section, ...]:
    """From the ranked list to what could not be seen."""
    return (
        _hypotheses(words),
        _experiments(words),
        _chain(words),
        _layers(words),
        *guard_sections(words),
        _changes(words),
        _blind_spots(words),
    )


def _muted(text: str) -> Paragraph:
    return Paragraph(spans=plain(text), tone=Tone.MUTED)


def _hypotheses(words: Wording) -> Section:
    ranked = words.report.hypotheses
    title = words.t("section.hypotheses")
    if not ranked:
        blocks: tuple[Block, ...] = (_muted(words.t("hypothesis.none")),)
        return Section(id="hypotheses", title=title, blocks=blocks)
    rows = tuple(
        Row(
            cells=(
                plain(words.t("hypothesis.rank", n=n, title=words.say(item.title))),
                plain(words.percent(item.probability)),
                plain(
                    words.t(f"hypothesis.status_{item.status.value}"), _STATUS_TONES[item.status]
                ),
                plain("\n".join(part for part in (item.component, item.node) if part) or "–"),
                plain(words.t("list_comma").join(map(words.symptom_name, item.explains)) or "–"),
                _why_fell(words, item),
            )
        )
        for n, item in enumerate(ranked, 1)
    )
    names = ("cause", "probability", "status", "where", "explains", "reason")
    overview = Table(
        caption=words.t("hypothesis.overview"),
        columns=tuple(words.t(f"hypothesis.{name}") for name in names),
        rows=rows,
        widths=(22, 11, 11, 13, 16, 27),
    )
    argued: list[Block] = [overview]
    left_out = 0
    for n, item in enumerate(ranked, 1):
        if not (item.supports or item.against or item.missing):
            continue
        if not _is_argued(n, item):
            left_out += 1
            continue
        heading = words.t("hypothesis.rank", n=n, title=words.say(item.title))
        argued += [Subhead(text=heading), _contributions(words, item)]
    if left_out:
        argued.append(_muted(words.t("hypothesis.left_out", count=left_out)))
    return Section(id="hypotheses", title=title, blocks=tuple(argued))


def _is_argued(place: int, item: Hypothesis) -> bool:
    """Every reason is spelled out for what was in the running: the first ones, the likely, and what people decided on."""
    return (
        place <= ARGUED_PLACES
        or item.probability >= ARGUED_PROBABILITY
        or item.status is not HypothesisStatus.CANDIDATE
    )


def _why_fell(words: Wording, item: Hypothesis) -> Inline:
    if item.reason:
        return plain(item.reason)
    root = words.report.root_cause
    if root is None or item.cause in (root.cause, *root.chain):
        return plain("–", Tone.MUTED)
    strongest = min(item.against, key=lambda entry: entry.weight, default=None)
    if strongest is None:
        return plain(words.t("hypothesis.overtaken"), Tone.MUTED)
    return plain(words.say(strongest.summary))


def _contributions(words: Wording, item: Hypothesis) -> Table:
    rows = [_contribution(words, "for", entry, Tone.GOOD) for entry in item.supports]
    rows += [_contribution(words, "against", entry, Tone.BAD) for entry in item.against]
    rows += [
        Row(
            cells=(
                plain(words.t("hypothesis.missing"), Tone.WARN),
                plain(
                    words.t(
                        "hypothesis.why_missing",
                        what=words.say(entry.what),
                        why=words.say(entry.why),
                    )
                ),
                plain("–"),
                plain("–"),
            )
        )
        for entry in item.missing
    ]
    columns = (
        words.t("hypothesis.side"),
        words.t("evidence.summary"),
        words.t("hypothesis.weight"),
        words.t("hypothesis.evidence"),
    )
    caption = words.t("hypothesis.contributions")
    return Table(caption=caption, columns=columns, rows=tuple(rows), widths=(12, 56, 16, 16))


def _contribution(words: Wording, side: str, entry: Contribution, tone: Tone) -> Row:
    return Row(
        cells=(
            plain(words.t(f"hypothesis.{side}"), tone),
            plain(words.say(entry.summary)),
            plain(f"{entry.weight:+.2f}".replace("-", "\u2212")),
            words.refs((entry.ref,)),
        )
    )


def _experiments(words: Wording) -> Section:
    title = words.t("section.experiments")
    experiments = words.report.experiments
    if not experiments:
        return Section(id="experiments", title=title, blocks=(_muted(words.t("experiment.none")),))
    titles = {item.cause: words.say(item.title) for item in words.report.hypotheses}
    rows = []
    for item in experiments:
        verdict = (
            plain(words.t(f"experiment.{item.verdict.value}"), _VERDICT_TONES[item.verdict])
            if item.verdict
            else plain(words.t("experiment.not_run"), Tone.MUTED)
        )
        predicted: Inline = (
            *plain(words.say(item.predicted)),
            Span("\n"),
            Span(words.labelled("experiment.refute", words.say(item.would_refute)), Tone.MUTED),
        )
        result: Inline = plain(words.say(item.result)) or plain("–", Tone.MUTED)
        if item.result:
            result = (*result, Span("\n"), *words.refs(item.evidence))
        rows.append(
            Row(
                cells=(
                    (
                        *plain(words.test_name(item), Tone.CODE),
                        Span("\n"),
                        Span(titles.get(item.cause, item.cause), Tone.MUTED),
                    ),
                    predicted,
                    result,
                    verdict,
                    plain(f"{item.by}\n{words.stamp(item.at)}"),
                ),
                anchor=anchor_of(item.id),
            )
        )
    names = ("test", "predicted", "result", "verdict", "by")
    table = Table(
        caption=words.t("experiment.caption"),
        columns=tuple(words.t(f"experiment.{name}") for name in names),
        rows=tuple(rows),
        widths=(22, 27, 25, 11, 15),
    )
    return Section(id="experiments", title=title, blocks=(table,))


def _chain(words: Wording) -> Section:
    report = words.report
    title = words.t("section.chain")
    if not report.chain:
        return Section(id="chain", title=title, blocks=(_muted(words.t("chain.none")),))
    links = " \u2190 ".join(words.say(link.title) for link in report.chain)
    figure = Figure(
        name="causal-chain",
        caption=words.t("chain.caption"),
        alt=words.t("chain.alt", chain=links),
        svg=chain_svg(words).encode(),
    )
    return Section(id="chain", title=title, blocks=(figure,))


def _layers(words: Wording) -> Section:
    title = words.t("section.layers")
    layers = words.report.layers
    if not layers:
        return Section(id="layers", title=title, blocks=(_muted(words.t("layer.none")),))
    rows = tuple(
        Row(
            cells=(
                plain(words.t(f"layer.{item.layer.value}")),
                plain(words.t(f"layer.state_{item.state.value}"), _LAYER_TONES[item.state]),
                plain(words.say(item.why)),
            )
        )
        for item in layers
    )
    columns = tuple(words.t(f"layer.{name}") for name in ("name", "state", "why"))
    table = Table(caption=words.t("layer.caption"), columns=columns, rows=rows, widths=(18, 16, 66))
    return Section(id="layers", title=title, blocks=(table,))


def _changes(words: Wording) -> Section:
    report = words.report
    window = report.changes_window
    searched = (
        words.t("change.searched", span=words.clock.span(window))
        if window
        else words.t("change.not_searched")
    )
    blocks: list[Block] = [Paragraph(spans=plain(searched))]
    if window and not report.changes:
        blocks.append(_muted(words.t("change.none")))
    if report.changes:
        rows = tuple(
            Row(
                cells=(
                    (
                        *plain(words.stamp(item.change.at)),
                        Span("\n"),
                        Span(item.change.id, Tone.CODE),
                    ),
                    plain(words.t(f"change.kind_{item.change.kind.value}")),
                    plain(item.change.service or "–"),
                    plain(item.change.summary),
                    plain(item.change.by or "–"),
                    plain(words.t("change.suspected"), Tone.BAD)
                    if item.is_suspect
                    else plain(words.t("change.not_suspected"), Tone.MUTED),
                ),
                anchor=anchor_of(item.change.id),
            )
            for item in report.changes
        )
        names = ("at", "kind", "service", "summary", "by", "suspect")
        columns = tuple(words.t(f"change.{name}") for name in names)
        caption = words.t("change.caption")
        blocks.append(
            Table(caption=caption, columns=columns, rows=rows, widths=(21, 12, 14, 31, 12, 10))
        )
    return Section(id="changes", title=words.t("section.changes"), blocks=tuple(blocks))


def _blind_spots(words: Wording) -> Section:
    title = words.t("section.blind_spots")
    spots = words.report.blind_spots
    if not spots:
        return Section(id="blind-spots", title=title, blocks=(_muted(words.t("blind.none")),))
    rows = tuple(Row(cells=(plain(words.say(s.what)), plain(words.say(s.why)))) for s in spots)
    columns = (words.t("blind.what"), words.t("blind.why"))
    table = Table(caption=title, columns=columns, rows=rows, widths=(45, 55))
    return Section(id="blind-spots", title=title, blocks=(table,))
