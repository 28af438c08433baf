"""The engine on recorded incidents: accuracy, calibration, ablations, and the time that the judgement takes.

`python -m tests.bench.diagnosis CASES [CACHE]` collects once per case through the recorded sources and then judges as
often as it likes. `make bench` runs it with `CASES` from the environment, and without it only the timing.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.app import open_ports
from bot.cause import Catalogue, Cause
from bot.diagnosis.collect import collect
from bot.diagnosis.collected import Collected
from bot.diagnosis.engine import assess
from bot.diagnosis.facts import establish
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.rank import rank
from bot.diagnosis.request import DiagnosisRequest
from bot.domain.change import Change
from bot.domain.evidence import Sample, Series, SourceState
from bot.domain.hypothesis import NOT_ESTABLISHED, Diagnosis
from bot.domain.instant import parse_rfc3339
from bot.inventory import Service, load_inventory
from bot.settings import load_settings
from tests.diagnosis.worlds import AT, NODE, PINNED, SERVICE, STEP, WINDOW, reading, world

RANKING_MS = 50.0
PASS_SECONDS = 5.0
SIGNALS = 300
BINS = 5
TEMPERATURES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
SHIFTS = (-1.0, -0.5, 0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One incident: what was collected and in how many seconds, and what it was."""

    id: str
    collected: Collected
    service: Service
    cause: str
    acceptable: frozenset[str]
    chain: tuple[str, ...]
    seconds: float = 0.0


class RecordedChanges:
    """A change log that is a file."""

    def __init__(self, path: Path) -> None:
        self._changes = [
            Change.from_json(json.loads(line))
            for line in path.read_text(encoding="utf-8").splitlines()
            if line
        ]

    async def between(self, start: datetime, end: datetime) -> Sequence[Change]:
        return [change for change in self._changes if start <= change.at <= end]


async def run() -> list[str]:
    lines = [timing()]
    if cases := os.environ.get("CASES"):
        with tempfile.TemporaryDirectory() as cache:
            lines += await report(Path(cases), Path(cache))
    return lines


def timing() -> str:
    """Ranking all causes over 300 signals, log patterns included; processor time, medians of nine runs."""
    catalogue = load_causes([shipped_causes()])
    collected = _wide(world(PINNED), catalogue)
    taken, whole = [], []
    for _ in range(9):
        # Anew each time: a pass finds nothing that an earlier one left behind.
        facts = establish(collected, catalogue)
        began = time.process_time()
        rank(facts, catalogue)
        taken.append((time.process_time() - began) * 1000)
        began = time.process_time()
        assess(collected, catalogue, SERVICE)
        whole.append((time.process_time() - began) * 1000)
    ranking, judging = statistics.median(taken), statistics.median(whole)
    verdict = "met" if ranking < RANKING_MS else "MISSED"
    return (
        f"ranking {len(catalogue.causes)} causes x {SIGNALS} signals x {len(collected.service_lines)} lines: "
        f"{ranking:.1f} ms (goal {RANKING_MS:.0f} ms: {verdict}); the whole judgement {judging:.1f} ms"
    )


def _wide(collected: Collected, catalogue: Catalogue) -> Collected:
    """The same incident with series of many entities, 300 in all, and a busy log."""
    noise = random.Random(7)
    now = dict(collected.now)
    names = sorted(now)
    count = sum(len(one.series) for one in now.values())
    while count < SIGNALS:
        name = names[count % len(names)]
        part = Series(
            name="", labels={"node": NODE, "device": f"part{count}"}, unit="", step_seconds=STEP,
            samples=tuple(
                Sample(at=sample.at, value=10 + noise.random())
                for sample in now[name].series[0].samples
            ),
        )  # fmt: skip
        now[name] = reading(name, *now[name].series, part)
        count += 1
    first = collected.service_lines[0]
    lines = tuple(
        replace(first, at_ns=round(WINDOW.start.timestamp() + n * 2) * 10**9, text=f"request {n} served in {n % 90} ms")
        for n in range(2_000)
    )  # fmt: skip
    return replace(collected, now=now, service_lines=(*collected.service_lines, *lines))


