"""Reads rendered text into blocks.

A template's output is made of sections, separated by a line `---`:

| first characters of a section | becomes |
| --- | --- |
| `# ` | a header (plain text) |
| `~ ` | small print |
| `[buttons NAME]` alone | the buttons of that group; left out where the group is empty |
| `===` alone | a divider |
| anything else | text |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.blockkit import limits
from bot.slack.split import sections
from bot.slack.text import cut, escape, unescape

_BUTTONS = re.compile(r"^\[buttons(?: ([\w:.-]+))?\]$")
_TOKEN = re.compile(r"<([^<>|\n]+)\|([^<>\n]*)>")
_LIKE_TOKEN = re.compile(r"<(?=[!@#])")
_BLANK = re.compile(r"\n{3,}")
_CONTEXT_TEXT = 1900
_ROW = 5

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A rendered message: blocks, and the text for notifications, search and screen readers."""

    blocks: tuple[Json, ...]
    text: str


def read(output: str, groups: Mapping[str, Sequence[Json]]) -> Shown:
    """Blocks and fallback text of a template's output; `groups` holds button elements by group name.

    Buttons of the group without a name stand last where the template has no place for them.
    """
    blocks: list[Json] = []
    spoken: list[str] = []
    placed: set[str] = set()
    for raw in re.split(r"^---[ \t]*$", output, flags=re.MULTILINE):
        body = _BLANK.sub("\n\n", "\n".join(line.rstrip() for line in raw.split("\n"))).strip("\n")
        if not body.strip():
            continue
        if found := _BUTTONS.match(body.strip()):
            name = found.group(1) or ""
            placed.add(name)
            blocks += _actions(groups.get(name, ()))
            continue
        blocks += _block(body)
        if body.strip() != "===":
            spoken.append(body.strip().lstrip("#~ ").strip())
    if "" not in placed:
        blocks += _actions(groups.get("", ()))
    return Shown(blocks=tuple(blocks), text="\n".join(spoken))


def spoken(blocks: Sequence[Mapping[str, Any]]) -> str:
    """The words of some blocks, for notifications and screen readers."""
    lines = []
    for block in blocks:
        if block["type"] == "header":
            lines.append(escape(str(block["text"]["text"])))
        elif block["type"] == "section":
            lines.append(str(block["text"]["text"]))
        elif block["type"] == "context":
            lines += [str(element["text"]) for element in block["elements"]]
    return "\n".join(lines)


def _block(body: str) -> list[Json]:
    stripped = body.strip()
    if stripped == "===":
        return [{"type": "divider"}]
    if stripped.startswith("# "):
        first, _, rest = stripped[2:].partition("\n")
        header = {"type": "header", "text": _plain(first, limits.HEADER_TEXT)}
        return [header, *(_block(rest) if rest.strip() else [])]
    if stripped.startswith("~ "):
        text = stripped[2:].replace("\n~ ", "\n")
        return [
            {"type": "context", "elements": [_marked(piece)]}
            for piece in sections(text, _CONTEXT_TEXT)
        ]
    return [{"type": "section", "text": _marked(piece)} for piece in sections(body)]


def _marked(text: str) -> Json:
    # `verbatim`: Slack makes no links and no mentions of its own out of what an alert happens to say.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _plain(text: str, most: int) -> Json:
    flat = " ".join(unescape(_TOKEN.sub(r"\2", text)).split())
    # Plain text is not read as markup; the invisible break keeps a copy of it harmless elsewhere too.
    flat = _LIKE_TOKEN.sub("<\u2060", flat)
    return {"type": "plain_text", "text": cut(flat, most), "emoji": True}


def _actions(elements: Sequence[Json]) -> list[Json]:
    """Rows of buttons: five at most, since more wrap badly on a phone, and no action id twice in one, which Slack refuses."""
    rows: list[list[Json]] = []
    for element in elements:
        row = rows[-1] if rows else None
        if (
            row is None
            or len(row) >= _ROW
            or element["action_id"] in {item["action_id"] for item in row}
        ):
            rows.append([element])
        else:
            row.append(element)
    return [{"type": "actions", "elements": row} for row in rows]
