"""The part of a proposal that a person can reword: the lines that it adds, where they stand together."""

from __future__ import annotations

from collections.abc import Sequence

from bot.checklist.diffs import NOTHING, Hunk, lines_of, parse_diff, text_of
from bot.errors import CommandError
from bot.locales import say

MOST_CHARACTERS = 2_900
"""What a Slack input takes is 3,000 characters; the rest is left for what a person adds."""


def editable(diff: str) -> str | None:
    """The added lines; None where they stand in several places, or are too many for a form."""
    hunk = _only_hunk(diff)
    if hunk is None or hunk.start == 0:
        return None
    places = [place for place, (mark, _) in enumerate(hunk.lines) if mark == "+"]
    is_one_piece = bool(places) and places[-1] - places[0] + 1 == len(places)
    text = text_of(hunk.added)
    return text if is_one_piece and len(text) <= MOST_CHARACTERS else None


def edited(diff: str, added: str) -> str:
    """The diff with other lines added in the same place.

    Raises:
        CommandError: it cannot be edited, or nothing would be left of it.
    """
    hunk = _only_hunk(diff)
    if hunk is None or editable(diff) is None:
        raise CommandError(say("checklist.edit_not_here"))
    # A form may hand back other line ends, and trailing blanks are never meant.
    wanted = [line.rstrip() for line in lines_of(added.replace("\r\n", "\n").strip("\n"))]
    if not any(line.strip() for line in wanted):
        raise CommandError(say("checklist.edit_empty"))
    indent = hunk.added[0][: len(hunk.added[0]) - len(hunk.added[0].lstrip())]
    if wanted[0] == wanted[0].lstrip():
        # A form takes the blanks off the beginning of a text.
        wanted[0] = indent + wanted[0]
    first = next(place for place, (mark, _) in enumerate(hunk.lines) if mark == "+")
    kept = [line for line in hunk.lines if line[0] != "+"]
    lines = [*kept[:first], *(("+", text) for text in wanted), *kept[first:]]
    return _written(parse_diff(diff)[0].path, hunk.start, lines)


def _only_hunk(diff: str) -> Hunk | None:
    try:
        files = parse_diff(diff)
    except CommandError:
        return None
    return files[0].hunks[0] if len(files) == 1 and len(files[0].hunks) == 1 else None


def _written(path: str, start: int, lines: Sequence[tuple[str, str]]) -> str:
    old = sum(mark != "+" for mark, _ in lines)
    new = sum(mark != "-" for mark, _ in lines)
    before = f"a/{path}" if start else NOTHING
    header = f"@@ -{start},{old} +{max(start, 1)},{new} @@"
    body = [f"{mark}{text}" for mark, text in lines]
    return text_of([f"--- {before}", f"+++ b/{path}", header, *body])
