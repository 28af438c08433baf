"""Reads the files of the public benchmarks: gzip CSV in long form, JSON; nothing here knows an answer."""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

Table = Mapping[tuple[str, ...], Mapping[int, float]]


def cases_of(bench: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each case's folder and its `incident.json`, by name."""
    for folder in sorted((bench / "cases").iterdir()):
        yield folder, read_json(folder / "incident.json")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Rows of a CSV file, packed or not."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    yield from csv.DictReader(text.splitlines())


@lru_cache(maxsize=8)
def table(path: Path, keys: tuple[str, ...]) -> Table:
    """Key columns to (timestamp to value)."""
    found: dict[tuple[str, ...], dict[int, float]] = defaultdict(dict)
    for row in rows(path):
        found[tuple(row[key] for key in keys)][int(row["timestamp"])] = float(row["value"])
    return found


def values(series: Mapping[int, float], times: Sequence[int]) -> tuple[float | None, ...]:
    return tuple(series.get(time) for time in times)
