"""Writes checklist items as YAML lines, so that whatever an incident holds stays one quoted text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.checklist.diffs import lines_of, text_of
from bot.checklist.reading import MOST_TEXT, Checklist
from bot.domain.text import Localized

# What YAML reads as a line break, or does not take at all, even between quotes.
# Marks that turn the direction of writing or show nothing are spelled out too: a reviewer must see them.
_UNSAFE = re.compile(
    r"[^\x20-\x7e\xa0-\u200a\u2010-\u2027\u202f-\u205f\u2070-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A check that is to be added."""

    id: str
    text: Localized
    step: str = "information"
    probe: str | None = None
    query: str | None = None
    above: float | None = None
    below: float | None = None


def quoted(text: str) -> str:
    r"""A text as one double-quoted YAML scalar on one line.

    >>> print(quoted('a "b"\u2028c'))
    "a \"b\"\u2028c"
    """
    return _UNSAFE.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(_whole(text), ensure_ascii=False)
    )


def _whole(text: str) -> str:
    """Half a surrogate pair has no encoding; it becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def localized(text: Localized, indent: str) -> list[str]:
    """The two lines of a text in both languages."""
    return [
        f"{indent}en: {quoted(text.en[:MOST_TEXT].strip() or '-')}",
        f"{indent}zh-CN: {quoted(text.zh[:MOST_TEXT].strip() or '-')}",
    ]


def appended(checklist: Checklist, incident_id: str, items: Sequence[NewItem]) -> str:
    """The checklist's text with these items at its end, each with the incident that taught it."""
    indent = " " * _indent(checklist)
    taken = {item.id for item in checklist.items}
    lines = lines_of(checklist.source)
    for item in items:
        name = item.id
        if name in taken:
            name = f"{item.id}-{incident_id.lower()}"
        number = 2
        while name in taken:
            name = f"{item.id}-{incident_id.lower()}-{number}"
            number += 1
        taken.add(name)
        lines += [f"{indent}- id: {name}", f"{indent}  step: {item.step}"]
        lines += [f"{indent}  probe: {item.probe}"] if item.probe else []
        lines += [f"{indent}  query: {quoted(item.query)}"] if item.query else []
        lines += [f"{indent}  above: {item.above:g}"] if item.above is not None else []
        lines += [f"{indent}  below: {item.below:g}"] if item.below is not None else []
        lines += [f"{indent}  learned_from: {incident_id}", f"{indent}  text:"]
        lines += localized(item.text, f"{indent}    ")
    return text_of(lines)


def moved(checklist: Checklist, item_id: str, before_id: str) -> str:
    """The checklist's text with one item before another."""
    item = next(item for item in checklist.items if item.id == item_id)
    target = next(item for item in checklist.items if item.id == before_id)
    lines = lines_of(checklist.source)
    block = lines[item.first_line - 1 : item.last_line]
    del lines[item.first_line - 1 : item.last_line]
    lines[target.first_line - 1 : target.first_line - 1] = block
    return text_of(lines)


def without(checklist: Checklist, item_ids: Sequence[str]) -> str:
    """The checklist's text without these items."""
    lines = lines_of(checklist.source)
    gone = {
        number
        for item in checklist.items
        if item.id in item_ids
        for number in range(item.first_line - 1, item.last_line)
    }
    return text_of([line for number, line in enumerate(lines) if number not in gone])


def with_bound(checklist: Checklist, item_id: str, value: float) -> str:
    """The checklist's text with another bound of an item's query."""
    item = next(item for item in checklist.items if item.id == item_id)
    lines = lines_of(checklist.source)
    for number in range(item.first_line - 1, item.last_line):
        found = re.match(r"^(\s*(?:- )?(?:above|below): ).*$", lines[number])
        if found:
            lines[number] = f"{found[1]}{value:g}"
    return text_of(lines)


def _indent(checklist: Checklist) -> int:
    line = lines_of(checklist.source)[checklist.items[-1].first_line - 1]
    return len(line) - len(line.lstrip())
