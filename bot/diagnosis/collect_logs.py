"""Reads log lines and log volumes of the service and of everything else on its nodes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bot.cause import Catalogue
from bot.diagnosis.collected import Reading
from bot.diagnosis.plan import Scope, any_of, log_selector, log_tests
from bot.domain.evidence import EvidenceSource, Gap
from bot.domain.instant import Window
from bot.errors import EvidenceError
from bot.inventory import Service
from bot.source import LogLine, LogsSource

_MOST_LINES = 5_000
"""Lines of one query. Source: Loki's default limit of entries per query (`max_entries_limit_per_query`)."""

_SINCE_START_SECONDS = 86_400.0
"""How long ago a process may have started for its first lines to be looked for. Basis: judgement."""

_LOUD = 'level=~"(?i)(warn|err|crit|fatal|alert|panic).*"'


@dataclass(slots=True)
class LogAnswers:
    """What the log store said so far."""

    service_lines: list[LogLine] = field(default_factory=list)
    node_lines: list[LogLine] = field(default_factory=list)
    old_lines: list[LogLine] = field(default_factory=list)
    volumes: dict[str, Reading] = field(default_factory=dict)
    window: Window | None = None
    gaps: list[Gap] = field(default_factory=list)
    answers: int = 0

    @property
    def is_down(self) -> bool:
        """True when questions were asked and none was answered."""
        return bool(self.gaps) and not self.answers


async def collect_logs(
    source: LogsSource,
    service: Service,
    nodes: tuple[str, ...],
    catalogue: Catalogue,
    window: Window,
    into: LogAnswers,
    *,
    pods_only: bool = False,
    timeout_seconds: float,
) -> None:
    """Fills `into`: all lines, the loud ones apart so that a flood of quiet ones cannot hide them, and volumes.

    pods_only: the service's streams may carry only the names of its pods.
    """
    own = log_selector(service.matchers)
    around = f'{{node=~"{any_of(nodes)}"}}'
    into.window = window
    once = "|".join(f"(?i:{test.pattern})" for test in log_tests(catalogue) if test.since_start)
    unit = f"{max(window.seconds / 90, 5):.0f}s"
    # Lines are few where sampling is on: only wide steps tell silence from chance.
    wide = f"{max(window.seconds / 30, 5):.0f}s"

    async def lines(query: str, reach: Window, target: list[LogLine]) -> None:
        try:
            answer = await source.lines(
                query, reach, limit=_MOST_LINES, timeout_seconds=timeout_seconds
            )
        except EvidenceError as error:
            into.gaps.append(_gap(query, error))
            return
        into.answers += 1
        target.extend(answer.items)
        into.gaps.extend(
            Gap(
                source=EvidenceSource.LOGS,
                plugin="logs",
                query=query,
                reason="partial",
                detail=note,
            )
            for note in answer.partial
        )

    async def volume(name: str, query: str, step: str) -> None:
        try:
            answer = await source.volume(
                query, window, step_seconds=float(step[:-1]), timeout_seconds=timeout_seconds
            )
        except EvidenceError as error:
            into.gaps.append(_gap(query, error))
            return
        into.answers += 1
        into.volumes[name] = Reading(query=query, window=window, series=answer.items)

    pods = Scope(service=service, nodes=nodes, rate_seconds=60).pods
    by_pod = [lines(f'{{pod=~"{pods}"}}', window, into.service_lines)] if pods_only else []
    asks = [
        *by_pod,
        lines(own, window, into.service_lines),
        lines(f"{own[:-1]},{_LOUD}}}", window, into.service_lines),
        volume("logs.lines", f"sum(count_over_time({own}[{wide}]))", wide),
        volume("logs.bytes", f"sum(bytes_over_time({own}[{unit}]))", unit),
    ]
    if nodes:
        asks += [
            lines(f"{around[:-1]},{_LOUD}}}", window, into.node_lines),
            lines(around, window, into.node_lines),
            volume(
                "logs.bytes_others",
                f"sum by (node, service, app, job, container, unit) (bytes_over_time({around}[{unit}]))",
                unit,
            ),
        ]
    if once:
        long = Window.before(window.end, _SINCE_START_SECONDS)
        quoted = once.replace("\\", "\\\\").replace('"', '\\"')
        asks.append(lines(f'{own} |~ "{quoted}"', long, into.old_lines))
    await asyncio.gather(*asks)
    for kept in (into.service_lines, into.node_lines, into.old_lines):
        unique = {
            (line.at_ns, tuple(sorted(line.labels.items())), line.text): line for line in kept
        }
        kept[:] = [unique[key] for key in sorted(unique)]


def _gap(query: str, error: EvidenceError) -> Gap:
    return Gap(
        source=EvidenceSource.LOGS,
        plugin="logs",
        query=query,
        reason=error.reason.value,
        detail=str(error),
    )
