"""The sample incident's chart: latency, phases and CPU on one axis, with a gap, a baseline and crowded marks."""

from __future__ import annotations

import math
from datetime import timedelta

from bot.domain.evidence import ChartMark, ChartPanel, ChartSpec, Sample, Series
from bot.domain.instant import Window
from bot.domain.text import Localized
from tests.report.sample_facts import BEGAN, COPY, NODE, P99, SERVICE


def chart_spec(name: str = "deciding", *, panels: int = 3, step: float = 5.0) -> ChartSpec:
    """A chart of the incident: latency, phases and CPU on one axis, with a gap, a baseline and crowded marks."""
    window = Window(BEGAN - timedelta(minutes=12), BEGAN + timedelta(minutes=18))
    fixed = BEGAN + timedelta(minutes=11)

    def curve(
        low: float, high: float, *, gap: tuple[int, int] = (0, 0), phase: float = 0.0
    ) -> tuple[Sample, ...]:
        samples = []
        count = int(window.seconds / step)
        for index in range(count + 1):
            at = window.start + timedelta(seconds=index * step)
            rise = min(1.0, max(0.0, (at - BEGAN).total_seconds() / 90))
            if at > fixed:
                rise = max(0.0, 1 - (at - fixed).total_seconds() / 60)
            wave = 1 + 0.05 * math.sin(index / 3 + phase) + 0.03 * math.sin(index / 1.3)
            value = (low + (high - low) * rise) * wave
            samples.append(Sample(at=at, value=None if gap[0] <= index < gap[1] else value))
        return tuple(samples)

    def series(name: str, unit: str, samples: tuple[Sample, ...], **labels: str) -> Series:
        return Series(name=name, labels=labels, unit=unit, samples=samples, step_seconds=step)

    gap = (int(840 / step), int(930 / step))
    all_panels = (
        ChartPanel(
            title=Localized("Request latency, P99", "请求延迟 P99"),
            unit="s",
            series=(series("p99", "s", curve(0.08, 0.6, gap=gap), service=SERVICE),),
            query=P99.query,
            source="Prometheus",
            baseline_low=0.07,
            baseline_high=0.095,
            threshold=0.3,
            evidence_id=P99.id,
        ),
        ChartPanel(
            title=Localized("Time by phase, mean", "各阶段平均耗时"),
            unit="s",
            series=(
                series("phase", "s", curve(0.004, 0.33), phase="h2d_wait"),
                series("phase", "s", curve(0.031, 0.033, phase=1), phase="compute"),
                series("phase", "s", curve(0.006, 0.0065, phase=2), phase="tokenize"),
            ),
            query='avg by (phase) (rate(phase_duration_seconds_sum{service="translate-api"}[30s]))',
            source="Prometheus",
            evidence_id=COPY.id,
        ),
        ChartPanel(
            title=Localized("CPU pressure, waiting share", "CPU 压力（等待占比）"),
            unit="ratio",
            series=(series("cpu", "ratio", curve(0.004, 0.005), node=NODE),),
            query="rate(node_pressure_cpu_waiting_seconds_total[30s])",
            source="Prometheus",
            baseline_low=0.002,
            baseline_high=0.008,
            threshold=0.1,
        ),
    )
    return ChartSpec(
        id=name,
        title=Localized("Pinned-memory contention: deciding evidence", "锁页内存争用：决定性证据"),
        window=window,
        panels=all_panels[:panels],
        marks=(
            ChartMark(
                at=BEGAN - timedelta(minutes=8),
                label=Localized("deploy gateway 2.14.1", "部署 gateway 2.14.1"),
                kind="change",
            ),
            ChartMark(
                at=BEGAN + timedelta(seconds=40),
                label=Localized("alert TranslateP99High", "告警 TranslateP99High"),
                kind="alert",
            ),
            ChartMark(
                at=BEGAN + timedelta(seconds=110),
                label=Localized("incident opened", "事件开启"),
                kind="alert",
            ),
            ChartMark(
                at=fixed,
                label=Localized("fix: preallocated pool", "修复：预分配缓冲池"),
                kind="fix",
            ),
        ),
        onset=Window(BEGAN - timedelta(seconds=15), BEGAN + timedelta(seconds=20)),
    )
