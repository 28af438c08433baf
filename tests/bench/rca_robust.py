"""How far the figures of the public benchmarks hold: weights fitted without a case, a family unweighed, other names, a source less.

`python -m tests.bench.rca_robust BENCH`. The answers are opened here to measure, never to rank.
"""

from __future__ import annotations

import random
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from bot.diagnosis.changes import guilt
from bot.diagnosis.changes.guilt import NO_CHANGE, rank_changes
from bot.diagnosis.components import events, gauges, lost
from bot.diagnosis.components.evidence import Aspect, ComponentEvidence, EventKind
from bot.diagnosis.components.graph import DependencyGraph
from bot.diagnosis.components.ranking import rank_components
from bot.report.rewrite import rewrite
from tests.bench import rca_nezha, rca_petshop, rca_rootcausebench
from tests.bench.rca_files import cases_of, read_json

FACTORS = (0.5, 2.0)
SHUFFLES = 5
RULE_WEIGHTS: Mapping[str, tuple[ModuleType, str]] = {
    "cpu": (gauges, "_CPU"), "latency": (gauges, "_LATENCY"), "gap": (gauges, "_GAP"),
    "vanished": (events, "_VANISHED"), "errors": (events, "_ERRORS"), "wait": (events, "_WAIT"),
    "deepest": (lost, "_DEEPEST"),
}  # fmt: skip
COMPONENT_NUMBERS = (
    *RULE_WEIGHTS.values(), (lost, "_EXPLAINS"), (lost, "_ENTRY_EXPLAINS"), (lost, "_SIGNIFICANT"),
    (gauges, "_SIGNIFICANT"), (events, "_LEAST_EXPECTED"),
)  # fmt: skip
CHANGE_NUMBERS = tuple(
    (guilt, name) for name in ("_NO_CHANGE", "_EFFECT", "_WORDS", "_OUTSIDE", "_OWN", "_ROLLED_OUT")
)

