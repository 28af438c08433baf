"""The chart that the bench draws: six temperatures over an hour."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

from bot.domain.evidence import ChartPanel, ChartSpec, Sample, Series
from bot.domain.instant import Window
from bot.domain.text import Localized

SERIES, POINTS, STEP = 6, 720, 5
_START = datetime(2026, 11, 30, 8, tzinfo=UTC)


def spec() -> ChartSpec:
    """The same chart every time."""
    noise = random.Random(1)
    series = tuple(
        Series(
            name="", labels={"gpu": str(at)}, unit="celsius", step_seconds=STEP,
            samples=tuple(
                Sample(
                    at=_START + timedelta(seconds=STEP * n),
                    value=60 + 10 * at + 8 * math.sin(n / 40 + at) + 3 * noise.random(),
                )
                for n in range(POINTS)
            ),
        )
        for at in range(SERIES)
    )  # fmt: skip
    title = Localized(en="GPU temperature", zh="GPU 温度")
    return ChartSpec(
        id="bench", title=title, window=Window(_START, _START + timedelta(seconds=STEP * POINTS)),
        panels=(ChartPanel(title=title, unit="celsius", series=series, query="DCGM_FI_DEV_GPU_TEMP", source="prometheus"),),
    )  # fmt: skip
