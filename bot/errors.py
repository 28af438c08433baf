"""The error tree of the bot and the agent.

BotError
├── ConfigError      a setting is wrong; the start stops with one line per fault
├── EvidenceError    a source could not answer
├── ProbeError       a probe could not look
├── StoreError       Redis refused or is gone; nothing was made durable
├── DeliveryError    Slack or an export target did not take what was sent
└── CommandError     the responder asked for something that cannot be done; the text is for them
"""

from __future__ import annotations

from enum import StrEnum

from bot.domain.text import Localized


class Reason(StrEnum):
    """Why something failed: a closed set, so that it can be a metric label."""

    REFUSED = "refused"
    TIMEOUT = "timeout"
    UNAUTHORISED = "unauthorised"
    RATE_LIMITED = "rate_limited"
    MALFORMED = "malformed"
    UNSUPPORTED = "unsupported"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"


class BotError(Exception):
    """Root of the tree. The message is one line: what failed: why; what to do."""

    def __init__(self, message: str, *, reason: Reason = Reason.MALFORMED) -> None:
        super().__init__(message)
        self.reason = reason


class ConfigError(BotError):
    """Settings that cannot work; `faults` has one line per fault."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults), reason=Reason.MALFORMED)
        self.faults = faults


class EvidenceError(BotError):
    """A source could not answer the question that it was asked."""


class ProbeError(BotError):
    """A probe could not look at what it is meant to judge."""


class StoreError(BotError):
    """Redis did not take a write or answer a read; the caller must not acknowledge."""


class DeliveryError(BotError):
    """An outside receiver did not take what was sent; `retry_after_seconds` when it said when to come back."""

    def __init__(
        self, message: str, *, reason: Reason, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, reason=reason)
        self.retry_after_seconds = retry_after_seconds


class CommandError(BotError):
    """A responder's request cannot be done; `text` says why and what to do, in both languages."""

    def __init__(self, text: Localized, *, reason: Reason = Reason.MALFORMED) -> None:
        super().__init__(text.en, reason=reason)
        self.text = text
