"""What people see and get in a workspace, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

Json = dict[str, Any]

PATIENCE_SECONDS = 60.0
"""How long something is looked for unless it is said. Basis: no machine at work is that slow."""

_TEXT_KEYS = frozenset({"text", "alt_text", "title", "pretext", "footer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button that can be pressed."""

    action_id: str
    block_id: str
    text: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMessage:
    """A message as people see it; `raw` is Slack's JSON for it."""

    channel: str
    ts: str
    text: str
    user: str | None
    bot_id: str | None
    thread_ts: str | None
    only_for: str | None
    is_edited: bool
    reply_count: int
    raw: Json = field(repr=False)

    @classmethod
    def from_json(cls, raw: Json) -> Self:
        """Reads a message of the control API."""
        return cls(
            channel=raw["channel"],
            ts=raw["ts"],
            text=raw.get("text", ""),
            user=raw.get("user"),
            bot_id=raw.get("bot_id"),
            thread_ts=raw.get("thread_ts"),
            only_for=raw.get("only_for"),
            is_edited="edited" in raw,
            reply_count=int(raw.get("reply_count", 0)),
            raw=raw,
        )

    @property
    def is_reply(self) -> bool:
        """Whether it hangs under another message."""
        return self.thread_ts is not None and self.thread_ts != self.ts

    @property
    def blocks(self) -> list[Json]:
        """Its blocks, those inside attachments included."""
        nested = [b for item in self.raw.get("attachments", []) for b in item.get("blocks", [])]
        return [*self.raw.get("blocks", []), *nested]

    @property
    def files(self) -> list[Json]:
        """Its files."""
        return list(self.raw.get("files", []))

    @property
    def all_text(self) -> str:
        """Every text of it, one per line: what a reader sees."""
        parts = [self.text, *_texts(self.blocks), *_texts(self.raw.get("attachments", []))]
        return "\n".join(dict.fromkeys(part for part in parts if part))

    @property
    def buttons(self) -> list[Button]:
        """Its buttons, in reading order."""
        return [
            Button(
                action_id=element["action_id"],
                block_id=block.get("block_id", ""),
                text=element["text"]["text"],
                value=element.get("value"),
            )
            for block in self.blocks
            for element in [*block.get("elements", []), block.get("accessory") or {}]
            if element.get("type") == "button"
        ]

    def button(self, action_id: str) -> Button | None:
        """The first button with that action_id."""
        return next((b for b in self.buttons if b.action_id == action_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of what a person did; `error` is what Slack would show, `errors` the complaints under inputs."""

    is_good: bool
    error: str | None
    errors: Mapping[str, str]
    raw: Json = field(repr=False)

    @classmethod
    def from_json(cls, raw: Json) -> Self:
        """Reads an answer of the control API."""
        return cls(
            is_good=bool(raw.get("ok")),
            error=raw.get("error"),
            errors=raw.get("errors", {}),
            raw=raw,
        )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, str):
                yield from _texts(inner)
            elif key in _TEXT_KEYS or (key == "value" and "title" in value):
                yield inner
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
