"""Reads the tests of a cause: what must hold of signals, findings, logs, changes and symptoms."""

from __future__ import annotations

import re

from bot.cause import (
    AllOf,
    AnyOf,
    ChangeOwner,
    ChangeTest,
    FindingTest,
    LogPlace,
    LogTest,
    Movement,
    Not,
    SignalTest,
    SymptomKind,
    SymptomTest,
    Test,
)
from bot.domain.change import ChangeKind
from bot.marked_yaml import Reader, Where

_KINDS = ("signal", "finding", "log", "change", "symptom", "all", "any", "not")
_NEEDS_VALUE = (Movement.ABOVE, Movement.BELOW)
_NOTHING = SymptomTest(symptom=SymptomKind.LATENCY)


def read_test(reader: Reader, where: Where) -> Test:
    """The test at a place of a file; faults are booked with the reader."""
    value = reader.at(where)
    kinds = [kind for kind in _KINDS if isinstance(value, dict) and kind in value]
    if len(kinds) != 1:
        reader.fault(where, f"a test must have exactly one of {', '.join(_KINDS)}")
        return _NOTHING
    match kinds[0]:
        case "signal":
            return _signal(reader, where)
        case "finding":
            reader.only(where, ["finding", "says"])
            return FindingTest(
                finding=reader.text((*where, "finding")), pattern=_pattern(reader, (*where, "says"))
            )
        case "log":
            reader.only(where, ["log", "in", "least", "since_start"])
            return LogTest(
                pattern=_pattern(reader, (*where, "log")) or "",
                place=reader.choice((*where, "in"), LogPlace, default=LogPlace.SERVICE),
                minimum=int(reader.number((*where, "least"), default=1)),
                since_start=reader.flag((*where, "since_start"), default=False),
            )
        case "change":
            reader.only(where, ["change", "says", "within_seconds", "of"])
            return ChangeTest(
                kinds=read_kinds(reader, (*where, "change")),
                pattern=_pattern(reader, (*where, "says")),
                within_seconds=reader.optional_number((*where, "within_seconds")),
                owner=reader.choice((*where, "of"), ChangeOwner, default=ChangeOwner.SERVICE),
            )
        case "symptom":
            reader.only(where, ["symptom"])
            return SymptomTest(symptom=reader.choice((*where, "symptom"), SymptomKind))
        case "not":
            reader.only(where, ["not"])
            return Not(part=read_test(reader, (*where, "not")))
        case kind:
            reader.only(where, [kind])
            parts = tuple(
                read_test(reader, (*where, kind, at)) for at in reader.items((*where, kind))
            )
            if not parts:
                reader.fault((*where, kind), f"{kind} must list at least one test")
            return AllOf(parts=parts) if kind == "all" else AnyOf(parts=parts)


def read_kinds(reader: Reader, where: Where) -> tuple[ChangeKind, ...]:
    """A list of change kinds."""
    return tuple(reader.choice((*where, at), ChangeKind) for at in reader.items(where))


def _signal(reader: Reader, where: Where) -> Test:
    reader.only(where, ["signal", "is", "ratio", "delta", "value", "usual", "every", "along"])
    movement = reader.choice((*where, "is"), Movement)
    value = reader.optional_number((*where, "value"))
    if (movement in _NEEDS_VALUE) != (value is not None):
        reader.fault((*where, "is"), "value goes with above and below, and only with them")
    return SignalTest(
        signal=reader.text((*where, "signal")),
        movement=movement,
        ratio=reader.optional_number((*where, "ratio")),
        delta=reader.optional_number((*where, "delta")),
        value=value,
        usual=reader.flag((*where, "usual"), default=False),
        every=reader.flag((*where, "every"), default=False),
        along=reader.text((*where, "along")) if reader.at((*where, "along")) is not None else None,
    )


def _pattern(reader: Reader, where: Where) -> str | None:
    if reader.at(where) is None:
        return None
    pattern = reader.text(where)
    try:
        re.compile(pattern)
    except re.error as error:
        reader.fault(where, f"no regular expression: {error}")
    return pattern