async def report(cases: Path, cache: Path) -> list[str]:
    """Accuracy in and out of sample, calibration, and what each part is worth."""
    recorded = [
        await record(folder, cases, cache)
        for folder in sorted(cases.glob("*/"))
        if (folder / "case.json").exists()
    ]
    catalogue = load_causes([shipped_causes()])
    began = time.perf_counter()
    answers = judge_all(recorded, catalogue)
    each = (time.perf_counter() - began) / len(recorded)
    lines = [
        f"cases {len(recorded)}; judgement {each * 1000:.0f} ms each; a full pass "
        f"{statistics.median(one.seconds for one in recorded) + each:.1f} s in the middle, "
        f"{max(one.seconds for one in recorded) + each:.1f} s at most (goal {PASS_SECONDS:g} s)",
        *accuracy(recorded, answers),
    ]
    lines += calibration(recorded, answers, catalogue)
    lines += ["ablation              AC@1   AC@3   chains exact  abstention P/R  wrong at 0.7"]
    for name, change in ABLATIONS.items():
        shown = judge_all(
            [replace(one, collected=change[0](one.collected)) for one in recorded],
            change[1](catalogue),
        )
        lines.append(f"{name:<20} {figures(recorded, shown)}")
    return lines


async def record(folder: Path, cases: Path, cache: Path) -> Recorded:
    """Collects one case through its recorded sources, or takes what an earlier run collected."""
    truth = json.loads((cases / "truth.json").read_text(encoding="utf-8"))[folder.name]
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    kept = cache / f"{folder.name}.pickle"
    if kept.exists():
        collected, service, seconds = pickle.loads(kept.read_bytes())
    else:
        collected, service, seconds = await _collect(folder, cases, case)
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps((collected, service, seconds)))
    return Recorded(
        id=folder.name, collected=collected, service=service, cause=truth["cause"],
        acceptable=frozenset({truth["cause"], *truth.get("acceptable", [])}), chain=tuple(truth["chain"]),
        seconds=seconds,
    )  # fmt: skip


async def _collect(
    folder: Path, cases: Path, case: Mapping[str, object]
) -> tuple[Collected, Service, float]:
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        str(cases.parent / "harness.py"),
        "serve",
        str(folder),
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    try:
        environment: dict[str, str] = {}
        while "CASE_SERVICE" not in environment:
            line = (await asyncio.wait_for(server.stdout.readline(), 60)).decode().strip()
            name, _, value = line.partition("=")
            environment[name] = value
        saved = dict(os.environ)
        os.environ.update({k: v for k, v in environment.items() if not k.startswith("CASE_")})
        try:
            settings = load_settings()
        finally:
            os.environ.clear()
            os.environ.update(saved)
        async with open_ports(settings, None) as ports:  # type: ignore[arg-type]
            recorded = replace(ports, changes=RecordedChanges(folder / "changes.jsonl"))
            began = time.perf_counter()
            collected = await collect(
                DiagnosisRequest(
                    service=str(case["service"]), at=parse_rfc3339(str(case["at"])),
                    allow_heavy=True, approver="bench",
                ),
                recorded,
            )  # fmt: skip
            seconds = time.perf_counter() - began
        services = load_inventory(settings.nodes).services
        name = str(case["service"])
        return collected, services.get(name, Service(name=name)), seconds
    finally:
        server.terminate()
        await server.wait()


def judge_all(recorded: Sequence[Recorded], catalogue: Catalogue) -> dict[str, Diagnosis]:
    return {one.id: assess(one.collected, catalogue, one.service) for one in recorded}


def accuracy(recorded: Sequence[Recorded], answers: Mapping[str, Diagnosis]) -> list[str]:
    return [
        "in sample             AC@1   AC@3   chains exact  abstention P/R  wrong at 0.7",
        f"{'as shipped':<20} {figures(recorded, answers)}",
    ]


