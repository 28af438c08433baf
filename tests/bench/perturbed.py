"""Recorded incidents as another site, another day or a weaker fault would have shown them: does the answer hold?

`python -m tests.bench.perturbed CASES [CACHE [NAME …]]`; through `make bench` with `CASES` in the environment. Each case
is collected once; every perturbation is then judged anew. `-v` names the cases whose first answer changed.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bot.cause import Catalogue
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.symptoms import find_incident
from bot.domain.hypothesis import NOT_ESTABLISHED, Diagnosis
from tests.bench import other_style as style
from tests.bench import perturbations as ways
from tests.bench.diagnosis import Recorded, figures, judge_all, record

HEADER = "perturbation          AC@1   AC@3   chains exact  abstention P/R  wrong at 0.7"


def all_ways(catalogue: Catalogue) -> dict[str, ways.Perturbation]:
    units = {name: signal.unit for name, signal in catalogue.signals.items()}
    return {
        "renamed": ways.renamed,
        "another day": ways.another_day,
        "noise 5 %": ways.jittered(0.05),
        "noise 10 %": ways.jittered(0.10),
        "traffic x0.3": ways.busier(0.3, units),
        "traffic x3": ways.busier(3, units),
        "latency x0.5": ways.slower(0.5, units),
        "latency x2": ways.slower(2, units),
        "fault 60 %": ways.stronger(0.6),
        "fault 80 %": ways.stronger(0.8),
        "fault 150 %": ways.stronger(1.5),
        "scrape x2": ways.coarser(2),
        "scrape x4": ways.coarser(4),
        "20 % of series gone": ways.fewer_signals(0.2),
        "20 % gone, again": ways.fewer_signals(0.2),
        "no logs": ways.without_logs,
        "log text reworded": ways.reworded,
        "log text empty": ways.silent_lines,
        "no traces": ways.without("traces", spans=()),
        "spans skewed": ways.skewed_spans,
        "no agents": ways.without("probes", probes=()),
        "one agent silent": ways.one_agent_silent,
        "half the probes": ways.fewer_probes(0.5),
        "findings unworded": ways.other_words,
        "no change log": ways.without("events", changes=()),
        "decoy deploys": ways.decoy_deploys,
        "bystanders": ways.bystanders,
        "alert in English": style.alerted("en"),
        "alert in Chinese": style.alerted("zh-CN"),
        "recording rules": style.recorded_only(catalogue.signals),
        "no history": lambda collected, _, __: replace(collected, history={}),
    }


async def run() -> list[str]:
    cases = os.environ.get("CASES")
    if not cases:
        return ["needs recorded cases: CASES=DIR"]
    with tempfile.TemporaryDirectory() as cache:
        return await report(Path(cases), Path(cache), (), verbose=False)


async def report(cases: Path, cache: Path, only: Sequence[str], *, verbose: bool) -> list[str]:
    recorded = [
        await record(folder, cases, cache)
        for folder in sorted(cases.glob("*/"))
        if (folder / "case.json").exists()
    ]
    catalogue = load_causes([shipped_causes()])
    plain = judge_all(recorded, catalogue)
    lines = [HEADER, f"{'as recorded':<20} {figures(recorded, plain)}"]
    for name, way in all_ways(catalogue).items():
        if only and name not in only:
            continue
        seen = [_seen(one, way, catalogue, name) for one in recorded]
        answers = judge_all(seen, catalogue)
        lines.append(f"{name:<20} {figures(seen, answers)}")
        if verbose:
            lines += _changed(seen, answers)
    return lines


def _seen(one: Recorded, way: ways.Perturbation, catalogue: Catalogue, name: str) -> Recorded:
    incident = find_incident(one.collected, catalogue).window
    noise = random.Random(f"{name} {one.id}")
    collected = way(one.collected, incident, noise)
    service = one.service
    if name == "renamed":
        again = ways.new_names(one.collected, random.Random(f"{name} {one.id}"))
        service = replace(
            service, name=again(service.name), nodes=tuple(map(again, service.nodes)),
            depends_on=tuple(map(again, service.depends_on)),
        )  # fmt: skip
    return replace(one, collected=collected, service=service)


def _changed(recorded: Sequence[Recorded], answers: Mapping[str, Diagnosis]) -> list[str]:
    lines = []
    for one in recorded:
        first = answers[one.id].hypotheses[0]
        chain_off = one.cause != NOT_ESTABLISHED and first.chain != one.chain
        if first.cause in one.acceptable and not chain_off:
            continue
        place = next(
            (
                at
                for at, item in enumerate(answers[one.id].hypotheses, 1)
                if item.cause in one.acceptable
            ),
            0,
        )
        share = next(
            (
                item.probability
                for item in answers[one.id].hypotheses
                if item.cause in one.acceptable
            ),
            0.0,
        )
        lines.append(
            f"    {one.id} {'>'.join(first.chain)} {first.probability:.2f} instead of {'>'.join(one.chain)} (#{place} {share:.2f})"
        )
    return lines


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not words:
        sys.exit("usage: python -m tests.bench.perturbed [-v] CASES [CACHE [NAME …]]")
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(words[1]) if len(words) > 1 else Path(scratch)
        for text in asyncio.run(report(Path(words[0]), kept, words[2:], verbose="-v" in sys.argv)):
            sys.stdout.write(text + "\n")
