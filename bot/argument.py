"""What a caller may say to a probe: typed, bounded arguments, checked before anything runs."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bot.errors import ProbeError, Reason

MAX_GPUS = 64
"""Highest number of GPUs that one request may name; the largest single node today has 16, NVLink domains 72."""


class ArgumentKind(StrEnum):
    """What an argument holds. There is no free text: a string is a service's name or one of listed words."""

    SERVICE = "service"
    NUMBER = "number"
    WHOLE = "whole"
    GPUS = "gpus"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One typed argument. `low` and `high` bound numbers; `choices` lists the words of a `CHOICE`.

    `unit_seconds`: how much longer a run takes for each unit of the number above the default.
    """

    name: str
    kind: ArgumentKind
    summary: str
    is_required: bool = False
    default: float | int | str | None = None
    low: float = 0
    high: float = math.inf
    choices: tuple[str, ...] = ()
    unit_seconds: float = 0.0

    def schema(self) -> dict[str, Any]:
        """JSON schema of the argument."""
        match self.kind:
            case ArgumentKind.SERVICE:
                shape: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
            case ArgumentKind.NUMBER:
                shape = {"type": "number", "minimum": self.low, "maximum": self.high}
            case ArgumentKind.WHOLE:
                shape = {"type": "integer", "minimum": self.low, "maximum": self.high}
            case ArgumentKind.GPUS:
                index = {"type": "integer", "minimum": 0, "maximum": MAX_GPUS - 1}
                shape = {"type": "array", "items": index, "maxItems": MAX_GPUS}
            case ArgumentKind.CHOICE:
                shape = {"enum": list(self.choices)}
        shape["description"] = self.summary
        if self.default is not None:
            shape["default"] = self.default
        return shape

    def accept(self, value: object) -> object:
        """The value in its own type.

        Raises:
            ProbeError: it is of another type or out of bounds; the message does not repeat a long value.
        """
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        match self.kind:
            case ArgumentKind.SERVICE if isinstance(value, str) and 0 < len(value) <= 128:
                return value
            case ArgumentKind.CHOICE if isinstance(value, str) and value in self.choices:
                return value
            case ArgumentKind.NUMBER if is_number and self.low <= value <= self._highest:  # type: ignore[operator]
                return float(value)  # type: ignore[arg-type]
            case ArgumentKind.WHOLE if isinstance(value, int) and is_number:
                if self.low <= value <= self.high:
                    return value
            case ArgumentKind.GPUS if isinstance(value, list) and len(value) <= MAX_GPUS:
                if all(type(item) is int and 0 <= item < MAX_GPUS for item in value):
                    return tuple(sorted(set(value)))
        raise ProbeError(f"argument {self.name}: {self._wanted()}", reason=Reason.MALFORMED)

    @property
    def _highest(self) -> float:
        # JSON knows whole numbers that no float can hold.
        return min(self.high, sys.float_info.max)

    def _wanted(self) -> str:
        match self.kind:
            case ArgumentKind.SERVICE:
                return "give the name of a service, 1 to 128 characters"
            case ArgumentKind.NUMBER:
                return f"give a number from {self.low:g} to {self.high:g}"
            case ArgumentKind.WHOLE:
                return f"give a whole number from {self.low:g} to {self.high:g}"
            case ArgumentKind.GPUS:
                return f"give a list of GPU indexes from 0 to {MAX_GPUS - 1}"
            case ArgumentKind.CHOICE:
                return f"give one of {', '.join(self.choices)}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """Accepted arguments of one run, with the defaults filled in."""

    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A service's name or a chosen word."""
        return str(self.values[name])

    def number(self, name: str) -> float:
        """A number in the argument's own unit."""
        return float(self.values[name])  # type: ignore[arg-type]

    def whole(self, name: str) -> int:
        """A whole number."""
        return int(self.values[name])  # type: ignore[call-overload, no-any-return]

    def gpus(self, name: str = "gpus") -> tuple[int, ...] | None:
        """GPU indexes, or None for all."""
        return self.values.get(name)  # type: ignore[return-value]


def window_argument(default: float) -> Argument:
    """The `window_s` argument: how far apart two samples of a counter lie."""
    return Argument(
        name="window_s",
        kind=ArgumentKind.NUMBER,
        summary="seconds between the two samples",
        default=default,
        low=0.2,
        high=30,
        unit_seconds=1,
    )


SERVICE = Argument(
    name="service",
    kind=ArgumentKind.SERVICE,
    summary="service as the inventory names it",
    is_required=True,
)
GPUS = Argument(name="gpus", kind=ArgumentKind.GPUS, summary="GPU indexes; all when left out")


def args_digest(args: Mapping[str, object]) -> str:
    """Hex SHA-256 of the args as JSON with sorted keys and no white space, in UTF-8.

    Raises:
        ProbeError: `malformed` when the args are no JSON (a NaN, a lone surrogate).

    >>> args_digest({})
    '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    try:
        text = json.dumps(
            args, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return hashlib.sha256(text.encode()).hexdigest()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProbeError("args are no JSON object", reason=Reason.MALFORMED) from error
