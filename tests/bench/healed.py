"""A recorded incident as if nothing had happened: the time before it, once more in place of the trouble."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from bot.cause import Catalogue
from bot.diagnosis.collected import Collected, Reading
from bot.domain.evidence import Sample, Series
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.instant import Window
from bot.source import LogLine

T = TypeVar("T")


def healed(collected: Collected, incident: Window, catalogue: Catalogue) -> Collected:
    """Everything from shortly before the onset on is what was there before it; probes that answered found nothing.

    Changes, other days and what could not be read stay as they were.
    """
    began = incident.start - timedelta(seconds=2 * collected.rate_seconds + 300)
    spans = _again(
        [(span.start_us, span) for span in collected.spans],
        began.timestamp() * 1e6, collected.window.end.timestamp() * 1e6,
        lambda span, by, n: replace(
            span, start_us=span.start_us + round(by), trace_id=f"{span.trace_id}{n}", span_id=f"{span.span_id}-{n}",
            parent=span.parent and f"{span.parent}-{n}",
        ),
    )  # fmt: skip
    return replace(
        collected,
        now={
            name: _counted(reading, began) if name.startswith("logs.") else _reading(reading, began)
            for name, reading in collected.now.items()
        },
        trends={name: _reading(reading, began) for name, reading in collected.trends.items()},
        service_lines=_lines(collected.service_lines, collected, began),
        node_lines=_lines(collected.node_lines, collected, began),
        old_lines=(),
        spans=tuple(spans),
        probes=tuple(_clean(result, catalogue) for result in collected.probes),
    )


def _reading(reading: Reading, began: datetime) -> Reading:
    kept = [_series(series, began) for series in reading.series]
    return replace(reading, series=tuple(series for series in kept if series.samples))


def _counted(reading: Reading, began: datetime) -> Reading:
    """A log store leaves empty steps out, so its samples are repeated by time and not by place."""
    end = reading.window.end
    return replace(
        reading,
        series=tuple(
            replace(
                series,
                samples=tuple(
                    sorted(
                        _again(
                            [(sample.at.timestamp(), sample) for sample in series.samples],
                            began.timestamp(), end.timestamp(),
                            lambda sample, by, _: replace(sample, at=sample.at + timedelta(seconds=by)),
                        ),
                        key=lambda sample: sample.at,
                    )
                ),
            )
            for series in reading.series
        ),
    )  # fmt: skip


def _series(series: Series, began: datetime) -> Series:
    """Values after `began` are mirrored at it, so that the level goes on without a step."""
    times = [sample.at for sample in series.samples]
    cut = bisect_left(times, began)
    if cut < 8:
        return replace(series, samples=())
    samples = [
        sample if at < cut else Sample(at=sample.at, value=series.samples[_mirror(at, cut)].value)
        for at, sample in enumerate(series.samples)
    ]
    return replace(series, samples=tuple(samples))


def _mirror(at: int, cut: int) -> int:
    """Forth and back over the samples before `cut`."""
    back = (at - cut) % (2 * cut)
    return cut - 1 - back if back < cut else back - cut


def _lines(
    lines: tuple[LogLine, ...], collected: Collected, began: datetime
) -> tuple[LogLine, ...]:
    return tuple(
        _again(
            [(line.at_ns, line) for line in lines],
            began.timestamp() * 1e9, collected.window.end.timestamp() * 1e9,
            lambda line, by, _: replace(line, at_ns=line.at_ns + round(by)),
        )
    )  # fmt: skip


def _again(items, began, end, moved):  # type: ignore[no-untyped-def]
    """What came before `began`, and as often as needed again after it."""
    before = [(at, item) for at, item in items if at < began]
    if not before:
        return []
    first = min(at for at, _ in before)
    length, found, n = began - first, [], 0
    while length > 0 and first + n * length < end:
        found += [moved(item, n * length, n) for at, item in before if at + n * length < end]
        n += 1
    return found


def _clean(result: ProbeResult, catalogue: Catalogue) -> ProbeResult:
    if result.status is not ProbeStatus.OK:
        return result
    good = sorted(
        item.id for item in catalogue.findings.values() if item.probe == result.probe and item.clean
    )
    return replace(
        result,
        findings=tuple(
            Finding(id=name, severity=FindingSeverity.INFO, summary="nothing notable")
            for name in good[:1]
        ),
    )
