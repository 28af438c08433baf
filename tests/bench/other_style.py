"""The same incident where a site words its alerts in another language, or keeps recording rules instead of histograms.

Perturbations like those beside this file; none knows which incident it is or what its cause was.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from bot.cause import Signal
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.plan import metrics_in
from bot.domain.hypothesis import Symptom
from bot.domain.instant import Window
from bot.domain.text import Localized
from tests.bench.perturbations import Perturbation

ALERTS = {
    "en": "p99 of {service} above its objective for 10 minutes, users complain about {service}",
    "zh-CN": "{service} 的 P99 延迟连续 10 分钟超出目标，用户反馈 {service} 异常",
}
_HISTOGRAM = ("_bucket", "_sum", "_count")


def alerted(locale: str) -> Perturbation:
    """An alert opened the incident, and all it says is in one language."""

    def apply(collected: Collected, _: Window, __: random.Random) -> Collected:
        said = Localized.verbatim(ALERTS[locale].format(service=collected.request.service))
        request = replace(collected.request, symptoms=(Symptom(id="alert", summary=said),))
        return replace(collected, request=request)

    return apply


def recorded_only(signals: Mapping[str, Signal]) -> Perturbation:
    """A site that keeps what its histograms say as recording rules, and of the raw series nothing.

    A rule is a gauge to whoever reads it: no rate in the query, no buckets, and its name says the measure. What comes
    from the same histograms and has no such name in the catalogue is not kept.
    """

    def apply(collected: Collected, _: Window, __: random.Random) -> Collected:
        def kept(name: str, reading: Reading) -> Reading | None:
            signal = signals.get(name)
            if signal is None or not any(
                one.endswith(_HISTOGRAM) for one in metrics_in(reading.query)
            ):
                return reading
            if signal.recorded is None:
                return None
            rule = f'svc:{name.replace(".", "_")}:recorded{{service="{collected.request.service}"}}'
            return replace(reading, query=rule, beyond=None)

        return replace(
            collected,
            now={
                name: found
                for name, reading in collected.now.items()
                if (found := kept(name, reading)) is not None
            },
            history={
                name: tuple(found for one in many if (found := kept(name, one)) is not None)
                for name, many in collected.history.items()
            },
        )

    return apply
