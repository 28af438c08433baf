"""What is to be said to people, before anybody decides how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.domain.text import Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button below a message.

    action_id: one of the stable ids of the contract. payload: what pressing it means; it is stored, and the button
    itself carries an opaque id only. confirm: a question that must be answered with yes first.
    """

    action_id: str
    label: Localized
    payload: Mapping[str, Any] = field(default_factory=dict)
    style: str | None = None
    confirm: Localized | None = None

    def to_json(self) -> dict[str, Any]:
        """What an outgoing job carries."""
        return {
            "action_id": self.action_id,
            "label": self.label.to_json(),
            "payload": dict(self.payload),
            "style": self.style,
            "confirm": self.confirm.to_json() if self.confirm else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Button:
        """Reads `to_json`'s shape."""
        confirm = value.get("confirm")
        return cls(
            action_id=value["action_id"],
            label=Localized.from_json(value["label"]),
            payload=dict(value.get("payload") or {}),
            style=value.get("style"),
            confirm=Localized.from_json(confirm) if confirm else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is to be said: the name of a template under `templates/slack/` and what it is filled with.

    context: JSON values; a `Localized` is given as `{"en": …, "zh-CN": …}` and shown in the reader's language.
    files: names of blobs to attach.
    """

    view: str
    context: Mapping[str, Any] = field(default_factory=dict)
    buttons: tuple[Button, ...] = ()
    files: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What an outgoing job carries."""
        return {
            "view": self.view,
            "context": dict(self.context),
            "buttons": [button.to_json() for button in self.buttons],
            "files": list(self.files),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Message:
        """Reads `to_json`'s shape."""
        return cls(
            view=value["view"],
            context=dict(value.get("context") or {}),
            buttons=tuple(Button.from_json(item) for item in value.get("buttons") or ()),
            files=tuple(value.get("files") or ()),
        )
