"""What a person sees of what they did with the app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from bot.workspace.delivery import Ack, AckStatus
from bot.workspace.records import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a person sees of what they did: nothing, an error, or complaints under a modal's inputs."""

    error: str | None = None
    detail: str | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    options: tuple[Json, ...] = ()

    @classmethod
    def of(cls, ack: Ack) -> Self:
        """What a person sees of a delivery."""
        return cls() if ack.is_good else cls(error=shown_error(ack))

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong."""
        return self.error is None and not self.errors

    def to_json(self) -> Json:
        """The answer of the control API."""
        body: Json = {"ok": self.is_good}
        if self.error:
            body["error"] = self.error
        if self.detail:
            body["detail"] = self.detail
        if self.errors:
            body["errors"] = dict(self.errors)
        if self.options:
            body["options"] = list(self.options)
        return body


def shown_error(ack: Ack) -> str:
    """The error that Slack shows for a command or action that was not acknowledged."""
    return "operation_timeout" if ack.status is AckStatus.TIMEOUT else "dispatch_failed"
