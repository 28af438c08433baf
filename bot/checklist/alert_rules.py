"""An alert rule that an incident's own series would have set off, with a test of it for `promtool test rules`."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.checklist.diffs import diff_of, text_of
from bot.checklist.writing import quoted
from bot.domain.evidence import Series

MOST_SERIES = 40
MOST_CHARACTERS = 150_000
LONGEST_FOR_SECONDS = 300.0
_LEAST_BEFORE = 3
_LEAST_RUN = 4
"""Samples: a level needs three of them, and an alert that fires on less than four is set off by noise. Our own choice."""
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An expression over the time of an incident.

    readings: what it came to; raw: the series that it reads, at the same step. start: of the window. onset: from when
    on it was not what it usually is.
    """

    name: str
    expression: str
    summary: str
    readings: tuple[Series, ...]
    raw: tuple[Series, ...]
    start: datetime
    onset: datetime
    step_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """A rule and its test. bound: in the expression's unit. diff: both as new files."""

    name: str
    bound: float
    rules: str
    test: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """Where the alert begins, and how long it lasted: places of samples."""

    bound: float
    is_above: bool
    first: int
    last: int


def alert_rule(watched: Watched, *, incident_id: str, service: str | None) -> AlertRule | None:
    """The rule; None where the series do not show a level that an alert could stand on."""
    if not 0 < len(watched.raw) <= MOST_SERIES or not watched.readings:
        return None
    if any(not _NAME.fullmatch(series.name) for series in watched.raw):
        return None
    values = _joined(watched, is_above=True)
    level = _level(values, watched)
    if level is not None and not level.is_above:
        level = _level(_joined(watched, is_above=False), watched)
    if level is None:
        return None
    step = watched.step_seconds
    run = level.last - level.first
    wait = min(int(LONGEST_FOR_SECONDS) // step, run // 3) * step
    expression = watched.expression
    labels = dict(watched.readings[0].labels)
    if len(watched.readings) > 1:
        expression, labels = f"{'max' if level.is_above else 'min'}({expression})", {}
    expression = f"({expression}) {'>' if level.is_above else '<'} {level.bound:g}"
    own = {"severity": "warning", **({"service": _inert(service)} if service else {})}
    notes = {"incident": incident_id, "summary": _inert(watched.summary)}
    rules = _rules(watched.name, expression, wait, own, notes, incident_id)
    folder = f"monitoring/{incident_id.lower()}-{watched.name.lower()}"
    at = (level.first + 2 * run // 3) * step
    test = _test(watched, f"{folder.rsplit('/', 1)[1]}.rules.yml", at, {**labels, **own}, notes)
    diff = diff_of(f"{folder}.rules.yml", "", rules) + diff_of(f"{folder}.test.yml", "", test)
    if len(diff) > MOST_CHARACTERS:
        return None
    return AlertRule(name=watched.name, bound=level.bound, rules=rules, test=test, diff=diff)


def _joined(watched: Watched, *, is_above: bool) -> list[float | None]:
    """One value a step: the worst of all series, None where none has one."""
    worst: dict[int, float] = {}
    for series in watched.readings:
        for sample in series.samples:
            if sample.value is None or not math.isfinite(sample.value):
                continue
            place = round((sample.at - watched.start).total_seconds() / watched.step_seconds)
            known = worst.get(place, sample.value)
            worst[place] = max(known, sample.value) if is_above else min(known, sample.value)
    return [worst.get(place) for place in range(max(worst, default=-1) + 1)]


def _level(values: Sequence[float | None], watched: Watched) -> _Level | None:
    split = round((watched.onset - watched.start).total_seconds() / watched.step_seconds)
    before = [value for value in values[:split] if value is not None]
    during = [value for value in values[split:] if value is not None]
    if len(before) < _LEAST_BEFORE or len(during) < _LEAST_RUN:
        return None
    usual = statistics.median(before)
    tenths = statistics.quantiles(during, n=10)
    is_above = abs(tenths[-1] - usual) >= abs(tenths[0] - usual)
    far = tenths[-1] if is_above else tenths[0]
    # Half way between what is usual and what was seen, and never where it would have fired before.
    middle = usual + (far - usual) / 2
    margin = 0.1 * abs(far - usual)
    bound = max(middle, max(before) + margin) if is_above else min(middle, min(before) - margin)
    bound = float(f"{bound:.3g}")
    if (bound >= far) if is_above else (bound <= far):
        return None
    over = [
        value is not None and (value > bound if is_above else value < bound) for value in values
    ]
    run = _longest(over)
    if run is None or run[1] - run[0] + 1 < _LEAST_RUN:
        return None
    return _Level(bound=bound, is_above=is_above, first=run[0], last=run[1])


def _longest(over: Sequence[bool]) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    start: int | None = None
    for place, holds in enumerate([*over, False]):
        if holds and start is None:
            start = place
        elif not holds and start is not None:
            if best is None or place - 1 - start > best[1] - best[0]:
                best = (start, place - 1)
            start = None
    return best


def _inert(text: str) -> str:
    """Prometheus fills templates in labels and annotations; what an incident says must not be one."""
    return " ".join(text.replace("{{", "{ {").split())[:300]


def _mapping(values: Mapping[str, str], indent: str) -> list[str]:
    return [f"{indent}{name}: {quoted(value)}" for name, value in sorted(values.items())]


def _rules(
    name: str,
    expression: str,
    wait_seconds: int,
    labels: Mapping[str, str],
    notes: Mapping[str, str],
    incident_id: str,
) -> str:
    return text_of(
        [
            f"# Proposed from {incident_id}. The test beside it holds the incident's own series.",
            "groups:",
            f"  - name: {quoted(f'rca-bot {incident_id} {name}')}",
            "    rules:",
            f"      - alert: {name}",
            f"        expr: {quoted(expression)}",
            f"        for: {wait_seconds}s",
            "        labels:",
            *_mapping(labels, "          "),
            "        annotations:",
            *_mapping(notes, "          "),
        ]
    )


def _test(
    watched: Watched,
    rule_file: str,
    at_seconds: int,
    labels: Mapping[str, str],
    notes: Mapping[str, str],
) -> str:
    step = f"{watched.step_seconds}s"
    lines = [
        f"# promtool test rules {rule_file.replace('.rules.yml', '.test.yml')}",
        "rule_files:",
        f"  - {quoted(rule_file)}",
        f"evaluation_interval: {step}",
        "tests:",
        f"  - interval: {step}",
        "    input_series:",
    ]
    for series in watched.raw:
        lines.append(f"      - series: {quoted(_series(series))}")
        lines.append(f"        values: {quoted(_values(series, watched))}")
    lines += [
        "    alert_rule_test:",
        f"      - eval_time: {at_seconds}s",
        f"        alertname: {watched.name}",
        "        exp_alerts:",
        "          - exp_labels:",
        *_mapping(labels, "              "),
        "            exp_annotations:",
        *_mapping(notes, "              "),
    ]
    return text_of(lines)


def _series(series: Series) -> str:
    labels = ",".join(
        f'{name}="{_escaped(value)}"' for name, value in sorted(series.labels.items())
    )
    return f"{series.name}{{{labels}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _values(series: Series, watched: Watched) -> str:
    known: dict[int, float] = {}
    for sample in series.samples:
        if sample.value is not None and math.isfinite(sample.value):
            place = round((sample.at - watched.start).total_seconds() / watched.step_seconds)
            known[place] = sample.value
    places = range(max(known, default=-1) + 1)
    return " ".join(_decimal(known[place]) if place in known else "_" for place in places)


def _decimal(value: float) -> str:
    """Digits only: promtool reads `1e-05` as a series that goes on for ever."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.9f}".rstrip("0").rstrip(".")
