"""Finds the lines that match a pattern: one scan per pattern and pass, however many causes and nodes ask."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from string import ascii_lowercase, ascii_uppercase

from bot.source import LogLine


class LineSearch:
    """Lines of one place, searchable as a whole; what was found is kept for the next cause that asks."""

    def __init__(self, lines: Sequence[LogLine] = ()) -> None:
        self._lines = tuple(lines)
        texts = [line.text.replace("\n", " ").translate(_SMALL) for line in self._lines]
        self._text = "\n".join(texts)
        self._starts: list[int] = []
        at = 0
        for text in texts:
            self._starts.append(at)
            at += len(text) + 1
        self._found: dict[str, tuple[LogLine, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def matching(self, pattern: str) -> tuple[LogLine, ...]:
        """The lines that match, in their own order; upper and lower case are the same."""
        if pattern not in self._found:
            self._found[pattern] = tuple(self._lines[at] for at in self._scan(_compiled(pattern)))
        return self._found[pattern]

    def _scan(self, pattern: re.Pattern[str]) -> list[int]:
        """One search over all lines joined is far cheaper than one per line; a match over a line's end is none."""
        hits: list[int] = []
        at, end = 0, len(self._text)
        while self._lines and at <= end:
            match = pattern.search(self._text, at)
            if match is None:
                break
            line = bisect_right(self._starts, match.start()) - 1
            following = self._starts[line + 1] if line + 1 < len(self._starts) else end + 1
            if match.end() < following or pattern.search(
                self._text[self._starts[line] : following - 1]
            ):
                hits.append(line)
            at = following
        return hits


_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
_UNESCAPED = re.compile(r"\\.|[A-Z]+")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Small letters on both sides find the same as ignoring case does, several times as fast."""
    small = _UNESCAPED.sub(lambda m: m[0] if m[0][0] == "\\" else m[0].lower(), pattern)
    return re.compile(small, re.MULTILINE)
