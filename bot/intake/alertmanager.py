"""Alertmanager's webhook, version 4."""

from __future__ import annotations

from datetime import datetime

from bot.domain.alert import AlertGroup
from bot.intake.grouped import read_group


def parse(body: object, received_at: datetime) -> AlertGroup:
    """Reads one notification.

    Unknown fields are ignored, known ones checked: the sender may be newer than this, or no Alertmanager at all.

    Raises:
        PayloadError: not the webhook's shape; the message names the field.
    """
    return read_group(body, "alertmanager", received_at)
