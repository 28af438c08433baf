"""Is there a stall between two scrapes that no gauge shows."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import SERVICE, Argument, ArgumentKind, Arguments
from bot.device.bursts import HERTZ, RESOURCES, BurstSeries, sample_bursts
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info

BURST_RATIO = 0.05
"""Our judgement: stalls of a twentieth of the time are worth a finding even where no single gauge shows them."""
PEAK_RATIO = 0.8
"""Our judgement: in a quarter second of stall nearly all of it is waited."""

_SECONDS = Argument(
    name="seconds",
    kind=ArgumentKind.NUMBER,
    summary="how long to sample",
    default=4,
    low=1,
    high=30,
    unit_seconds=1,
)
_SERVICE = Argument(name="service", kind=ArgumentKind.SERVICE, summary=SERVICE.summary)


@describe(
    summary="Pressure of CPU, I/O and memory sampled 20 times a second",
    cost=Cost.MODERATE,
    findings=("metric.hidden_burst", "metric.flat"),
    arguments=(_SERVICE, _SECONDS),
    needs=("/proc/pressure",),
    deadline_seconds=8.0,
)
def burst_sample(context: ProbeContext, arguments: Arguments) -> Reading:
    """A burst is told by its shape: quarter seconds that are all stall, in a time that is mostly not."""
    if "service" in arguments.values:
        context.service(arguments.text("service"))
    seconds = arguments.number("seconds")
    series = sample_bursts(context.proc, seconds, PEAK_RATIO, context.wait, context.monotonic)
    findings = [
        finding for name, item in series.items() if (finding := _burst(name, item, seconds))
    ]
    not_checked = [f"{name} pressure cannot be read" for name in RESOURCES if name not in series]
    steady = [name for name, item in series.items() if item.mean_ratio >= BURST_RATIO]
    if steady and not findings:
        not_checked.append(f"{', '.join(steady)} pressure is steady, which the usual metrics show")
    if not findings and not not_checked:
        findings.append(info("metric.flat", "no oscillation between scrapes"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": seconds,
            "sample_hz": HERTZ,
            "pressure": {name: asdict(item) for name, item in series.items()},
        },
    )


def _burst(name: str, item: BurstSeries, seconds: float) -> Finding | None:
    # Where even the middle quarter second waits, it is a steady stall, which a gauge shows as well.
    is_calm_between = item.median_ratio < BURST_RATIO
    if item.mean_ratio < BURST_RATIO or item.peak_ratio < PEAK_RATIO or not is_calm_between:
        return None
    text = (
        f"{HERTZ} Hz for {seconds:.0f} s: {name} stalls fill {item.bad_bins} of {item.bins} quarter "
        f"seconds and are {item.mean_ratio:.0%} of the time"
    )
    return critical(
        "metric.hidden_burst", text, value=item.mean_ratio, unit="ratio", threshold=BURST_RATIO
    )
