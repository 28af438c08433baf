"""A layer that nobody looked at and that a person let pass."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.domain.hypothesis import Layer
from bot.domain.text import Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Who let which layer pass, and why; `reason` is None when it was withheld."""

    layer: Layer
    reason: Localized | None
    by: str
    at: datetime