Setting = tuple[ModuleType, str, float] | None
Ranker = Callable[[Any], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one case gives the engine, the right names, and the kind of fault."""

    id: str
    given: Any
    right: frozenset[str]
    family: str


def main(root: Path) -> None:
    for name, evidence_of in (
        ("petshop", rca_petshop.evidence_of),
        ("nezha", rca_nezha.evidence_of),
    ):
        cases = _cases(root / name, evidence_of)
        _tell(name, cases, _components, COMPONENT_NUMBERS)
        _print(name, "family unweighed", _unweighed(cases))
        for number in range(SHUFFLES):
            _print(name, f"other names, {number + 1}", _share(_renamed(cases, number), _components))
        for source, without in COMPONENT_SOURCES.items():
            kept = [replace(case, given=without(case.given)) for case in cases]
            _print(name, f"without {source}", _share(kept, _components))
    cases = _cases(root / "rootcausebench", lambda _, *given: rca_rootcausebench.inputs_of(*given))
    _tell("rootcausebench", cases, _changes, CHANGE_NUMBERS)
    for source, change in CHANGE_SOURCES.items():
        kept = [replace(case, given=change(*case.given)) for case in cases]
        _print("rootcausebench", f"without {source}", _share(kept, _changes))


def _cases(bench: Path, evidence_of: Callable[..., Any]) -> list[Case]:
    truth = read_json(bench / "truth.json")["cases"]
    found = []
    for folder, incident in cases_of(bench):
        case = truth[incident["case_id"]]
        group = {key: value for key, value in case["group"].items() if key != "system"}
        found.append(
            Case(
                id=incident["case_id"], given=evidence_of(bench, folder, incident),
                right=frozenset(_right(case)),
                family=str(group.get("fault") or " / ".join(map(str, group.values()))),
            )
        )  # fmt: skip
    return found


def _right(case: Mapping[str, Any]) -> Sequence[str]:
    """What the case ended in; no cause in code is an answer of its own."""
    return [str(item) for item in case["root_causes"]] or [NO_CHANGE]


def _components(given: ComponentEvidence) -> list[str]:
    return [item.name for item in rank_components(given)]


def _changes(given: Any) -> list[str]:
    return [item.id for item in rank_changes(*given)]


def _tell(
    bench: str, cases: Sequence[Case], ranker: Ranker, numbers: Sequence[tuple[ModuleType, str]]
) -> None:
    """In sample, with one number at half or twice at its worst, and each case or family by what the others would choose."""
    settings: list[Setting] = [None, *((m, n, f) for m, n in numbers for f in FACTORS)]
    hits: dict[int, dict[str, bool]] = {}
    for at, setting in enumerate(settings):
        with _set(setting):
            hits[at] = {case.id: ranker(case.given)[0] in case.right for case in cases}
    _print(bench, "in sample", statistics.fmean(hits[0].values()))
    worst = min(hits, key=lambda at: (sum(hits[at].values()), at))
    module, name, factor = settings[worst] or (None, "as shipped", 1.0)
    where = f"{module.__name__.rsplit('.', 1)[-1]}.{name} x{factor:g}" if module else name
    _print(bench, f"worst number: {where}", statistics.fmean(hits[worst].values()))
    for label, key in (("case", lambda case: case.id), ("family", lambda case: case.family)):
        held: dict[str, list[Case]] = defaultdict(list)
        for case in cases:
            held[key(case)].append(case)
        found = []
        for part in held.values():
            left = {case.id for case in part}
            # Of equally good settings the one that is furthest from what was shipped: no credit for knowing it.
            chosen = max(
                hits, key=lambda at, left=left: (sum(v for k, v in hits[at].items() if k not in left), at)
            )  # fmt: skip
            found += [hits[chosen][case.id] for case in part]
        _print(bench, f"{label} left out", statistics.fmean(found))


@contextmanager
def _set(setting: Setting) -> Iterator[None]:
    if setting is None:
        yield
        return
    module, name, factor = setting
    with patch.object(module, name, getattr(module, name) * factor):
        yield


def _unweighed(cases: Sequence[Case]) -> float:
    """Each family with the weight of the rule that speaks most for its causes set to the mean of the other rules'."""
    families: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        families[case.family].append(case)
    hits = []
    for part in families.values():
        heard: dict[tuple[ModuleType, str], float] = defaultdict(float)
        for place in RULE_WEIGHTS.values():
            with _set((*place, 0.0)):
                lost_points = sum(_first_score(case) for case in part)
            heard[place] = sum(_first_score(case) for case in part) - lost_points
        module, name = max(heard, key=lambda place: (heard[place], place[1]))
        others = [getattr(m, n) for m, n in RULE_WEIGHTS.values() if (m, n) != (module, name)]
        with patch.object(module, name, statistics.fmean(others)):
            hits += [_components(case.given)[0] in case.right for case in part]
    return statistics.fmean(hits)


def _first_score(case: Case) -> float:
    return max(
        (item.score for item in rank_components(case.given) if item.name in case.right), default=0.0
    )


def _renamed(cases: Sequence[Case], seed: int) -> list[Case]:
    """Every component by another name, in graphs, series and the texts of lines alike."""
    renamed = []
    for case in cases:
        given: ComponentEvidence = case.given
        names = sorted(given.graph.nodes)
        fresh = [f"part{number:03d}" for number in range(len(names))]
        random.Random(f"{seed} {case.id}").shuffle(fresh)
        again = dict(zip(names, fresh, strict=True))
        pattern = re.compile("|".join(re.escape(n) for n in sorted(names, key=len, reverse=True)))

        def change(text: str, again=again, pattern=pattern) -> str:  # type: ignore[no-untyped-def]
            return pattern.sub(lambda match: again[match[0]], text)

        graph = DependencyGraph.of(
            [(again[a], again[b]) for a in names for b in given.graph.callees[a]], fresh
        )
        renamed.append(
            replace(
                case, given=replace(rewrite(replace(given, graph=graph), change), graph=graph),
                right=frozenset(again.get(name, name) for name in case.right),
            )
        )  # fmt: skip
    return renamed


def _without_aspect(aspect: Aspect) -> Callable[[ComponentEvidence], ComponentEvidence]:
    return lambda given: replace(
        given, gauges=tuple(one for one in given.gauges if one.aspect is not aspect)
    )


def _without_events(kind: EventKind) -> Callable[[ComponentEvidence], ComponentEvidence]:
    return lambda given: replace(
        given, events=tuple(one for one in given.events if one.kind is not kind)
    )


COMPONENT_SOURCES: Mapping[str, Callable[[ComponentEvidence], ComponentEvidence]] = {
    "metrics": lambda given: replace(given, gauges=(), calls=()),
    **{f"metric {aspect.value}": _without_aspect(aspect) for aspect in Aspect},
    "lines": _without_events(EventKind.LINE),
    "counted spans": _without_events(EventKind.SPAN),
    "span times": lambda given: replace(given, spans=()),
    "traces": lambda given: replace(_without_events(EventKind.SPAN)(given), spans=(), calls=()),
    "entry": lambda given: replace(given, entry=None),
}
CHANGE_SOURCES: Mapping[str, Callable[..., Any]] = {
    "diffs": lambda changes, failing: ([replace(one, diff="") for one in changes], failing),
    "rollouts": lambda changes, failing: (
        [replace(one, rolled_out=False, service=None) for one in changes], failing,
    ),
    "series": lambda changes, failing: (changes, replace(failing, series=())),
    "texts of failures": lambda changes, failing: (changes, replace(failing, texts=failing.texts[:2])),
    "outside reports": lambda changes, failing: (changes, replace(failing, outside=())),
    "messages": lambda changes, failing: ([replace(one, summary="") for one in changes], failing),
}  # fmt: skip


def _share(cases: Sequence[Case], ranker: Ranker) -> float:
    return statistics.fmean(ranker(case.given)[0] in case.right for case in cases)


def _print(bench: str, what: str, share: float) -> None:
    sys.stdout.write(f"{bench:<15} {what:<34} AC@1 {share:.3f}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.bench.rca_robust BENCH")
    main(Path(sys.argv[1]))
