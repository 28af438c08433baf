"""What the threads of a service wait for: the disk, a CPU, a lock."""

from __future__ import annotations

from bot.argument import SERVICE, Argument, ArgumentKind, Arguments
from bot.device.field import Unread
from bot.device.threads import SAMPLE_GAP_SECONDS, ThreadKind, ThreadSurvey, survey_threads
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

DELAYED_THREADS = 0.1
"""Our judgement: below a tenth of a thread waiting at a time, the delay is the scheduler's ordinary latency."""
BLOCKED_RATIO = 0.3
"""Our judgement: with three of ten threads in uninterruptible sleep at once, I/O bounds the service."""
RUN_DELAY_RATIO = 0.10
"""Our judgement: a thread that wants to run waits a tenth of the time for a CPU."""
LOCK_RATIO = 0.3
"""Our judgement, as `BLOCKED_RATIO`."""
LOCK_THREADS = 4
"""Our judgement: fewer waiters than this are ordinary hand-over."""

_SAMPLES = Argument(
    name="samples",
    kind=ArgumentKind.WHOLE,
    summary="how often the thread table is read",
    default=5,
    low=2,
    high=20,
    unit_seconds=SAMPLE_GAP_SECONDS,
)


@describe(
    summary="States, wait channels, run delay and lock waits of a service's threads",
    cost=Cost.CHEAP,
    findings=("proc.blocked_io", "proc.runnable_waiting", "proc.lock_wait", "proc.threads_ok"),
    arguments=(SERVICE, _SAMPLES),
    needs=("/proc/PID/task", "schedstat", "py-spy to tell an idle pool from a lock"),
)
def process_threads(context: ProbeContext, arguments: Arguments) -> Reading:
    """Several looks at the thread table 0.2 s apart, then one at the stacks if a lock is suspected."""
    target = context.service(arguments.text("service"))
    survey = survey_threads(
        context.proc, target, arguments.whole("samples"), context.wait, context.monotonic
    )
    not_checked = list(survey.not_checked)
    stopped = survey.mean(ThreadKind.STOPPED)
    if stopped > 0:
        not_checked.append(
            f"{stopped:.0f} of {survey.threads} threads are stopped (state T): somebody stopped the process, "
            "or a debugger holds it"
        )
    findings = _blocked(survey) + _waiting_for_cpu(survey) + _locked(survey)
    if not findings and not not_checked:
        findings.append(info("proc.threads_ok", "no thread stuck in I/O or lock"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": survey.seconds,
            "processes": survey.processes,
            "threads": survey.threads,
            "samples": survey.samples,
            "blocked_io_threads": survey.mean(ThreadKind.BLOCKED),
            "running_threads": survey.mean(ThreadKind.RUNNABLE),
            "futex_threads": survey.mean(ThreadKind.FUTEX),
            "run_delay_ratio": survey.run_delay_ratio,
            "delayed_threads": survey.delayed_threads,
            "most_delayed": survey.most_delayed,
            "voluntary_switches_per_s": survey.switches_per_second,
            "wait_channels": survey.wait_channels,
            "lock_waiters": survey.lock_waiters,
            "lock_at": survey.lock_at,
            "stopped_threads": survey.mean(ThreadKind.STOPPED),
        },
    )


def _blocked(survey: ThreadSurvey) -> list[Finding]:
    ratio = survey.mean(ThreadKind.BLOCKED) / max(1, survey.busy_threads)
    blocked = survey.mean(ThreadKind.BLOCKED)
    if blocked < 1 or ratio <= BLOCKED_RATIO:
        return []
    where = ", ".join(survey.blocked_channels[:3]) or "wait channel unknown"
    text = (
        f"{blocked:.1f} of {survey.busy_threads} busy threads in D on average ({where}), "
        f"{survey.threads} threads in all"
    )
    return [critical("proc.blocked_io", text, value=ratio, unit="ratio", threshold=BLOCKED_RATIO)]


def _waiting_for_cpu(survey: ThreadSurvey) -> list[Finding]:
    ratio = survey.run_delay_ratio
    if isinstance(ratio, Unread) or ratio <= RUN_DELAY_RATIO:
        return []
    if survey.delayed_threads < DELAYED_THREADS:
        return []
    text = (
        f"threads that want to run wait {ratio:.0%} of that time for a CPU, "
        f"{survey.delayed_threads:.1f} threads at a time"
    )
    return [
        warning("proc.runnable_waiting", text, value=ratio, unit="ratio", threshold=RUN_DELAY_RATIO)
    ]


def _locked(survey: ThreadSurvey) -> list[Finding]:
    ratio = survey.lock_waiters / max(1, survey.threads)
    if survey.lock_waiters < LOCK_THREADS or ratio <= LOCK_RATIO:
        return []
    text = f"{survey.lock_waiters} of {survey.threads} threads wait for one lock"
    if survey.lock_at:
        text += f" at {survey.lock_at}"
    text += f"; {survey.switches_per_second:.0f} voluntary switches/s"
    return [warning("proc.lock_wait", text, value=ratio, unit="ratio", threshold=LOCK_RATIO)]
