"""Where the Python threads of a service stand: a contended lock, a deadlock, an empty input queue."""

from __future__ import annotations

from bot.argument import SERVICE, Argument, ArgumentKind, Arguments
from bot.device.service import find_processes
from bot.device.stack_series import MAX_PROCESSES, StackSeries, take_series
from bot.domain.finding import Finding
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

LOCK_THREADS = 4
"""Our judgement: fewer waiters than this are ordinary hand-over."""
DEADLOCK_THREADS = 2
"""Two threads are the smallest cycle of two locks."""
INPUT_RATIO = 0.5
"""Our judgement: the consumer finds its queue empty in more than half of the looks."""
GAP_SECONDS = 0.5
"""Source: the usual practice of two or three dumps one to two seconds apart, shortened to fit a 5 s deadline."""

_SAMPLES = Argument(
    name="samples",
    kind=ArgumentKind.WHOLE,
    summary="how many dumps are taken",
    default=4,
    low=2,
    high=10,
    # Each process has its gap and its dump.
    unit_seconds=2 * GAP_SECONDS * MAX_PROCESSES,
)


@describe(
    summary="Python stacks of a service, several dumps without pausing it",
    cost=Cost.MODERATE,
    findings=("proc.lock_contention", "proc.deadlock", "proc.waiting_for_input", "proc.stacks_ok"),
    arguments=(SERVICE, _SAMPLES),
    needs=("py-spy", "SYS_PTRACE"),
    deadline_seconds=10.0,
)
def process_stacks(context: ProbeContext, arguments: Arguments) -> Reading:
    """Dumps each Python process of the service (those with most threads first) and compares the dumps."""
    target = context.service(arguments.text("service"))
    tasks = sorted(find_processes(context.proc, target), key=lambda task: -task.threads)
    not_checked = [f"{len(tasks) - MAX_PROCESSES} processes beyond the first {MAX_PROCESSES}"]
    series: list[StackSeries] = []
    failures: list[ProbeError] = []
    for task in tasks[:MAX_PROCESSES]:
        try:
            series.append(
                take_series(
                    context.proc,
                    task,
                    arguments.whole("samples"),
                    GAP_SECONDS,
                    context.wait,
                    context.monotonic,
                )
            )
        except ProbeError as failure:
            failures.append(failure)
    if not series:
        raise failures[0]
    # A shell or a native tool among the processes is no gap; a Python process that could not be read is one.
    unread = [str(item) for item in failures if item.reason is not Reason.UNSUPPORTED]
    gaps = [*(not_checked if len(tasks) > MAX_PROCESSES else []), *unread]
    findings = [finding for item in series for finding in _findings(item)]
    if any(item.is_stopped for item in series):
        gaps.append("the process is stopped (state T); its stacks say nothing about its work")
    if not findings and not gaps:
        findings.append(info("proc.stacks_ok", "stacks differ between samples, no common lock"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(gaps),
        data={"processes": [_row(item) for item in series]},
    )


def _findings(series: StackSeries) -> list[Finding]:
    findings: list[Finding] = []
    lock = series.lock
    if lock is not None and lock.is_moving and lock.typical_waiters >= LOCK_THREADS:
        findings.append(
            critical(
                "proc.lock_contention",
                f"{lock.typical_waiters} of {series.threads} threads ask for the same lock at {lock.at} "
                f"in {len(lock.waiters)} of {series.good_samples} samples, and it changes hands",
                value=lock.typical_waiters,
                unit="threads",
                threshold=LOCK_THREADS,
            )
        )
    if len(series.stuck) >= DEADLOCK_THREADS:
        places = ", ".join(sorted(set(series.stuck))[:3])
        findings.append(
            warning(
                "proc.deadlock",
                f"{len(series.stuck)} threads stand at the same lock frames in "
                f"{series.good_samples} of {series.good_samples} samples over "
                f"{series.seconds:.1f} s and never ran: {places}",
                value=len(series.stuck),
                unit="threads",
                threshold=DEADLOCK_THREADS,
            )
        )
    if series.input_ratio > INPUT_RATIO:
        findings.append(
            critical(
                "proc.waiting_for_input",
                f"a consumer waits for its loader at {series.input_at} in "
                f"{series.input_ratio:.0%} of samples",
                value=series.input_ratio,
                unit="ratio",
                threshold=INPUT_RATIO,
            )
        )
    return findings


def _row(series: StackSeries) -> dict[str, object]:
    return {
        "pid": series.pid,
        "threads": series.threads,
        "good_samples": series.good_samples,
        "failed_samples": series.failed_samples,
        "window_s": series.seconds,
        "lock_at": series.lock.at if series.lock else None,
        "lock_waiters": series.lock.waiters if series.lock else (),
        "lock_changes_hands": series.lock.is_moving if series.lock else None,
        "stuck_threads": len(series.stuck),
        "waiting_threads": series.waiting,
        "running_frames": series.top_frames,
        "gil_holder_frames": series.gil_holders,
        "is_stopped": series.is_stopped,
    }
