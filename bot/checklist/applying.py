"""Applies an accepted change to a checklist that may have moved on since it was proposed."""

from __future__ import annotations

import re

from bot.errors import CommandError, Reason
from bot.locales import say

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def apply_change(text: str, diff: str) -> str:
    """The checklist's text after a change, also where other changes have moved the place it was made for.

    Raises:
        CommandError: the lines that the change was made for are no longer there.
    """
    lines = text.splitlines()
    moved = 0
    for start, before, after in _hunks(diff):
        wanted = start - 1 + moved
        places = [
            i for i in range(len(lines) - len(before) + 1) if lines[i : i + len(before)] == before
        ]
        if not places:
            raise CommandError(say("report.checklist.conflict"), reason=Reason.CONFLICT)
        place = min(places, key=lambda i: abs(i - wanted))
        lines[place : place + len(before)] = after
        moved = place - (start - 1) + len(after) - len(before)
    return "\n".join(lines) + "\n"


def _hunks(diff: str) -> list[tuple[int, list[str], list[str]]]:
    hunks: list[tuple[int, list[str], list[str]]] = []
    for line in diff.splitlines():
        if header := _HUNK.match(line):
            hunks.append((int(header[1]), [], []))
        elif hunks:
            _, before, after = hunks[-1]
            if line[:1] in (" ", "-", ""):
                before.append(line[1:])
            if line[:1] in (" ", "+", ""):
                after.append(line[1:])
    return hunks
