"""Brings a message into the sizes that Slack takes: sections, messages, plain texts; nothing is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.blockkit import limits
from bot.blockkit.validate import text_length

Block = Mapping[str, Any]

_FENCE = "```"
# How Slack counts characters outside the basic plane is not documented, so a margin stays.
_SECTION = limits.SECTION_TEXT - 100
_PLAIN = limits.UPDATE_TEXT - 100
_BLOCKS = limits.MESSAGE_BLOCKS - 2
_TOTAL = limits.BLOCKS_TEXT_SAFE - 500


def sections(text: str, most: int = _SECTION) -> list[str]:
    r"""A text in pieces of at most `most` characters, cut at line ends; a code block is closed and opened again.

    >>> sections("```\naaaa\nbbbb\n```", 14)
    ['```\naaaa\n```', '```\nbbbb\n```']
    """
    pieces: list[str] = []
    held: list[str] = []
    size = 0
    in_code = False
    room = most - 2 * (len(_FENCE) + 1)
    for line in _short_lines(text, room):
        if size + len(line) + 1 > room and held:
            pieces.append(_closed(held, in_code))
            held = [_FENCE] if in_code else []
            size = len(_FENCE) + 1 if in_code else 0
        held.append(line)
        size += len(line) + 1
        if line.strip() == _FENCE or (line.startswith(_FENCE) and not line.endswith(_FENCE)):
            in_code = not in_code
    pieces.append(_closed(held, in_code))
    return [piece for piece in pieces if piece.strip().strip("`").strip()]


def _closed(lines: Sequence[str], in_code: bool) -> str:
    return "\n".join([*lines, _FENCE] if in_code else lines).strip("\n")


def _short_lines(text: str, most: int) -> Iterator[str]:
    for line in text.split("\n"):
        rest = line
        while len(rest) > most:
            at = _safe(rest, most)
            yield rest[:at]
            rest = rest[at:]
        yield rest


def _safe(line: str, most: int) -> int:
    """A place to cut that splits neither an entity nor a `<…>` token."""
    head = line[:most]
    entity = head.rfind("&")
    if entity > most - 8 and ";" not in head[entity:]:
        return max(1, entity)
    token = head.rfind("<")
    if token > 0 and ">" not in head[token:]:
        return token
    return most


def messages(blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks in as many messages as they need: each within Slack's number of blocks and sum of text."""
    parts: list[list[Block]] = []
    held: list[Block] = []
    size = 0
    for block in blocks:
        length = text_length([block])
        if held and (len(held) >= _BLOCKS or size + length > _TOTAL):
            parts.append(held)
            held, size = [], 0
        held.append(block)
        size += length
    if held:
        parts.append(held)
    return parts


def plain_texts(text: str, most: int = _PLAIN) -> list[str]:
    """A text in as many plain messages as it needs, each of at most `most` characters."""
    return sections(text, most)
