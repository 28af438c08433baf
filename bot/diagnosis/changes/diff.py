"""A unified diff as values: lines that went and came, and the words that differ between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_COMMENT = re.compile(r"^\s*(//|#(?!include)|--\s|/\*|\*(\s|/|$)|<!--|;;)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_QUOTED = re.compile(r"(?:\"([^\"\n]{1,80})\")|(?:'([^'\n]{1,80})')")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One stretch of code lines; comments and blank lines are left out."""

    gone: tuple[str, ...]
    came: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a change did to the text.

    gone / came: words that there are fewer or more of than before; words that only moved are in neither.
    """

    hunks: tuple[Hunk, ...]
    gone: Mapping[str, int]
    came: Mapping[str, int]
    strings_gone: frozenset[str]
    strings_came: frozenset[str]

    @property
    def lines_gone(self) -> tuple[str, ...]:
        """All removed code lines."""
        return tuple(line for hunk in self.hunks for line in hunk.gone)

    @property
    def lines_came(self) -> tuple[str, ...]:
        """All added code lines."""
        return tuple(line for hunk in self.hunks for line in hunk.came)


def read_diff(text: str) -> Difference:
    r"""Reads a diff, however incomplete its headers are.

    >>> read_diff("-  level: info\n+  level: debug").came["debug"]
    1
    """
    hunks: list[Hunk] = []
    gone: list[str] = []
    came: list[str] = []

    def close() -> None:
        if gone or came:
            hunks.append(Hunk(gone=tuple(gone), came=tuple(came)))
            gone.clear()
            came.clear()

    for line in text.splitlines():
        if line.startswith(("@@", "diff ", "+++", "---", "index ")):
            close()
        elif line[:1] in "-+" and line[1:].strip() and not _COMMENT.match(line[1:]):
            (gone if line[0] == "-" else came).append(line[1:])
    close()
    before = Counter(word for hunk in hunks for line in hunk.gone for word in _WORD.findall(line))
    after = Counter(word for hunk in hunks for line in hunk.came for word in _WORD.findall(line))
    strings_before = {s for h in hunks for line in h.gone for s in _strings(line)}
    strings_after = {s for h in hunks for line in h.came for s in _strings(line)}
    return Difference(
        hunks=tuple(hunks),
        gone=before - after,
        came=after - before,
        strings_gone=frozenset(strings_before - strings_after),
        strings_came=frozenset(strings_after - strings_before),
    )


def _strings(line: str) -> list[str]:
    return [double or single for double, single in _QUOTED.findall(line)]


def parts_of(words: Iterable[str]) -> frozenset[str]:
    """Lower-case parts of identifiers and sentences, three letters at least.

    >>> sorted(parts_of(["CASRetry_policy"]))
    ['cas', 'policy', 'retry']
    """
    return frozenset(
        part.lower() for word in words for part in _PART.findall(word) if len(part) >= 3
    )
