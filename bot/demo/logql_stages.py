"""What a LogQL query does to one line: matchers, line filters, parser stages and label filters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

MATCHERS = ("=", "!=", "=~", "!~")

Labels = Mapping[str, str]
LineTest = Callable[[Labels, str], "Labels | None"]


class LogqlError(ValueError):
    """A query outside the subset, or no LogQL at all."""


def compare(value: str, operator: str, wanted: str) -> bool:
    """Applies a matcher or a label filter; a comparison of what is no number fails."""
    match operator:
        case "=" | "==":
            return value == wanted
        case "!=":
            return value != wanted
        case "=~":
            return _pattern(wanted).fullmatch(value) is not None
        case "!~":
            return _pattern(wanted).fullmatch(value) is None
    try:
        left, right = float(value), float(wanted)
    except ValueError:
        return False
    return {">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right}[
        operator
    ]


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise LogqlError(f"parse error: bad regular expression: {error}") from error


def line_filter(operator: str, wanted: str) -> LineTest:
    """A test of the line's text."""
    tests: dict[str, Callable[[str], bool]] = {
        "|=": lambda line: wanted in line,
        "!=": lambda line: wanted not in line,
        "|~": lambda line: _pattern(wanted).search(line) is not None,
        "!~": lambda line: _pattern(wanted).search(line) is None,
    }
    if operator not in tests:
        raise LogqlError(f"parse error: unexpected {operator!r}")
    test = tests[operator]
    return lambda labels, line: labels if test(line) else None


def label_filter(name: str, operator: str, wanted: str) -> LineTest:
    """A test of one label, those that a parser stage added included."""
    if operator not in (*MATCHERS, "==", ">", "<", ">=", "<="):
        raise LogqlError(f"parse error: unexpected {operator!r} in a label filter")
    return lambda labels, _: labels if compare(labels.get(name, ""), operator, wanted) else None


def with_json(labels: Labels, line: str) -> Labels:
    """Adds the fields of a JSON line; another line is marked, as Loki does."""
    try:
        found = json.loads(line)
    except ValueError:
        return {**labels, "__error__": "JSONParserErr"}
    if not isinstance(found, dict):
        return {**labels, "__error__": "JSONParserErr"}
    return {
        **labels,
        **{str(k): v if isinstance(v, str) else json.dumps(v) for k, v in found.items()},
    }


def with_logfmt(labels: Labels, line: str) -> Labels:
    """Adds the pairs of a logfmt line."""
    pairs = re.findall(r'([\w.]+)=("[^"]*"|\S+)', line)
    return {**labels, **{key: value.strip('"') for key, value in pairs}}
