"""Probe answers side by side: one row per probe, one cell per node, the odd node marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.cause import KnownFinding
from bot.diagnosis.layers import joined
from bot.diagnosis.wording import finding_words, not_read
from bot.domain.finding import FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.text import Localized
from bot.locales import say

MOST_CELLS = 120
_RANK = {FindingSeverity.INFO: 0, FindingSeverity.WARNING: 1, FindingSeverity.CRITICAL: 2}
_CLEAN = (".ok", "_ok", "_clean", ".clean", "_unchanged", "_expected", ".flat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one node answered. mark: `ok`, `info`, `warning`, `critical`, or `unknown` where it could not look."""

    node: str
    mark: str
    text: Localized
    is_odd: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """A node that answered none of several probes: said once, with why and how many."""

    node: str
    text: Localized
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One probe over all nodes; `is_split`: those that answered differ and none is the odd one."""

    probe: str
    cells: tuple[Cell, ...]
    is_split: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All answers; `more` counts cells that are left out."""

    nodes: tuple[str, ...]
    rows: tuple[Row, ...]
    silent: tuple[Silent, ...]
    more: int


def table(
    results: Sequence[Mapping[str, Any]], findings: Mapping[str, KnownFinding] | None = None
) -> Table:
    """The table of probe results in their wire shape; one that cannot be read is left out.

    findings: those that the catalogue knows, by id; their titles are in both languages.
    """
    known = findings or {}
    read = [result for item in results if (result := _read(item)) is not None]
    nodes = tuple(dict.fromkeys(result.node for result in read))
    silent = [found for node in nodes if (found := _silent(node, read, known)) is not None]
    gone = {item.node for item in silent}
    answered = [result for result in read if result.node not in gone]
    shown = answered[:MOST_CELLS]
    probes = dict.fromkeys(result.probe for result in shown)
    return Table(
        nodes=nodes,
        rows=tuple(
            _row(name, [item for item in shown if item.probe == name], known) for name in probes
        ),
        silent=tuple(silent),
        more=len(answered) - len(shown),
    )


def _silent(
    node: str, results: Sequence[ProbeResult], known: Mapping[str, KnownFinding]
) -> Silent | None:
    own = [result for result in results if result.node == node]
    words = {_text(result, known) for result in own if result.status is not ProbeStatus.OK}
    if len(own) < 2 or len(words) != 1 or any(r.status is ProbeStatus.OK for r in own):
        return None
    return Silent(node=node, text=words.pop(), count=len(own))


def _read(value: Mapping[str, Any]) -> ProbeResult | None:
    try:
        return ProbeResult.from_json(value)
    except (KeyError, ValueError, TypeError):
        return None


def _row(probe: str, results: Sequence[ProbeResult], known: Mapping[str, KnownFinding]) -> Row:
    kinds = {result.node: _kind(result) for result in results}
    counts = Counter(kinds.values()).most_common()
    most = counts[0][1] if counts else 0
    # Odd is who differs from a majority; among equals nobody is.
    has_majority = len(results) > 2 and most * 2 > len(results)
    usual = counts[0][0] if has_majority else None
    cells = tuple(
        Cell(
            node=result.node,
            mark=_mark(result),
            text=_text(result, known),
            is_odd=usual is not None and kinds[result.node] != usual,
        )
        for result in results
    )
    answers = {kinds[item.node] for item in results if item.status is ProbeStatus.OK}
    return Row(probe=probe, cells=cells, is_split=usual is None and len(answers) > 1)


def _kind(result: ProbeResult) -> tuple[str, ...]:
    if result.status is not ProbeStatus.OK:
        return (result.status.value,)
    return tuple(sorted({finding.id for finding in result.findings}))


def _mark(result: ProbeResult) -> str:
    if result.status is not ProbeStatus.OK or not result.findings:
        return "unknown"
    worst = max(result.findings, key=lambda finding: _RANK[finding.severity])
    if worst.severity is FindingSeverity.INFO:
        return "ok" if all(item.id.endswith(_CLEAN) for item in result.findings) else "info"
    return worst.severity.value


def _text(result: ProbeResult, known: Mapping[str, KnownFinding]) -> Localized:
    if result.status is not ProbeStatus.OK:
        return not_read(result)
    if not result.findings:
        return say("slack.cell_nothing_text")
    ranked = sorted(result.findings, key=lambda item: -_RANK[item.severity])[:4]
    return joined([finding_words(item, known.get(item.id)) for item in ranked])
