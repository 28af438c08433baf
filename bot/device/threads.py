"""Looks at the thread table of a service several times and sums up what its threads wait for."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from bot.device.field import FieldState, Unread
from bot.device.proc import ProcRoot
from bot.device.service import ServiceTarget, find_processes
from bot.device.stacks import Waiting, futex_address, is_kernel_lock, take_stacks
from bot.errors import ProbeError, Reason

SAMPLE_GAP_SECONDS = 0.2
MAX_THREADS = 4096
"""A cap on work, far above any server's pool; more threads are left out and said so."""
_SUSPICIOUS_WAITERS = 4
"""Threads on one futex from which contention is suspected. Our judgement: two or three wait at any busy pool."""


class ThreadKind(StrEnum):
    """What a thread was doing at one look."""

    BLOCKED = "blocked"
    RUNNABLE = "runnable"
    FUTEX = "futex"
    KERNEL_LOCK = "kernel_lock"
    STOPPED = "stopped"
    SLEEPING = "sleeping"


@dataclass(slots=True)
class _Tally:
    kinds: Counter[ThreadKind] = field(default_factory=Counter)
    channels: Counter[str] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    futexes: Counter[str] = field(default_factory=Counter)
    kernel_locks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSurvey:
    """`seconds` covers all `samples` looks.

    `run_delay_ratio` is time waiting for a CPU over time wanting one, both summed over threads; `delayed_threads` is how
    many threads waited for a CPU at a time, on average; `busy_threads` are
    those that ran or waited for I/O at all in the window; `lock_waiters` wait for one lock, at the Python line
    `lock_at` where stacks could be read.
    """

    seconds: float
    samples: int
    processes: int
    threads: int
    busy_threads: int
    kinds: dict[ThreadKind, float]
    wait_channels: dict[str, int]
    blocked_channels: tuple[str, ...]
    run_delay_ratio: float | Unread
    delayed_threads: float
    most_delayed: list[dict[str, object]]
    switches_per_second: float
    lock_waiters: int
    lock_at: str | None
    not_checked: tuple[str, ...]

    def mean(self, kind: ThreadKind) -> float:
        """Average number of threads of that kind over the looks."""
        return self.kinds.get(kind, 0.0)


@dataclass(frozen=True, slots=True)
class _Effort:
    name: str
    cpu_seconds: float
    delay_seconds: float | None
    switches: int


def survey_threads(
    proc: ProcRoot,
    target: ServiceTarget,
    samples: int,
    wait: Callable[[float], None],
    monotonic: Callable[[], float],
) -> ThreadSurvey:
    """Looks `samples` times, 0.2 s apart.

    Raises:
        ProbeError: the service has no process here, or its threads may not be read.
    """
    pids = [task.pid for task in find_processes(proc, target)]
    table = [(pid, thread) for pid in pids for thread in proc.thread_ids(pid)]
    not_checked = [f"threads beyond the first {MAX_THREADS}"] if len(table) > MAX_THREADS else []
    table = table[:MAX_THREADS]
    started = monotonic()
    before = _efforts(proc, table)
    tallies: list[_Tally] = []
    for look in range(samples):
        if look:
            wait(SAMPLE_GAP_SECONDS)
        tallies.append(_look(proc, table))
    after = _efforts(proc, table)
    seconds = max(1e-6, monotonic() - started)
    if not any(sum(tally.kinds.values()) for tally in tallies):
        raise ProbeError(
            f"service {target.name}: its threads cannot be read", reason=Reason.UNAUTHORISED
        )
    channels = sum((tally.channels for tally in tallies), Counter[str]())
    blocked = sum((tally.blocked for tally in tallies), Counter[str]())
    delay, delayed_threads, delayed = _run_delay(before, after, seconds)
    if isinstance(delay, Unread):
        not_checked.append(f"run delay: {delay.detail}")
    waiters, lock_at, doubt, threads = _lock(proc, pids, tallies)
    if doubt:
        not_checked.append(doubt)
    return ThreadSurvey(
        seconds=seconds,
        samples=samples,
        processes=len(pids),
        threads=max(len(table), threads),
        busy_threads=_busy(before, after, tallies),
        kinds={kind: sum(tally.kinds[kind] for tally in tallies) / samples for kind in ThreadKind},
        wait_channels=dict(channels.most_common(8)),
        blocked_channels=tuple(name for name, _ in blocked.most_common(3)),
        run_delay_ratio=delay,
        delayed_threads=delayed_threads,
        most_delayed=delayed,
        switches_per_second=sum(
            max(0, effort.switches - before[key].switches)
            for key, effort in after.items()
            if key in before
        )
        / seconds,
        lock_waiters=waiters,
        lock_at=lock_at,
        not_checked=tuple(not_checked),
    )


