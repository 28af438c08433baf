"""What changed code is able to do: steps dropped, names changed, things that grow, wait, leak or point elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bot.diagnosis.changes.diff import Difference, parts_of
from bot.diagnosis.changes.patterns import PATTERNS
from bot.diagnosis.changes.trouble import Effect, Trouble

_NAMED, _UNNAMED = 0.9, 0.3
_SURE, _LIKELY = 0.9, 0.6
"""How far the text alone carries: an effect that an error names is sure, a pattern that may be harmless is likely."""

_NAME = re.compile(r"[\w.:-]{2,40}")
_BOUND = re.compile(
    r"\blru\b|evict|bounded|\bmax_?\w*|capacity|\bcap\(|limit|\bring\b|trim|prune", re.IGNORECASE
)
_SHARED = re.compile(
    r"^\s*(?:var|static|global|private static|export const|let)\s+(\w+)"
    r"|^(\w+)\s*(?::\s*\w+.*)?=\s*(?:\[\]|\{\}|list\(|dict\(|map)"
)
_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_][\w.]*)")
_MIGRATION = re.compile(r"migrat|\.sql$|schema", re.IGNORECASE)
_BLOCKING = re.compile(r"\.Lock\(\)|mutex|synchronized|time\.sleep|Sleep\(|\.join\(\)|\.result\(\)|for update", re.IGNORECASE)  # fmt: skip
_VERBOSE = re.compile(r"level[\"']?\s*[:=]\s*[\"']?(debug|trace|all)\b", re.IGNORECASE)
_GUARD = re.compile(
    r"\bif\b.*(\bnil\b|\bnull\b|\bNone\b|undefined|!ok\b|\blen\(|\.length|err\s*!=)"
)
_CLOSING = re.compile(
    r"\.(Close|close|release|Release|Stop|cancel|dispose|unlock|Unlock)\(\)|\bdefer\b|\bwith\b.*:$"
)
_LOOP = re.compile(r"^\s*(for|while)\b|\.(forEach|map)\(")
_ASKING = re.compile(r"\.(Query\w*|Exec\w*|Find\w*|Get\w*|fetch\w*|query|execute|findOne|findById|load\w*)\(")  # fmt: skip
_ADDRESS = re.compile(r"https?://[\w.:-]+|\b[\w-]+(?:\.[\w-]+){2,}(?::\d+)?\b")
_SECRET = re.compile(
    r"secret|token|password|credential|cert|\bkey_?(id|name|path)?\b", re.IGNORECASE
)
_INDEX = re.compile(r"\bDROP\s+(INDEX|TABLE|COLUMN)|\bALTER\s+TABLE", re.IGNORECASE)


def code_effects(
    difference: Difference, files: Sequence[str], spoken: frozenset[str]
) -> Iterable[Effect]:
    """Every effect that shows in the lines; `spoken` are the words of the errors."""
    yield from _dropped(difference)
    yield from _renamed(difference, spoken)
    yield from _growing(difference)
    yield from _new_data(difference, files)
    yield from _pointing_elsewhere(difference)
    for kind, pattern, side, troubles, strength, detail in _NEWLY:
        here, there = difference.lines_came, difference.lines_gone
        if side == "gone":
            here, there = there, here
        if any(map(pattern.search, here)) and not any(map(pattern.search, there)):
            yield Effect(kind=kind, troubles=troubles, strength=strength, detail=detail)
    for known in PATTERNS:
        if known.is_in(difference.lines_gone, difference.lines_came):
            yield Effect(
                kind=known.kind, troubles=known.troubles, strength=known.strength, detail=known.detail,
            )  # fmt: skip
    came = difference.lines_came
    if any(map(_LOOP.search, came)) and any(map(_ASKING.search, came)):
        looped = [at for at, line in enumerate(came) if _LOOP.search(line)]
        asked = [at for at, line in enumerate(came) if _ASKING.search(line)]
        if any(0 < ask - loop <= 6 for loop in looped for ask in asked):
            yield Effect(
                kind="asks_in_loop", troubles=frozenset({Trouble.LOAD, Trouble.TIMEOUT}),
                strength=_LIKELY, detail="asks once for each element of a loop",
            )  # fmt: skip


_NEWLY: tuple[tuple[str, re.Pattern[str], str, frozenset[Trouble], float, str], ...] = (
    ("verbose", _VERBOSE, "came", frozenset({Trouble.STORAGE}), 1.0, "logs far more than before"),
    ("blocking", _BLOCKING, "came", frozenset({Trouble.TIMEOUT, Trouble.CAPACITY}), _LIKELY,
     "waits or locks where it did not"),
    ("guard", _GUARD, "gone", frozenset({Trouble.START, Trouble.RESULT}), _LIKELY,
     "no longer looks before it uses a value"),
    ("leak", _CLOSING, "gone", frozenset({Trouble.CAPACITY, Trouble.MEMORY}), _SURE,
     "no longer gives back what it takes"),
    ("index", _INDEX, "came", frozenset({Trouble.MISSING, Trouble.LOAD, Trouble.TIMEOUT}), _SURE,
     "takes something away from a database"),
)  # fmt: skip


def _dropped(difference: Difference) -> Iterable[Effect]:
    for hunk in difference.hunks:
        names = {name for line in hunk.gone for name in re.findall(r"(\w+)\([^)]*\)", line)}
        lost = sorted(names & set(difference.gone))
        if lost and not hunk.came:
            yield Effect(
                kind="dropped", troubles=frozenset({Trouble.MISSING, Trouble.START}),
                strength=_SURE, detail=f"no longer calls {', '.join(lost)}",
            )  # fmt: skip


def _renamed(difference: Difference, spoken: frozenset[str]) -> Iterable[Effect]:
    gone = sorted(text for text in difference.strings_gone if _NAME.fullmatch(text))
    came = sorted(text for text in difference.strings_came if _NAME.fullmatch(text))
    if gone and came:
        yield Effect(
            kind="renamed", troubles=frozenset({Trouble.FORMAT, Trouble.MISSING}),
            strength=_NAMED if parts_of([*gone, *came]) & spoken else _UNNAMED,
            detail=f"{', '.join(gone[:3])} became {', '.join(came[:3])}",
        )  # fmt: skip


def _growing(difference: Difference) -> Iterable[Effect]:
    added = "\n".join(difference.lines_came)
    shared = {
        m[1] or m[2] for line in difference.lines_came if (m := _SHARED.match(line)) is not None
    }
    growing = sorted(
        name
        for name in shared
        if re.search(
            rf"\b{re.escape(name)}\b\s*(=\s*append\(|\[[^\]]+\]\s*=[^=]|\.(append|push|add|put|set)\()",
            added,
        )
    )
    if growing and not _BOUND.search(added):
        yield Effect(
            kind="growing", troubles=frozenset({Trouble.MEMORY}), strength=1.0,
            detail=f"{', '.join(growing)} only ever grows",
        )  # fmt: skip


def _new_data(difference: Difference, files: Sequence[str]) -> Iterable[Effect]:
    before = {name for line in difference.lines_gone for name in _TABLE.findall(line)}
    after = {name for line in difference.lines_came for name in _TABLE.findall(line)}
    new = sorted(after - before)
    if new and not any(_MIGRATION.search(name) for name in files):
        yield Effect(
            kind="new_data", troubles=frozenset({Trouble.MISSING}), strength=_SURE,
            detail=f"reads {', '.join(new)} and brings no migration",
        )  # fmt: skip


def _pointing_elsewhere(difference: Difference) -> Iterable[Effect]:
    before = {a for line in difference.lines_gone for a in _ADDRESS.findall(line)}
    after = {a for line in difference.lines_came for a in _ADDRESS.findall(line)}
    if before - after and after - before:
        yield Effect(
            kind="address", troubles=frozenset({Trouble.NAMES, Trouble.ACCESS, Trouble.CAPACITY}),
            strength=_LIKELY, detail=f"points to {', '.join(sorted(after - before)[:2])}",
        )  # fmt: skip
    if any(map(_SECRET.search, difference.lines_gone)) and any(
        map(_SECRET.search, difference.lines_came)
    ):
        yield Effect(
            kind="secret", troubles=frozenset({Trouble.ACCESS}), strength=_LIKELY,
            detail="uses another key, token or certificate",
        )  # fmt: skip
