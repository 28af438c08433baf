"""Says what Slack would refuse in a message or a view, before it is sent.

The schema sees shapes and lengths; this module adds what no schema can: ids that repeat, the sum of all
text of a message, and the bytes of a view.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastjsonschema

from bot.blockkit import limits
from bot.blockkit.contract import document

_ENTRIES = ("MessageBlocks", "ModalView", "HomeView", "Attachments")
_TEXT_KEYS = frozenset({"text", "alt_text", "fallback", "pretext", "title", "footer"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that Slack would refuse; `pointer` is the JSON pointer of the place."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


def validate_message(
    blocks: Sequence[Mapping[str, Any]] | None,
    text: str | None,
    *,
    attachments: Sequence[Mapping[str, Any]] | None = None,
    text_limit: int = limits.BLOCKS_TEXT_SAFE,
) -> list[Fault]:
    """The faults of a message to be posted or updated; empty when it may be sent.

    `text_limit` is the most characters that all blocks may hold together.
    """
    faults: list[Fault] = []
    if not (text and text.strip()) and not blocks and not attachments:
        faults.append(Fault("/text", "a message needs text, blocks or attachments"))
    if text and len(text) > limits.UPDATE_TEXT:
        faults.append(
            Fault("/text", f"{len(text)} characters, at most {limits.UPDATE_TEXT} can be updated")
        )
    if blocks is not None and len(blocks) > 0:
        faults += _under("/blocks", validate_blocks(blocks))
        characters = text_length(blocks)
        if characters > text_limit:
            faults.append(
                Fault("/blocks", f"{characters} characters of text, at most {text_limit}")
            )
    if attachments:
        faults += _under("/attachments", _schema_faults("Attachments", list(attachments)))
    return faults


def validate_blocks(blocks: Sequence[Mapping[str, Any]]) -> list[Fault]:
    """The faults of a message's blocks on their own; pointers start at the list."""
    return _schema_faults("MessageBlocks", list(blocks)) or _id_faults(blocks)


def validate_view(view: Mapping[str, Any]) -> list[Fault]:
    """The faults of a modal or a Home tab; empty when it may be opened or published."""
    kind = view.get("type")
    match kind:
        case "modal":
            faults = _schema_faults("ModalView", dict(view))
        case "home":
            faults = _schema_faults("HomeView", dict(view))
        case _:
            return [Fault("/type", f"{kind!r} is neither modal nor home")]
    blocks = view.get("blocks")
    if not faults and isinstance(blocks, list):
        faults = _under("/blocks", _id_faults(blocks))
    size = len(json.dumps(view, ensure_ascii=False).encode())
    if size > limits.VIEW_BYTES:
        faults.append(Fault("", f"{size} bytes, at most {limits.VIEW_BYTES}"))
    return faults


def text_length(value: object) -> int:
    """Characters of every text in blocks or attachments, in code points.

    How Slack counts characters outside the basic plane is not documented; keep a margin.
    """
    return sum(len(text) for text in _texts(value))


def prepare() -> None:
    """Compiles the schemas now (some 0.4 s), so that the first message does not wait for it."""
    _compiled()


def _schema_faults(entry: str, value: object) -> list[Fault]:
    try:
        _compiled()({entry: value})
    except fastjsonschema.JsonSchemaValueException as refusal:
        path = [str(step) for step in refusal.path[2:]]
        pointer = "".join(f"/{step}" for step in path)
        return [Fault(pointer, _reason(refusal))]
    return []


def _reason(refusal: Any) -> str:
    # The library leads with the path in its own notation, which the pointer already says.
    message = str(refusal.message)
    name = str(refusal.name)
    return message.removeprefix(name).strip() or message


@cache
def _compiled() -> Callable[[object], object]:
    # One schema for all entries, each under its own key: they share nearly all definitions.
    entries = {name: {"$ref": f"#/definitions/{name}"} for name in _ENTRIES}
    schema = {
        "$schema": document("blockkit.schema.json")["$schema"],
        "definitions": document("blockkit.schema.json")["definitions"],
        "type": "object",
        "properties": entries,
    }
    compiled: Callable[[object], object] = fastjsonschema.compile(schema)
    return compiled


def _id_faults(blocks: Sequence[Mapping[str, Any]]) -> list[Fault]:
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    for index, block in enumerate(blocks):
        block_id = block.get("block_id")
        if isinstance(block_id, str) and block_id:
            if block_id in seen:
                faults.append(
                    Fault(f"/{index}/block_id", f"{block_id!r} is block {seen[block_id]} already")
                )
            seen.setdefault(block_id, index)
        faults += _action_id_faults(index, block)
    return faults


def _action_id_faults(index: int, block: Mapping[str, Any]) -> list[Fault]:
    faults: list[Fault] = []
    seen: set[str] = set()
    elements = block.get("elements")
    for position, element in enumerate(elements if isinstance(elements, list) else ()):
        action_id = element.get("action_id") if isinstance(element, Mapping) else None
        if not isinstance(action_id, str):
            continue
        if action_id in seen:
            pointer = f"/{index}/elements/{position}/action_id"
            faults.append(Fault(pointer, f"{action_id!r} is twice in one block"))
        seen.add(action_id)
    return faults


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(inner, str):
                yield from _texts(inner)
            # A button's value is no text; only an attachment field has a `value` beside a `title`.
            elif key in _TEXT_KEYS or (key == "value" and "title" in value):
                yield inner
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _under(prefix: str, faults: Sequence[Fault]) -> list[Fault]:
    return [Fault(prefix + fault.pointer, fault.message) for fault in faults]
