"""The citation of log lines that a pattern found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from bot.domain.evidence import Evidence, EvidenceSource, digest_of
from bot.domain.instant import Window
from bot.locales import say
from bot.source import LogLine

_EXCERPT = 240
_PROGRAM = ("service", "app", "job", "unit")
_PLACE = ("container", "pod", "node")
"""Labels that say whose lines a stream holds: the program, and where it names none, what it runs in."""


def evidence_of_lines(pattern: str, lines: Sequence[LogLine], service: str) -> Evidence:
    """The citation of lines in order of time, at least one; `service` stands for streams that name nobody."""
    first = lines[0]
    at = _moment(first.at_ns)
    program = _sender(first, _PROGRAM)
    return Evidence(
        source=EvidenceSource.LOGS,
        plugin="logs",
        summary=say(
            "diagnosis.log.found",
            count=len(lines),
            who=program or _sender(first, _PLACE) or service,
            line=_excerpt(first.text, pattern),
        ),
        query=f"|~ {pattern}",
        window=Window(at, _moment(lines[-1].at_ns)),
        samples=len(lines),
        digest=digest_of([first.text, first.at_ns, len(lines)]),
        node=first.labels.get("node"),
        component=program or None,
    )


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern that takes upper and lower case alike."""
    return re.compile(pattern, re.IGNORECASE)


def _excerpt(text: str, pattern: str) -> str:
    """The beginning of a line, and of a long one the part that matched as well."""
    match = compiled(pattern).search(text)
    if len(text) <= _EXCERPT or match is None or match.end() <= _EXCERPT:
        return text[:_EXCERPT]
    half = _EXCERPT // 2
    return f"{text[:half]} … {text[max(half, match.start() - 20) : match.end() + 20][:half]}"


def _sender(line: LogLine, labels: Sequence[str]) -> str:
    """What the first of `labels` that a line carries says of whose it is."""
    return next((line.labels[key] for key in labels if line.labels.get(key)), "")


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=nanoseconds // 1_000)
