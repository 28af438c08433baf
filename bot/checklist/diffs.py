"""Unified diffs of knowledge files: made, read strictly, and applied where the file has moved on since."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NoReturn

from bot.errors import CommandError, Reason
from bot.locales import say

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_PATH = re.compile(r"(?:[\w.-]+/)*[\w-][\w.-]*")
NOTHING = "/dev/null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One place of a change. start: its first line in the old file, from 1. lines: mark (` `, `-`, `+`) and text."""

    start: int
    lines: tuple[tuple[str, str], ...]

    @property
    def before(self) -> list[str]:
        """The lines as they were."""
        return [text for mark, text in self.lines if mark != "+"]

    @property
    def added(self) -> list[str]:
        """The lines that are new."""
        return [text for mark, text in self.lines if mark == "+"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """The change of one file; `path` is relative, without the `b/` before it."""

    path: str
    hunks: tuple[Hunk, ...]


def lines_of(text: str) -> list[str]:
    r"""The lines of a file, split at `\n` only: a line separator within a quoted text is no new line.

    >>> lines_of("a\u2028b\nc\n")
    ['a\u2028b', 'c']
    """
    return text.removesuffix("\n").split("\n") if text else []


def text_of(lines: Sequence[str]) -> str:
    """The file of these lines."""
    return "\n".join(lines) + "\n" if lines else ""


def diff_of(path: str, before: str, after: str) -> str:
    """The unified diff of one file; empty when nothing changes. A file that is new comes from `/dev/null`."""
    old = f"a/{path}" if before else NOTHING
    lines = difflib.unified_diff(lines_of(before), lines_of(after), old, f"b/{path}", lineterm="")
    return text_of(list(lines))


def parse_diff(diff: str) -> tuple[FileDiff, ...]:
    """Reads a diff of one or more files. Hunks are read by their counts, so that no line of a file can pose as a header.

    Raises:
        CommandError: it is none.
    """
    files: list[FileDiff] = []
    lines = lines_of(diff)
    at = 0
    while at < len(lines):
        if not (at + 1 < len(lines) and lines[at].startswith("--- ")):
            _refuse()
        header = lines[at + 1]
        path = header.removeprefix("+++ ").removeprefix("b/")
        if not header.startswith("+++ ") or not _PATH.fullmatch(path) or ".." in path:
            _refuse()
        at += 2
        hunks: list[Hunk] = []
        while at < len(lines) and (found := _HUNK.match(lines[at])):
            hunk, at = _hunk(lines, at + 1, found)
            hunks.append(hunk)
        if not hunks:
            _refuse()
        files.append(FileDiff(path=path, hunks=tuple(hunks)))
    return tuple(files)


def _hunk(lines: Sequence[str], at: int, header: re.Match[str]) -> tuple[Hunk, int]:
    old, new = int(header[2] or 1), int(header[3] or 1)
    read: list[tuple[str, str]] = []
    while old or new:
        if at >= len(lines):
            _refuse()
        # An editor that strips trailing blanks turns an empty line of context into nothing.
        mark, text = lines[at][:1] or " ", lines[at][1:]
        if mark not in (" ", "-", "+"):
            _refuse()
        old -= mark != "+"
        new -= mark != "-"
        if old < 0 or new < 0:
            _refuse()
        read.append((mark, text))
        at += 1
    return Hunk(start=int(header[1]), lines=tuple(read)), at


def merged(lines: Sequence[str], change: FileDiff, *, adds_at_end: bool = False) -> list[int | str]:
    """The file after a change: each line as its place in `lines`, or as its text where it is new.

    What is only added stays behind the lines that it came after, where others have been added there meanwhile.
    adds_at_end: it goes to the end of the file where its neighbours are no longer there.

    Raises:
        CommandError: the lines that the change was made for are no longer there.
    """
    place_of: list[int | str] = list(range(len(lines)))
    now = list(lines)
    moved = 0
    for hunk in change.hunks:
        wanted = hunk.start - 1 + moved
        before = hunk.before
        places = _places(now, before)
        if not places and not any(mark == "-" for mark, _ in hunk.lines):
            if adds_at_end:
                place_of += hunk.added
                now += hunk.added
                continue
            lead = [text for _, text in takewhile(lambda line: line[0] == " ", hunk.lines)]
            if ends := [start + len(lead) for start in _places(now, lead) if lead]:
                at = min(ends, key=lambda end: abs(end - wanted - len(lead)))
                place_of[at:at] = hunk.added
                now[at:at] = hunk.added
                moved += len(hunk.added)
                continue
        if not places:
            raise CommandError(say("report.checklist.conflict"), reason=Reason.CONFLICT)
        place = min(places, key=lambda i: abs(i - wanted))
        result: list[int | str] = []
        texts: list[str] = []
        at = place
        for mark, text in hunk.lines:
            if mark == "+":
                result.append(text)
                texts.append(text)
                continue
            if mark == " ":
                result.append(place_of[at])
                texts.append(text)
            at += 1
        place_of[place:at] = result
        now[place:at] = texts
        moved += len(texts) - len(before) + (place - wanted)
    return place_of


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where `wanted` stands in `lines`."""
    return [
        i for i in range(len(lines) - len(wanted) + 1) if list(lines[i : i + len(wanted)]) == wanted
    ]


def apply_change(text: str, diff: str, *, adds_at_end: bool = False) -> str:
    """A file's text after the change of it, also where other changes have moved the place it was made for.

    adds_at_end: as in `merged`, for a file whose last key is a list.

    Raises:
        CommandError: the lines that the change was made for are no longer there, or `diff` is not of one file.
    """
    changes = parse_diff(diff)
    if len(changes) != 1:
        _refuse()
    lines = lines_of(text)
    after = merged(lines, changes[0], adds_at_end=adds_at_end)
    return text_of([item if isinstance(item, str) else lines[item] for item in after])


def files_of(diff: str) -> dict[str, str]:
    """The files that a diff of new files makes, by path.

    Raises:
        CommandError: it is no such diff.
    """
    return {
        item.path: text_of([line for hunk in item.hunks for line in hunk.added])
        for item in parse_diff(diff)
    }


def _refuse() -> NoReturn:
    raise CommandError(say("checklist.no_diff"), reason=Reason.MALFORMED)
