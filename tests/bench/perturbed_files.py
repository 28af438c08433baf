"""Recorded cases rewritten on disk, for what only a fresh collection shows: other names and days, a slower scrape, lost series.

`python -m tests.bench.perturbed_files CASES OUT [ID …]` writes `OUT/<way>/<id>/…` with a truth file beside them and
judges each way; the originals are only read.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.domain.instant import parse_rfc3339, to_rfc3339
from tests.bench.diagnosis import figures, judge_all, record
from tests.bench.perturbed import HEADER

_MOMENT = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"')
_SAMPLE = re.compile(r"^(.*) (\S+) (\d+)$")
_NAMED = re.compile(r'\b(?:app|service|container|pod|peer|node|Hostname|model_name)="([^"]+)"')

Way = Callable[[Path, Path, random.Random], None]


def elsewhere(folder: Path, made: Path, noise: random.Random) -> None:
    """All names replaced by others and all times moved by some days and odd seconds."""
    by = noise.randrange(3 * 86_400, 20 * 86_400)
    metrics = _metrics(folder)
    names = sorted(
        {name for name in _NAMED.findall(metrics) if len(name) > 3},
        key=lambda name: (-len(name), name),
    )
    kept = {"gateway", "otlp"}
    new = {
        name: f"x{noise.randrange(16**4):04x}-{at}"
        for at, name in enumerate(names)
        if name not in kept
    }
    pattern = re.compile("|".join(re.escape(name) for name in new))

    def renamed(text: str) -> str:
        return pattern.sub(lambda match: new[match[0]], text)

    for name in ("case.json", "changes.jsonl", "probes.json", "logs.jsonl", "traces.json"):
        text = renamed((folder / name).read_text(encoding="utf-8"))
        text = _MOMENT.sub(lambda match: f'"{_later(match[1], by)}"', text)
        if name == "logs.jsonl":
            text = re.sub(
                r'"ts_ns":\s*"(\d+)"', lambda match: f'"ts_ns":"{int(match[1]) + by * 10**9}"', text
            )
        if name == "traces.json":
            text = re.sub(
                r'"startTime":\s*(\d+)',
                lambda match: f'"startTime":{int(match[1]) + by * 10**6}',
                text,
            )
        (made / name).write_text(text, encoding="utf-8")
    case = json.loads((made / "case.json").read_text(encoding="utf-8"))
    case["id"] = folder.name
    (made / "case.json").write_text(json.dumps(case), encoding="utf-8")
    _write(made, (_moved(line, by) for line in renamed(metrics).splitlines()))


def slow_scrape(folder: Path, made: Path, _: random.Random) -> None:
    """Every fourth sample only."""
    _others(folder, made)
    seen: dict[str, int] = {}

    def kept() -> Iterator[str]:
        for line in _metrics(folder).splitlines():
            match = _SAMPLE.match(line)
            if match is None or line.startswith("#"):
                yield line
                continue
            at = seen[match[1]] = seen.get(match[1], -1) + 1
            if at % 4 == 0:
                yield line

    _write(made, kept())


def fewer_series(folder: Path, made: Path, noise: random.Random) -> None:
    """A fifth of the metrics is not kept at this site; what callers see is."""
    _others(folder, made)
    gone: dict[str, bool] = {}

    def kept() -> Iterator[str]:
        for line in _metrics(folder).splitlines():
            name = (
                line.split(" ")[2]
                if line.startswith("#") and line != "# EOF"
                else re.split(r"[{ ]", line)[0]
            )
            base = re.sub(r"_(bucket|sum|count|total)$", "", name)
            if not base.startswith(("http_request", "up", "#")) and gone.setdefault(
                base, noise.random() < 0.2
            ):
                continue
            yield line

    _write(made, kept())


WAYS: dict[str, Way] = {
    "files: elsewhere": elsewhere,
    "files: scrape x4": slow_scrape,
    "files: 20 % gone": fewer_series,
}


def _later(moment: str, by: int) -> str:
    at: datetime = parse_rfc3339(moment)
    return moment if at.year < 2000 else to_rfc3339(at + timedelta(seconds=by))


def _moved(line: str, by: int) -> str:
    match = None if line.startswith("#") else _SAMPLE.match(line)
    return line if match is None else f"{match[1]} {match[2]} {int(match[3]) + by}"


def _others(folder: Path, made: Path) -> None:
    for name in ("case.json", "changes.jsonl", "probes.json", "logs.jsonl", "traces.json"):
        shutil.copy(folder / name, made / name)


def _metrics(folder: Path) -> str:
    return lzma.decompress((folder / "metrics.om.xz").read_bytes()).decode()


def _write(made: Path, lines: Iterator[str]) -> None:
    (made / "metrics.om").write_text("\n".join(lines) + "\n", encoding="utf-8")


async def report(cases: Path, out: Path, only: tuple[str, ...]) -> list[str]:
    """Each way over the cases, collected anew through the recorded sources."""
    catalogue = load_causes([shipped_causes()])
    lines = [HEADER]
    truth = json.loads((cases / "truth.json").read_text(encoding="utf-8"))
    folders = [
        one
        for one in sorted(cases.glob("*/"))
        if (one / "case.json").exists() and (not only or one.name in only)
    ]
    for name, way in WAYS.items():
        home = out / re.sub(r"\W+", "-", name)
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(cases.parent / "harness.py", out / "harness.py")
        (home / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
        recorded = []
        for folder in folders:
            made = home / folder.name
            if not made.exists():
                made.mkdir()
                way(folder, made, random.Random(f"{name} {folder.name}"))
            recorded.append(await record(made, home, home / "kept"))
        answers = judge_all(recorded, catalogue)
        lines.append(f"{name:<20} {figures(recorded, answers)}")
        for one in recorded:
            first = answers[one.id].hypotheses[0]
            if first.cause not in one.acceptable:
                lines.append(
                    f"    {one.id} {first.cause} {first.probability:.2f} instead of {one.cause}"
                )
    return lines


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python -m tests.bench.perturbed_files CASES OUT [ID …]")
    for text in asyncio.run(report(Path(sys.argv[1]), Path(sys.argv[2]), tuple(sys.argv[3:]))):
        sys.stdout.write(text + "\n")
