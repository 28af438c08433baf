"""Grafana's unified alerting webhook: Alertmanager's shape, and beside it what the rule measured."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.domain.alert import AlertGroup, AlertValue
from bot.intake.grouped import read_group
from bot.intake.reading import MOST_TEXT, text_of

_MOST_VALUES = 20
# One part of `valueString`: [ var='A' labels={gpu=3} value=NaN ]
_VALUE = re.compile(r"var='([^']{1,100})'[^\[\]]{0,1000}?value=([^\s\],]{1,40})")


def parse(body: object, received_at: datetime) -> AlertGroup:
    """Reads one notification.

    Raises:
        PayloadError: not the webhook's shape; the message names the field.
    """
    return read_group(body, "grafana", received_at, values=values_of)


def values_of(alert: Mapping[str, Any]) -> tuple[AlertValue, ...]:
    """What the rule measured: a number, or why there is none. A missing value is never a zero.

    >>> [value] = values_of({"values": {"A": None}, "valueString": "[ var='A' labels={} value=NaN ]"})
    >>> value.number, value.said
    (None, 'NaN')
    """
    words = alert.get("valueString")
    said = dict(_VALUE.findall(words[:MOST_TEXT])) if isinstance(words, str) else {}
    sent = alert.get("values")
    if not isinstance(sent, Mapping):
        return tuple(_value(name, word) for name, word in list(said.items())[:_MOST_VALUES])
    return tuple(
        _value(text_of(name, most=100), item if item is not None else said.get(str(name)))
        for name, item in list(sent.items())[:_MOST_VALUES]
    )


def _value(name: str, item: object) -> AlertValue:
    number: float | None = None
    if isinstance(item, int | float | str) and not isinstance(item, bool):
        try:
            number = float(item)
        except (ValueError, OverflowError):
            number = None
    if number is not None and math.isfinite(number):
        return AlertValue(name=text_of(name, most=100), number=number)
    word = "NaN" if isinstance(item, float) and math.isnan(item) else text_of(item, most=40)
    return AlertValue(name=text_of(name, most=100), said=word or None)
