"""Several stack dumps of a service and what repeats in them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bot.device.proc import ProcRoot, TaskStat
from bot.device.stacks import Stack, Waiting, hottest_group, take_stacks
from bot.errors import ProbeError, Reason

MAX_PROCESSES = 4
"""A cap on work: a server's engine, its front ends and workers; the ones with most threads are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockPlace:
    """One line that threads ask a lock at. `waiters` per sample; `is_moving` when the lock changes hands."""

    at: str
    waiters: tuple[int, ...]
    is_moving: bool

    @property
    def typical_waiters(self) -> int:
        """The middle of `waiters`."""
        return sorted(self.waiters)[len(self.waiters) // 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSeries:
    """What `good_samples` dumps of one process showed.

    `stuck` are Python lines of threads that asked for a lock in every dump and never ran in between; `input_ratio`
    is the share of dumps in which a consumer waited for its loader, at `input_at`; `top_frames` counts innermost
    frames of threads that ran.
    """

    pid: int
    threads: int
    good_samples: int
    failed_samples: int
    seconds: float
    lock: LockPlace | None
    stuck: tuple[str, ...]
    input_ratio: float
    input_at: str | None
    top_frames: dict[str, int]
    gil_holders: dict[str, int]
    waiting: dict[str, float]
    is_stopped: bool


def take_series(
    proc: ProcRoot,
    task: TaskStat,
    samples: int,
    gap_seconds: float,
    wait: Callable[[float], None],
    monotonic: Callable[[], float],
) -> StackSeries:
    """Takes `samples` dumps, `gap_seconds` apart. A non-blocking dump may fail; two good ones suffice.

    Raises:
        ProbeError: fewer than two dumps succeeded; the last failure says why.
    """
    started = monotonic()
    switches = _switches(proc, task.pid)
    dumps: list[tuple[Stack, ...]] = []
    failure: ProbeError | None = None
    for number in range(samples):
        if number:
            wait(gap_seconds)
        try:
            dumps.append(take_stacks(proc, task.pid, 3.0))
        except ProbeError as error:
            failure = error
            if error.reason is not Reason.MALFORMED:
                raise
    if len(dumps) < 2:
        raise failure or ProbeError("two stack dumps are needed and only one was asked for")
    moved = {
        thread
        for thread, count in _switches(proc, task.pid).items()
        if count != switches.get(thread)
    }
    inputs = [[stack for stack in dump if stack.waiting is Waiting.INPUT] for dump in dumps]
    at = Counter(str(stack.where) for group in inputs for stack in group).most_common(1)
    return StackSeries(
        pid=task.pid,
        threads=max(len(dump) for dump in dumps),
        good_samples=len(dumps),
        failed_samples=samples - len(dumps),
        seconds=monotonic() - started,
        lock=_lock_place(dumps, moved),
        stuck=_stuck(dumps, moved),
        input_ratio=sum(1 for group in inputs if group) / len(dumps),
        input_at=at[0][0] if at else None,
        top_frames=_count(
            str(stack.frames[0])
            for dump in dumps
            for stack in dump
            if stack.waiting is Waiting.RUNS and stack.frames
        ),
        gil_holders=_count(
            str(stack.frames[0])
            for dump in dumps
            for stack in dump
            if stack.owns_gil and stack.frames
        ),
        waiting={
            kind.value: sum(1 for dump in dumps for stack in dump if stack.waiting is kind)
            / len(dumps)
            for kind in Waiting
        },
        # Some tools leave their target stopped (benfred/py-spy#390); look, and say so.
        is_stopped=_is_stopped(proc, task.pid),
    )


def _lock_place(dumps: list[tuple[Stack, ...]], moved: set[int]) -> LockPlace | None:
    groups = [hottest_group(dump) for dump in dumps]
    places = Counter(str(group[0]) for group in groups if group is not None)
    if not places:
        return None
    place, seen = places.most_common(1)[0]
    if seen / len(dumps) < 0.6:
        return None
    members = [
        frozenset(stack.thread for stack in group[1])
        for group in groups
        if group is not None and str(group[0]) == place
    ]
    everyone = frozenset[int]().union(*members)
    return LockPlace(
        at=place,
        waiters=tuple(len(group) for group in members),
        is_moving=len(set(members)) > 1 or bool(everyone & moved),
    )


def _stuck(dumps: list[tuple[Stack, ...]], moved: set[int]) -> tuple[str, ...]:
    by_thread: dict[int, list[Stack]] = {}
    for dump in dumps:
        for stack in dump:
            by_thread.setdefault(stack.thread, []).append(stack)
    return tuple(
        sorted(
            str(stacks[0].where)
            for thread, stacks in by_thread.items()
            if thread not in moved
            and len(stacks) == len(dumps)
            and all(stack.waiting is Waiting.LOCK for stack in stacks)
            and len({stack.frames for stack in stacks}) == 1
        )
    )


def _switches(proc: ProcRoot, pid: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for thread in proc.thread_ids(pid):
        with contextlib.suppress(ProbeError):
            found[thread] = proc.status(pid, thread).get("voluntary_ctxt_switches", "")
    return found


def _is_stopped(proc: ProcRoot, pid: int) -> bool:
    with contextlib.suppress(ProbeError):
        return proc.task(pid).state in "Tt"
    return False


def _count(names: object) -> dict[str, int]:
    return dict(Counter(names).most_common(8))  # type: ignore[call-overload]
