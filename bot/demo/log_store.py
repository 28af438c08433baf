"""Log lines of the demo's processes, read from their files, and LogQL over them."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.demo.logql import Aggregation, LogSelector, RangeQuery
from bot.demo.logql_stages import Labels

_KEEP_LINES = 200_000
LabelSet = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line as it is in its file; `at_ns` is nanoseconds since the epoch."""

    at_ns: int
    labels: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values at points in time (seconds since the epoch); steps without lines are left out."""

    labels: LabelSet
    values: tuple[tuple[float, float], ...]


class LogStore:
    """Follows `*.log` files of JSON lines; a line that is none is passed over, as it has no time."""

    def __init__(self, directory: Path, *, node: str) -> None:
        self._directory = directory
        self._node = node
        self._offsets: dict[Path, int] = {}
        self._lines: deque[LogLine] = deque(maxlen=_KEEP_LINES)
        self._lock = threading.Lock()

    def lines(self, start_ns: int, end_ns: int) -> list[LogLine]:
        """Every line from `start_ns` up to, not including, `end_ns`, oldest first."""
        with self._lock:
            self._follow()
            found = [line for line in self._lines if start_ns <= line.at_ns < end_ns]
        return sorted(found, key=lambda line: line.at_ns)

    def select(self, selector: LogSelector, start_ns: int, end_ns: int) -> Iterator[LogLine]:
        """The lines that pass the selector, with the labels that its parsers added."""
        for line in self.lines(start_ns, end_ns):
            if selector.selects(line.labels):
                labels = selector.pass_line(line.labels, line.text)
                if labels is not None:
                    yield LogLine(at_ns=line.at_ns, labels=labels, text=line.text)

    def evaluate(self, query: RangeQuery | Aggregation, times_ns: list[int]) -> list[Series]:
        """The query's value at each time."""
        if isinstance(query, RangeQuery):
            return self._evaluate_range(query, times_ns)
        inner = self.evaluate(query.inner, times_ns)
        if query.operator == "topk":
            return sorted(inner, key=lambda series: -series.values[-1][1])[: query.limit]
        groups: dict[LabelSet, dict[float, list[float]]] = {}
        for series in inner:
            steps = groups.setdefault(_label_set(query.group(dict(series.labels))), {})
            for at, value in series.values:
                steps.setdefault(at, []).append(value)
        return [
            Series(
                labels=labels,
                values=tuple((at, _join(query.operator, steps[at])) for at in sorted(steps)),
            )
            for labels, steps in sorted(groups.items())
        ]

    def _evaluate_range(self, query: RangeQuery, times_ns: list[int]) -> list[Series]:
        window_ns = int(query.window_seconds * 1e9)
        streams: dict[LabelSet, list[LogLine]] = {}
        for line in self.select(query.selector, times_ns[0] - window_ns, times_ns[-1] + 1):
            streams.setdefault(_label_set(line.labels), []).append(line)
        series = []
        for labels, lines in sorted(streams.items()):
            values = []
            for at_ns in times_ns:
                inside = [line for line in lines if at_ns - window_ns < line.at_ns <= at_ns]
                if inside:
                    values.append((at_ns / 1e9, _measure(query, inside)))
            if values:
                series.append(Series(labels=labels, values=tuple(values)))
        return series

    def _follow(self) -> None:
        for path in sorted(self._directory.glob("*.log")):
            offset = self._offsets.get(path, 0)
            with path.open("rb") as file:
                file.seek(offset)
                chunk = file.read()
            complete = chunk.rfind(b"\n") + 1  # the last line may still be being written
            self._offsets[path] = offset + complete
            self._lines.extend(self._read(chunk[:complete], path.stem))

    def _read(self, chunk: bytes, source: str) -> Iterable[LogLine]:
        for raw in chunk.decode("utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(raw)
                at = datetime.fromisoformat(entry["ts"])
            except (ValueError, KeyError, TypeError):
                continue
            labels = {
                "service": str(entry.get("service", source)),
                "level": str(entry.get("level", "unknown")),
                "node": self._node,
                "job": "app",
            }
            at_ns = int(at.timestamp() * 1_000_000) * 1_000
            yield LogLine(at_ns=at_ns, labels=labels, text=raw)


def _label_set(labels: Labels) -> LabelSet:
    return tuple(sorted(labels.items()))


def _measure(query: RangeQuery, lines: list[LogLine]) -> float:
    per_line = query.function in ("count_over_time", "rate")
    total = float(len(lines) if per_line else sum(len(line.text.encode()) for line in lines))
    return total / query.window_seconds if query.function in ("rate", "bytes_rate") else total


def _join(operator: str, values: list[float]) -> float:
    match operator:
        case "avg":
            return sum(values) / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "count":
            return float(len(values))
        case _:
            return sum(values)
