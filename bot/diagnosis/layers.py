"""Layer by layer: abnormal, clean or not checked, and why."""

from __future__ import annotations

from bot.cause import Catalogue, Movement
from bot.diagnosis.facts import Facts
from bot.diagnosis.observation import Observation
from bot.diagnosis.wording import describe
from bot.domain.hypothesis import Layer, LayerState, LayerVerdict
from bot.domain.text import Localized
from bot.locales import say


def judge_layers(facts: Facts, catalogue: Catalogue) -> tuple[LayerVerdict, ...]:
    """One verdict for each layer, outermost first."""
    return tuple(_judge(layer, facts, catalogue) for layer in Layer)


def _judge(layer: Layer, facts: Facts, catalogue: Catalogue) -> LayerVerdict:
    odd: list[tuple[float, Localized]] = []
    calm = 0
    for observations in facts.observations.values():
        for item in observations:
            if item.signal.layer is not layer:
                continue
            moved = item.moved()
            if moved is None:
                continue
            if moved is Movement.FLAT or item.is_usual() or not _is_bad(item, moved):
                calm += 1
            else:
                odd.append((abs(item.deviation), describe(item)))
    for (node, _), result in sorted(facts.results.items()):
        for finding in result.findings:
            known = catalogue.findings.get(finding.id)
            if known is None or known.layer is not layer:
                continue
            if not known.clean:
                odd.append(
                    (
                        1e3,
                        say(
                            "diagnosis.finding.found",
                            title=known.title, node=node, said=finding.summary,
                        ),
                    )
                )  # fmt: skip
            elif not facts.is_stale:
                calm += 1
    if odd:
        _, why = max(odd, key=lambda entry: (entry[0], entry[1].en))
        return LayerVerdict(layer=layer, state=LayerState.ABNORMAL, why=why)
    if calm:
        return LayerVerdict(
            layer=layer, state=LayerState.CLEAN, why=say("diagnosis.layer.clean", count=calm)
        )
    return LayerVerdict(
        layer=layer, state=LayerState.NOT_CHECKED, why=say("diagnosis.layer.not_checked")
    )


def _is_bad(item: Observation, moved: Movement) -> bool:
    """Whether a movement is one that hurts: a clock that falls, a latency that rises; less pressure is no fault."""
    return moved is (Movement.DOWN if item.signal.ratio < 1 else Movement.UP)
