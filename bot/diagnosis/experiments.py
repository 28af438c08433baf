"""The next test to run, what it predicts, and what its result says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.cause import Catalogue, Cost, Experiment
from bot.diagnosis.facts import Facts
from bot.diagnosis.plan import Scope, probe_args
from bot.diagnosis.rank import Ranked
from bot.diagnosis.wording import quantity
from bot.domain.finding import Finding, ProbeResult, ProbeStatus
from bot.domain.hypothesis import NextExperiment
from bot.domain.incident import ExperimentVerdict
from bot.domain.text import Localized
from bot.inventory import Service
from bot.locales import say

_COST = {Cost.CHEAP: 1.0, Cost.MODERATE: 1.5, Cost.HEAVY: 4.0}
_LEADING = 4
"""What the information of a test is divided by, and how many candidates it is to tell apart. Basis: judgement: a
heavy one disturbs.
"""

_FORESEEN = 0.9
"""How often a cause that predicts a result is taken to produce it. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOutcome:
    """The verdict with the findings that decided it."""

    verdict: ExperimentVerdict
    findings: tuple[Finding, ...] = ()


def judge_experiment(
    cause: str, experiment: NextExperiment, result: ProbeResult, catalogue: Catalogue
) -> ExperimentOutcome:
    """Compares a probe's result with what `cause` predicts of it.

    A probe that could not look is unclear, and so is a result that says both.
    """
    known = catalogue.causes.get(cause)
    matching = [
        item
        for item in (known.experiments if known else ())
        if item.probe is not None and item.probe == experiment.probe == result.probe
    ]
    if not matching or result.status is not ProbeStatus.OK:
        return ExperimentOutcome(verdict=ExperimentVerdict.UNCLEAR)
    predicted = {name for item in matching for name in item.predicts}
    contrary = {name for item in matching for name in item.contradicts}
    fitting = tuple(finding for finding in result.findings if finding.id in predicted)
    against = tuple(finding for finding in result.findings if finding.id in contrary)
    if fitting and not against:
        return ExperimentOutcome(verdict=ExperimentVerdict.AS_PREDICTED, findings=fitting)
    if against and not fitting:
        return ExperimentOutcome(verdict=ExperimentVerdict.CONTRARY, findings=against)
    return ExperimentOutcome(verdict=ExperimentVerdict.UNCLEAR, findings=(*fitting, *against))


def next_experiments(
    ranked: Sequence[Ranked], facts: Facts, service: Service, *, heavy: bool
) -> Mapping[str, NextExperiment]:
    """For each candidate the test worth most for its cost; `not_established` gets the best of all."""
    shares = {item.cause: item.probability for item in ranked}
    titles = {item.cause: item.weighed.cause.title for item in ranked if item.weighed is not None}
    chosen: dict[str, NextExperiment] = {}
    best: tuple[float, str, NextExperiment] | None = None
    for item in ranked:
        if item.weighed is None:
            continue
        node = item.weighed.node or (facts.nodes[0] if facts.nodes else None)
        # A heavy probe is no next step while anything affordable is left, even if that repeats a reading.
        all_of_them = item.weighed.cause.experiments
        affordable = [one for one in all_of_them if heavy or one.cost is not Cost.HEAVY]
        worth = [
            (_worth(experiment, ranked, shares, facts, node), at, experiment)
            for at, experiment in enumerate(affordable or all_of_them)
        ]
        if not worth:
            continue
        value, _, experiment = max(worth, key=lambda entry: (entry[0], -entry[1]))
        outcomes = _outcomes(item, experiment, ranked, shares)
        chosen[item.cause] = _as_next(experiment, node, facts, service, outcomes)
        if best is None or value > best[0] + 1e-9:
            best = (value, item.cause, chosen[item.cause])
    for item in ranked:
        if item.weighed is None and best is not None:
            chosen[item.cause] = _of_cause(best[2], titles[best[1]])
    return chosen


