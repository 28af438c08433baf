"""What each guard of the engine is worth where it is needed: recorded incidents seen another way, and faults laid over healthy time.

`python -m tests.bench.guards CASES [CACHE]`, some ten minutes of a core. Each guard is taken out in turn and everything is
judged again; a guard that changes no answer anywhere is either untested or unneeded.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import bot.diagnosis.chain
import bot.diagnosis.engine
import bot.diagnosis.facts
import bot.diagnosis.judge
import bot.diagnosis.rank
import bot.diagnosis.weigh
from bot.cause import Catalogue
from bot.diagnosis.engine import assess
from bot.diagnosis.facts import Facts, establish
from bot.diagnosis.judge import Bench
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.observation import Observation
from bot.diagnosis.symptoms import find_incident
from bot.domain.hypothesis import NOT_ESTABLISHED, Diagnosis
from tests.bench.diagnosis import ABLATIONS, Recorded, figures, judge_all, record
from tests.bench.healed import healed
from tests.bench.perturbed import _seen, all_ways
from tests.bench.variant_table import variants
from tests.bench.variants import engine_of, laid_over

WAYS = (
    "noise 10 %", "fault 60 %", "scrape x4", "20 % of series gone", "no logs", "no agents",
    "one agent silent", "half the probes", "decoy deploys", "no history",
)  # fmt: skip
"""The ways of seeing that change most answers of the unharmed engine."""

EVERY_BASE = 3
"""Of the healthy times that fit a variant's engine, each third is used: enough for two or three a variant."""

Sets = Mapping[str, Sequence[Recorded]]


@contextmanager
def _order_ignored() -> Iterator[None]:
    real = bot.diagnosis.chain._order

    def blind(*given: object) -> object:
        found = real(*given)  # type: ignore[arg-type]
        late = bot.diagnosis.chain._Order.LATE
        return bot.diagnosis.chain._Order.UNSEEN if found is late else found

    with patch.object(bot.diagnosis.chain, "_order", blind):
        yield


@contextmanager
def _one_clean_node_is_enough() -> Iterator[None]:
    def lenient(facts: Facts, catalogue: Catalogue, node: str | None, **_: bool) -> Bench:
        return Bench(facts, catalogue, node)

    with patch.object(bot.diagnosis.weigh, "Bench", lenient):
        yield


@contextmanager
def _late_probes_clear() -> Iterator[None]:
    def fresh(*given: object) -> Facts:
        return replace(establish(*given), is_stale=False)  # type: ignore[arg-type]

    with patch.object(bot.diagnosis.engine, "establish", fresh):
        yield


def _off(target: object, name: str, value: object) -> Callable[[], AbstractContextManager[object]]:
    return lambda: patch.object(target, name, value)


GUARDS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "as shipped": nullcontext,
    "order in time ignored": _order_ignored,
    "unseen below ignored": _off(bot.diagnosis.rank, "undecided", lambda *_: frozenset()),
    "one clean node excludes": _one_clean_node_is_enough,
    "late probes clear": _late_probes_clear,
    "noise counts as calm": _off(Observation, "is_lost_in_noise", lambda *_: False),
    "moves need no company": _off(Bench, "_goes_along", lambda *_: True),
    "other days ignored": _off(Observation, "is_usual", lambda _: False),
    "nothing seen is no reason": _off(bot.diagnosis.rank, "_NOTHING_SEEN", 0.0),
    "no room for `not established`": _off(bot.diagnosis.rank, "_UNDECIDED", -6.0),
}
"""What is taken out, and how; parts of the knowledge files follow from `ABLATIONS`."""

KNOWLEDGE = ("without chains", "without refuters", "families not asked")


async def report(cases: Path, cache: Path) -> list[str]:
    """One line a guard and set; `changed` counts the first answers and chains that are others than as shipped."""
    catalogue = load_causes([shipped_causes()])
    sets = _sets(
        [
            await record(folder, cases, cache)
            for folder in sorted(cases.glob("*/"))
            if (folder / "case.json").exists()
        ],
        catalogue,
    )
    shipped = {name: judge_all(part, catalogue) for name, part in sets.items()}
    lines = [
        f"{'guard taken out':<30} set        n  changed  AC@1   AC@3   chains exact  abstention P/R  wrong at 0.7"
    ]
    for guard, taken_out in GUARDS.items():
        with taken_out():
            lines += _lines(guard, sets, shipped, catalogue)
    for name in KNOWLEDGE:
        lines += _lines(name, sets, shipped, ABLATIONS[name][1](catalogue))
    return lines


def _sets(recorded: Sequence[Recorded], catalogue: Catalogue) -> Sets:
    ways = all_ways(catalogue)
    perturbed = [
        replace(_seen(one, ways[name], catalogue, name), id=f"{name} / {one.id}")
        for name in WAYS
        for one in recorded
    ]
    healthy = _healthy(recorded, catalogue)
    return {
        "recorded": recorded,
        "seen": perturbed,
        "laid over": _laid_over(healthy, catalogue),
        "healthy": healthy,
    }


def _healthy(recorded: Sequence[Recorded], catalogue: Catalogue) -> list[Recorded]:
    """The same services as if nothing had happened: whatever is named here is a false alarm."""
    bases = []
    for one in recorded:
        load = one.collected.now.get("load.requests")
        if load is None or not load.series:
            continue
        window = find_incident(one.collected, catalogue).window
        base = replace(
            one, collected=healed(one.collected, window, catalogue), cause=NOT_ESTABLISHED,
            acceptable=frozenset({NOT_ESTABLISHED}), chain=(NOT_ESTABLISHED,),
        )  # fmt: skip
        if not find_incident(base.collected, catalogue).is_seen:
            bases.append(base)
    return bases


def _laid_over(bases: Sequence[Recorded], catalogue: Catalogue) -> list[Recorded]:
    made = []
    for variant in variants():
        first = variant.effects[0].signal
        fitting = [
            base
            for base in bases
            if engine_of(base.collected) == variant.engine
            and (first != "quality.ratio" or first in base.collected.now)
        ]
        for base in fitting[::EVERY_BASE]:
            name, noise = variant.chain[-1], random.Random(f"{variant.name} {base.id}")
            made.append(
                replace(
                    base, id=f"{variant.name} / {base.id}", cause=name, chain=variant.chain,
                    acceptable=frozenset({name}),
                    collected=laid_over(base.collected, variant, noise, catalogue),
                )
            )  # fmt: skip
    return made


def _lines(
    guard: str, sets: Sets, shipped: Mapping[str, Mapping[str, Diagnosis]], catalogue: Catalogue
) -> list[str]:
    lines = []
    for name, part in sets.items():
        answers = {one.id: assess(one.collected, catalogue, one.service) for one in part}
        changed = [one.id for one in part if _said(answers[one.id]) != _said(shipped[name][one.id])]
        lines.append(
            f"{guard:<30} {name:<9} {len(part):4d} {len(changed):6d}  {figures(part, answers)}"
            + (f"  e.g. {changed[0]}" if changed else "")
        )
    return lines


def _said(answer: Diagnosis) -> tuple[str, tuple[str, ...], bool]:
    first = answer.hypotheses[0]
    return first.cause, first.chain, first.probability >= 0.7


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m tests.bench.guards CASES [CACHE]")
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(sys.argv[2]) if len(sys.argv) == 3 else Path(scratch)
        for text in asyncio.run(report(Path(sys.argv[1]), kept)):
            sys.stdout.write(text + "\n")