def figures(recorded: Sequence[Recorded], answers: Mapping[str, Diagnosis]) -> str:
    hits1 = hits3 = chains = real = sure = 0
    abstained = right = due = 0
    for one in recorded:
        found = answers[one.id].hypotheses
        names = [item.cause for item in found]
        hits1 += names[0] in one.acceptable
        hits3 += bool(one.acceptable & set(names[:3]))
        if one.cause != NOT_ESTABLISHED:
            real += 1
            chains += found[0].chain == one.chain
        abstained += names[0] == NOT_ESTABLISHED
        due += one.cause == NOT_ESTABLISHED
        right += names[0] == one.cause == NOT_ESTABLISHED
        sure += (
            found[0].probability >= 0.7
            and names[0] not in one.acceptable
            and names[0] != NOT_ESTABLISHED
        )
    count = len(recorded)
    precision = right / abstained if abstained else 0.0
    return (
        f"{hits1 / count:6.3f} {hits3 / count:6.3f}  {chains / max(real, 1):12.3f}"
        f"  {precision:.2f} / {right / max(due, 1):.2f}     {sure / count:.3f}"
    )


def calibration(
    recorded: Sequence[Recorded], answers: Mapping[str, Diagnosis], catalogue: Catalogue
) -> list[str]:
    """As shipped, and with sharpness and bias towards abstention fitted on all other families of causes."""
    families: dict[str, list[Recorded]] = defaultdict(list)
    for one in recorded:
        cause = catalogue.causes.get(one.cause)
        families[cause.category.value if cause else NOT_ESTABLISHED].append(one)
    shipped = [_first(one, answers[one.id], 1.0, 0.0) for one in recorded]
    fitted = _fit(recorded, answers)
    inside = [_first(one, answers[one.id], *fitted) for one in recorded]
    outside: list[tuple[float, bool]] = []
    common: list[tuple[float, bool]] = []
    lines = []
    for name, held in sorted(families.items()):
        rest = [one for one in recorded if one not in held]
        temperature, shift = _fit(rest, answers)
        found = [_first(one, answers[one.id], temperature, shift) for one in held]
        outside += found
        strangers = judge_all(held, _with_common_weights(catalogue, name))
        common += [_first(one, strangers[one.id], 1.0, 0.0) for one in held]
        lines.append(
            f"  without {name:<16} n {len(held):2d}  AC@1 {_share(found):.3f}  "
            f"(sharpness {1 / temperature:.2f}, abstention {shift:+.1f} from the other {len(rest)})"
        )
    return [
        "calibration           AC@1   calibration error (5 bins)",
        f"as shipped           {_share(shipped):6.3f}  {_error(shipped):.3f}",
        f"fitted, in sample    {_share(inside):6.3f}  {_error(inside):.3f}",
        f"family left out      {_share(outside):6.3f}  {_error(outside):.3f}  (scale fitted on the others)",
        f"                     {_share(common):6.3f}  {_error(common):.3f}  (weights the mean of the others')",
        *lines,
    ]


def _with_common_weights(catalogue: Catalogue, family: str) -> Catalogue:
    """The causes of one family as if nobody had weighed them: all their evidence counts as the others' does on average."""
    others = [cause for cause in catalogue.causes.values() if cause.category.value != family]
    rules = [rule for cause in others for rule in cause.evidence]
    positive = statistics.fmean(rule.weight for rule in rules if rule.weight > 0)
    negative = statistics.fmean(rule.weight for rule in rules if rule.weight < 0)
    absent = statistics.fmean(rule.absent for rule in rules)
    prior = statistics.fmean(cause.prior for cause in others)

    def plain(cause: Cause) -> Cause:
        return replace(
            cause,
            prior=prior,
            evidence=tuple(
                replace(rule, weight=positive if rule.weight > 0 else negative, absent=absent)
                for rule in cause.evidence
            ),
        )

    return replace(
        catalogue,
        causes={
            name: plain(cause) if cause.category.value == family else cause
            for name, cause in catalogue.causes.items()
        },
    )


