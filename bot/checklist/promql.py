"""As much of PromQL as it takes to know which series an expression reads; what is beyond it is refused, not guessed."""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'"
_SELECTOR = re.compile(rf"([a-zA-Z_:][\w:]*)?\s*\{{(?:[^{{}}\"']|{_STRING})*\}}")
_GROUPING = re.compile(
    r"\b(by|without|on|ignoring|group_left|group_right)\b\s*(\([^()]*\))?", re.IGNORECASE
)
_RANGE = re.compile(r"\[\s*((?:\d+(?:ms|[smhdwy]))+)\s*\]")
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_NAME = re.compile(r"(?<![\w:.])([a-zA-Z_:][\w:]*)(?!\s*\(|[\w:])")
_BEYOND = re.compile(r"@|\boffset\b|\[[^\]]*:[^\]]*\]|\btime\s*\(|\babsent|#", re.IGNORECASE)
_WORDS = frozenset({"and", "or", "unless", "bool", "inf", "nan", "atan2"})
_SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "y": 31536000.0,
}


def selectors(expression: str) -> tuple[str, ...] | None:
    """The vector selectors of an expression, each once; None where it reads by more than its own time.

    >>> selectors('sum by (le) (rate(a_bucket{x="y"}[5m])) / on (job) up')
    ('a_bucket{x="y"}', 'up')
    >>> selectors('a offset 1d') is None
    True
    """
    bare = re.sub(_STRING, '""', expression)
    if _BEYOND.search(bare):
        return None
    found = [match[0] for match in _SELECTOR.finditer(expression)]
    rest = _GROUPING.sub(" ", _RANGE.sub(" ", re.sub(_STRING, " ", _SELECTOR.sub(" ", expression))))
    found += [name for name in _NAME.findall(rest) if name.lower() not in _WORDS]
    return tuple(dict.fromkeys(found)) or None


def shortest_range(expression: str) -> float | None:
    """Seconds of the shortest range in brackets; None where there is none.

    >>> shortest_range("rate(a[1m30s]) + rate(b[5m])")
    90.0
    """
    spans = [
        sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(text))
        for text in _RANGE.findall(expression)
    ]
    return min(spans, default=None)