def _worth(
    experiment: Experiment,
    ranked: Sequence[Ranked],
    shares: Mapping[str, float],
    facts: Facts,
    node: str | None,
) -> float:
    """Expected drop of entropy over the candidates, per cost; next to nothing when it has been answered already.

    A cause that predicts the result is taken to produce it in nine of ten runs, one that does not in one of ten.
    """
    likely = {item.cause: _chance(item, experiment) for item in ranked[:_LEADING]}
    rest = 1 - math.fsum(shares[name] for name in likely)
    positive = _positive(experiment, ranked, shares)
    before = _entropy([shares[name] for name in likely] + [rest])
    after = 0.0
    for chance_of, weight in ((positive, True), (1 - positive, False)):
        if chance_of <= 0:
            continue
        parts = [
            shares[name] * (chance if weight else 1 - chance) / chance_of
            for name, chance in likely.items()
        ]
        after += chance_of * _entropy([*parts, max(0.0, 1 - math.fsum(parts))])
    gain = max(before - after, 1e-6) / _COST[experiment.cost]
    answered = (
        experiment.probe is not None
        and node is not None
        and (node, experiment.probe) in facts.results
    )
    if answered:
        gain *= 0.05
    return gain


def _chance(item: Ranked, experiment: Experiment) -> float:
    return _FORESEEN if _predicts(item, experiment) else 1 - _FORESEEN


def _positive(
    experiment: Experiment, ranked: Sequence[Ranked], shares: Mapping[str, float]
) -> float:
    """How likely the result is by all candidates together."""
    leading = ranked[:_LEADING]
    rest = 1 - math.fsum(shares[item.cause] for item in leading)
    found = math.fsum(shares[item.cause] * _chance(item, experiment) for item in leading)
    return found + (1 - _FORESEEN) * rest


def _outcomes(
    item: Ranked, experiment: Experiment, ranked: Sequence[Ranked], shares: Mapping[str, float]
) -> tuple[float, float]:
    """Probability of the cause after the result that it predicts, and after the contrary."""
    share, positive = shares[item.cause], _positive(experiment, ranked, shares)
    others = max(positive - share * _chance(item, experiment), 0.0)
    up = share * _FORESEEN / max(share * _FORESEEN + others, 1e-9)
    down = share * (1 - _FORESEEN) / max(share * (1 - _FORESEEN) + (1 - share - others), 1e-9)
    return min(up, 1.0), min(down, 1.0)


def _predicts(item: Ranked, experiment: Experiment) -> bool:
    if item.weighed is None:
        return False
    if experiment in item.weighed.cause.experiments:
        return True
    return any(
        other.probe is not None
        and other.probe == experiment.probe
        and set(other.predicts) & set(experiment.predicts)
        for other in item.weighed.cause.experiments
    )


def _entropy(shares: Sequence[float]) -> float:
    return -math.fsum(share * math.log2(share) for share in shares if share > 0)


def _as_next(
    experiment: Experiment,
    node: str | None,
    facts: Facts,
    service: Service,
    outcomes: tuple[float, float],
) -> NextExperiment:
    scope = Scope(service=service, nodes=facts.nodes, rate_seconds=4 * facts.resolution_seconds)
    args = dict(experiment.args)
    if experiment.probe is not None:
        args = {**probe_args(experiment.probe, service.name), **args}
    command = experiment.command
    if command is not None:
        command = command.replace("<service>", service.name).replace("<node>", node or "<node>")
    return NextExperiment(
        probe=experiment.probe,
        node=node if experiment.probe is not None else None,
        args=args,
        query=scope.fill(experiment.query) if experiment.query else None,
        expects=_with_outcome(experiment.expects, outcomes[0]),
        would_refute=_with_outcome(experiment.would_refute, outcomes[1]),
        command=command,
    )


def _of_cause(experiment: NextExperiment, title: Localized) -> NextExperiment:
    """The test with the name of the cause that it is about, for where no cause is established."""
    return replace(
        experiment,
        expects=say("guards.of_cause", cause=title, text=experiment.expects),
        would_refute=say("guards.of_cause", cause=title, text=experiment.would_refute),
    )


def _with_outcome(text: Localized, share: float) -> Localized:
    """The result with what it would do to the ranking."""
    return say("diagnosis.experiment_outcome", text=text, share=quantity(round(share, 2), "ratio"))