def _first(
    one: Recorded, answer: Diagnosis, temperature: float, shift: float
) -> tuple[float, bool]:
    """Probability of the first hypothesis after rescaling, and whether it is right."""
    logs = {
        item.cause: (math.log(max(item.probability, 1e-9)) + (shift if item.cause == NOT_ESTABLISHED else 0.0)) / temperature
        for item in answer.hypotheses
    }  # fmt: skip
    most = max(logs.values())
    total = math.fsum(math.exp(value - most) for value in logs.values())
    name = max(logs, key=lambda cause: (logs[cause], cause))
    return 1 / total, name in one.acceptable


def _fit(recorded: Sequence[Recorded], answers: Mapping[str, Diagnosis]) -> tuple[float, float]:
    def loss(pair: tuple[float, float]) -> tuple[float, float, float]:
        found = [_first(one, answers[one.id], *pair) for one in recorded]
        value = -math.fsum(math.log(max(p if hit else 1 - p, 1e-3)) for p, hit in found)
        return value, abs(math.log(pair[0])), abs(pair[1])

    return min(((t, s) for t in TEMPERATURES for s in SHIFTS), key=loss)


def _share(found: Sequence[tuple[float, bool]]) -> float:
    return sum(hit for _, hit in found) / len(found)


def _error(found: Sequence[tuple[float, bool]]) -> float:
    """Expected calibration error: mean distance between confidence and accuracy, by bins of confidence."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for share, hit in found:
        bins[min(BINS - 1, int(share * BINS))].append((share, hit))
    return sum(
        abs(statistics.fmean(p for p, _ in part) - _share(part)) * len(part)
        for part in bins.values()
    ) / len(found)


def _same(catalogue: Catalogue) -> Catalogue:
    return catalogue


def _kept(collected: Collected) -> Collected:
    return collected


def _each_cause(**changes: object) -> Callable[[Catalogue], Catalogue]:
    return lambda catalogue: replace(
        catalogue,
        causes={name: replace(cause, **changes) for name, cause in catalogue.causes.items()},
    )


def _without(state: str, **emptied: object) -> Callable[[Collected], Collected]:
    return lambda collected: replace(
        collected, states={**collected.states, state: SourceState.UNREACHABLE}, **emptied
    )


def _no_logs(collected: Collected) -> Collected:
    now = {name: one for name, one in collected.now.items() if not name.startswith("logs.")}
    return _without("logs", service_lines=(), node_lines=(), old_lines=(), now=now)(collected)


def _no_metrics(collected: Collected) -> Collected:
    now = {name: one for name, one in collected.now.items() if name.startswith("logs.")}
    return _without("metrics", now=now, history={}, trends={})(collected)


ABLATIONS: dict[str, tuple[Callable[[Collected], Collected], Callable[[Catalogue], Catalogue]]] = {
    "without chains": (_kept, _each_cause(deeper=())),
    "without refuters": (_kept, _each_cause(refuters=())),
    "families not asked": (_kept, _each_cause(families=1)),
    "without history": (lambda c: replace(c, history={}, trends={}), _same),
    "without metrics": (_no_metrics, _same),
    "without logs": (_no_logs, _same),
    "without traces": (_without("traces", spans=()), _same),
    "without changes": (_without("events", changes=()), _same),
    "without probes": (_without("probes", probes=()), _same),
}


if __name__ == "__main__":
    assert AT.tzinfo is UTC
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m tests.bench.diagnosis CASES [CACHE]")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[2]) if len(sys.argv) == 3 else Path(scratch)
        for text in (timing(), *asyncio.run(report(Path(sys.argv[1]), folder))):
            sys.stdout.write(text + "\n")