def _look(proc: ProcRoot, table: list[tuple[int, int]]) -> _Tally:
    tally = _Tally()
    for pid, thread in table:
        # Threads come and go between listing and reading; that is no fault of the reading.
        with contextlib.suppress(ProbeError):
            state = proc.task(pid, thread).state
            channel = ""
            if state in "SD":
                with contextlib.suppress(ProbeError):
                    channel = proc.text(pid, "task", thread, "wchan").strip("\n\0")
            kind = _kind(state, channel)
            tally.kinds[kind] += 1
            if channel not in {"", "0"}:
                tally.channels[channel] += 1
            if kind is ThreadKind.BLOCKED:
                tally.blocked[channel or "unknown"] += 1
            elif kind is ThreadKind.FUTEX:
                tally.futexes[f"{pid} {futex_address(proc, pid, thread, channel)}"] += 1
    return tally


def _kind(state: str, channel: str) -> ThreadKind:
    if is_kernel_lock(channel):
        return ThreadKind.KERNEL_LOCK
    if state == "D":
        return ThreadKind.BLOCKED
    if state == "R":
        return ThreadKind.RUNNABLE
    if state in "Tt":
        return ThreadKind.STOPPED
    return ThreadKind.FUTEX if "futex" in channel else ThreadKind.SLEEPING


def _efforts(proc: ProcRoot, table: list[tuple[int, int]]) -> dict[tuple[int, int], _Effort]:
    efforts: dict[tuple[int, int], _Effort] = {}
    for pid, thread in table:
        with contextlib.suppress(ProbeError):
            status = proc.status(pid, thread)
            delay: float | None = None
            running = proc.task(pid, thread).cpu_seconds
            with contextlib.suppress(ProbeError, IndexError, ValueError):
                parts = proc.text(pid, "task", thread, "schedstat").split()
                running, delay = int(parts[0]) / 1e9, int(parts[1]) / 1e9
            efforts[pid, thread] = _Effort(
                name=status.get("Name", ""),
                cpu_seconds=running,
                delay_seconds=delay,
                switches=int(status.get("voluntary_ctxt_switches", 0)),
            )
    return efforts


def _run_delay(
    before: dict[tuple[int, int], _Effort], after: dict[tuple[int, int], _Effort], seconds: float
) -> tuple[float | Unread, float, list[dict[str, object]]]:
    delayed = ran = 0.0
    rows: list[tuple[float, dict[str, object]]] = []
    for key, effort in after.items():
        earlier = before.get(key)
        if earlier is None or effort.delay_seconds is None or earlier.delay_seconds is None:
            continue
        waited = effort.delay_seconds - earlier.delay_seconds
        delayed += waited
        ran += effort.cpu_seconds - earlier.cpu_seconds
        rows.append(
            (waited, {"thread": effort.name, "tid": key[1], "delay_ratio": waited / seconds})
        )
    if not rows:
        return Unread(FieldState.NOT_SUPPORTED, "the kernel keeps no schedstat"), 0.0, []
    rows.sort(key=lambda row: -row[0])
    # A service that hardly wants a CPU says nothing about waiting for one: 1 % of a core in the window.
    wanted = delayed + ran
    ratio = delayed / wanted if wanted > 0.01 * seconds else 0.0
    return ratio, delayed / seconds, [row for waited, row in rows[:5] if waited > 0]


def _busy(
    before: dict[tuple[int, int], _Effort],
    after: dict[tuple[int, int], _Effort],
    tallies: list[_Tally],
) -> int:
    moved = sum(
        1
        for key, effort in after.items()
        if key in before
        and (effort.switches > before[key].switches or effort.cpu_seconds > before[key].cpu_seconds)
    )
    return max([moved, *(tally.kinds[ThreadKind.BLOCKED] for tally in tallies)])


def _lock(
    proc: ProcRoot, pids: list[int], tallies: list[_Tally]
) -> tuple[int, str | None, str | None, int]:
    """Waiters of one lock, its Python line, what stays in doubt, and how many threads the stacks showed.

    Workers of an idle pool sleep on one futex exactly as waiters of a lock do; only their stacks differ.
    """
    kernel = round(sum(tally.kinds[ThreadKind.KERNEL_LOCK] for tally in tallies) / len(tallies))
    if kernel >= _SUSPICIOUS_WAITERS:
        return kernel, "a lock inside the kernel", None, 0
    # The same address at most looks: one that is only passed through does not count.
    common = Counter(
        {
            address: min(tally.futexes[address] for tally in tallies)
            for address in tallies[-1].futexes
        }
    )
    if not common or common.most_common(1)[0][1] < _SUSPICIOUS_WAITERS:
        return 0, None, None, 0
    address, waiters = common.most_common(1)[0]
    pid = int(address.split()[0])
    try:
        stacks = take_stacks(proc, pid if pid in pids else pids[0], 2.0)
    except ProbeError as failure:
        return (
            0,
            None,
            (
                f"{waiters} threads sleep on one futex: a lock or an idle pool cannot be told apart "
                f"without stacks ({failure})"
            ),
            0,
        )
    asking = [stack for stack in stacks if stack.waiting is Waiting.LOCK]
    at = Counter(str(stack.where) for stack in asking).most_common(1)
    # Threads come and go: the stacks are later than the table, so they count for themselves.
    return (at[0][1], at[0][0], None, len(stacks)) if at else (0, None, None, 0)
