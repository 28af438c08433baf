"""One delivery target per file; this door collects them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache

from bot.registry import collect
from bot.target import Target


@cache
def targets() -> Mapping[str, Target]:
    """All targets by the word that people type."""
    return collect(sys.modules[__name__], Target)
