"""Every kind of incident work, and who does it."""

from __future__ import annotations

from collections.abc import Mapping

from bot.jobs import (
    charting,
    checking,
    collecting,
    delivering,
    drilling,
    followups,
    probing,
    proposing,
    recalling,
    reporting,
    silencing,
    storms,
    verifying,
)
from bot.jobs.services import Services
from bot.jobs.worker import Handler


def incident_handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    handlers: dict[str, Handler] = {}
    for module in (
        collecting, probing, charting, verifying, reporting, delivering, followups, storms,
        recalling, checking, proposing, drilling, silencing,
    ):  # fmt: skip
        handlers.update(module.handlers(services))
    return handlers
