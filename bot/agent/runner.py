"""Runs each probe in a child process that can be left behind, and answers at the deadline whatever the child does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

import bot
from bot.agent.artefacts import ArtefactStore
from bot.agent.child import ChildTask
from bot.agent.process import ChildProcess
from bot.agent.settings import AgentSettings
from bot.device.proc import ProcRoot
from bot.domain.finding import Finding, ProbeResult, ProbeStatus
from bot.errors import ConfigError
from bot.probe import Cost, Probe

_log = structlog.get_logger("rca.agent")

NVML_GROUP = "nvml"
"""Serial group of probes that talk to the GPU driver. Source: NVIDIA/dcgm-exporter#215, two clients at once hang."""
STANDIN_PREFIX = "standin:"
"""Before the path of a table of readings that is asked in the driver's place."""
_STALL_SECONDS = 2.0
_STALL_SHARE = 0.4
"""One GPU may take at most this share of the deadline, so that a second child has time for the others."""
_HEAVY_GROUP = "heavy"
_CLOSE_SECONDS = 2.0


class ChildRunner:
    """Owns every child. `close` ends those that still run."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._now = now
        self._monotonic = monotonic
        self._locks: dict[str, asyncio.Lock] = {}
        self._slots = asyncio.Semaphore(settings.limits.parallel)
        self._hung: dict[str, ChildProcess] = {}
        self._children: set[ChildProcess] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self.artefacts = ArtefactStore(settings.artefacts, settings.limits.artefact_bytes, now=now)

    @property
    def hung(self) -> Mapping[str, ChildProcess]:
        """Children that outlived their deadline and have not ended, by probe or by GPU."""
        return self._hung

    async def run(
        self, probe: Probe, args: Mapping[str, Any], timeout_seconds: float
    ) -> ProbeResult:
        """Runs the probe and answers no later than `timeout_seconds` from now, give or take the loop's own turn.

        `args` must have been accepted by `probe.accept` before.
        """
        started, start = self._now(), self._monotonic()
        deadline = start + timeout_seconds

        def result(**values: Any) -> ProbeResult:
            return ProbeResult(
                probe=probe.name,
                node=self._settings.node,
                started_at=datetime.fromtimestamp(started, UTC),
                duration_seconds=round(self._monotonic() - start, 4),
                **values,
            )

        stuck = self._hung.get(probe.name)
        if stuck is not None:
            return result(
                status=ProbeStatus.TIMEOUT,
                error=f"an earlier run still hangs ({stuck.describe()}); this probe waits until it ends",
                data={"child": stuck.to_json()},
            )
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._enter(probe)
        except TimeoutError:
            return result(
                status=ProbeStatus.TIMEOUT,
                error=f"deadline of {timeout_seconds:g} s passed while other probes ran; ask again",
            )
        try:
            values = await self._attempt(probe, args, deadline, timeout_seconds)
        finally:
            self._leave(probe)
        return result(**values)

    async def close(self) -> None:
        """Ends every child that is still there; returns when all are gone, or will not go within two seconds."""
        for child in list(self._children):
            child.signal(signal.SIGKILL if self._may_kill(child) else signal.SIGTERM)
        if self._leaving:
            _, stuck = await asyncio.wait(self._leaving, timeout=_CLOSE_SECONDS)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
        self.artefacts.close()

    def _groups(self, probe: Probe) -> list[str]:
        # A stand-in is a table, not a driver whose lock two clients would fight for.
        is_driver = not self._settings.nvml_library.startswith(STANDIN_PREFIX)
        is_shared = probe.serial_group != NVML_GROUP or is_driver
        groups = [(probe.serial_group if is_shared else None) or probe.name]
        return [_HEAVY_GROUP, *groups] if probe.cost is Cost.HEAVY else groups

    async def _enter(self, probe: Probe) -> None:
        entered: list[asyncio.Lock] = []
        try:
            for group in self._groups(probe):
                lock = self._locks.setdefault(group, asyncio.Lock())
                await lock.acquire()
                entered.append(lock)
            await self._slots.acquire()
        except BaseException:
            for lock in entered:
                lock.release()
            raise

    def _leave(self, probe: Probe) -> None:
        self._slots.release()
        for group in self._groups(probe):
            self._locks[group].release()

    async def _attempt(
        self, probe: Probe, args: Mapping[str, Any], deadline: float, timeout_seconds: float
    ) -> dict[str, Any]:
        """One child; where it hangs on one GPU, a second that leaves that GPU out, and so on."""
        try:
            folder = str(self.artefacts.folder().path) if probe.makes_artefact else ""
        except ConfigError as error:
            return {"status": ProbeStatus.ERROR, "error": str(error)}
        is_nvml = probe.serial_group == NVML_GROUP
        stall = min(_STALL_SECONDS, _STALL_SHARE * timeout_seconds)
        skipped = {
            mark: f"an earlier NVML call still hangs ({child.describe()})"
            for mark, child in self._hung.items()
            if mark.startswith("gpu ") and is_nvml
        }
        while True:
            try:
                child = await self._start(probe, args, skipped, folder)
            except OSError as error:
                # Out of processes, memory or descriptors: a fault of the node, and worth an answer of its own.
                return {
                    "status": ProbeStatus.ERROR,
                    "error": f"no process could be started for the probe: {error.strerror or error}; "
                    "see how many processes and open files this node has left",
                }
            try:
                outcome = await child.follow(
                    deadline, self._monotonic, stall_seconds=stall if is_nvml else None
                )
            except BaseException:
                self._abandon(child, probe.name)
                raise
            if outcome is not None:
                self._own(self._reap(child, probe.name))
                return _values(outcome)
            mark = child.mark
            is_one_gpu = is_nvml and mark.startswith("gpu ") and mark not in skipped
            if is_one_gpu:
                note = f"NVML call blocked over {child.stalled_seconds(self._monotonic()):.1f} s"
                skipped[mark] = note
                self._abandon(child, mark)
                if self._monotonic() < deadline:
                    continue
            else:
                self._abandon(child, probe.name)
            return {
                "status": ProbeStatus.TIMEOUT,
                "error": f"deadline of {timeout_seconds:g} s passed ({child.describe()})",
                "data": {"child": child.to_json(), "hung": dict(skipped)},
            }

    async def _start(
        self,
        probe: Probe,
        args: Mapping[str, Any],
        skipped: Mapping[str, str],
        artefact_folder: str,
    ) -> ChildProcess:
        settings = self._settings
        task = ChildTask(
            probe=probe.name,
            args=args,
            proc_root=str(settings.proc_root),
            sys_root=str(settings.sys_root),
            nvml_library=settings.nvml_library,
            kernel_log=str(settings.kernel_log),
            package_log=str(settings.package_log),
            services=settings.services,
            result_bytes=settings.limits.result_bytes,
            skipped=dict(skipped),
            cuda_library=settings.cuda_library,
            artefact_folder=artefact_folder,
            artefact_bytes=settings.limits.artefact_bytes,
        )
        child = await ChildProcess.start(
            (sys.executable, "-P", "-m", "bot.agent.child"),
            task.to_json(),
            environment=_child_environment(),
            output_limit_bytes=2 * settings.limits.result_bytes + 65536,
            proc=ProcRoot(Path("/proc")),
            now=self._monotonic(),
            is_driver_client=probe.serial_group == NVML_GROUP,
        )
        self._children.add(child)
        return child

    def _may_kill(self, child: ChildProcess) -> bool:
        return self._settings.limits.sigkill or not child.is_driver_client

    def _abandon(self, child: ChildProcess, key: str) -> None:
        """Leaves the child to a task of its own: SIGTERM, grace, SIGKILL last, and an entry until it is gone."""
        self._hung[key] = child
        self._own(self._see_off(child, key))

    def _own(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _reap(self, child: ChildProcess, key: str) -> None:
        """After its answer a child only has to exit; one that cannot even do that is treated as hung."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.limits.grace_seconds):
                await child.wait()
        if child.is_alive:
            self._hung[key] = child
            await self._see_off(child, key)
        self._children.discard(child)

    async def _see_off(self, child: ChildProcess, key: str) -> None:
        try:
            child.signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.limits.grace_seconds):
                    await child.wait()
            if child.is_alive:
                if self._may_kill(child):
                    child.signal(signal.SIGKILL)
                _log.warning("child_hangs", probe=key, **child.to_json())
                await child.wait()
        finally:
            if not child.is_alive:
                child.sweep(signal.SIGKILL if self._may_kill(child) else signal.SIGTERM)
                self._children.discard(child)
                if self._hung.get(key) is child:
                    del self._hung[key]


def _child_environment() -> dict[str, str]:
    """Nothing of the agent's own environment but the search path: it may hold what a probe must not see."""
    root = str(Path(next(iter(bot.__path__))).parent)
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": root,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _values(outcome: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {
            "status": ProbeStatus(outcome["status"]),
            "error": outcome["error"],
            "findings": tuple(Finding.from_json(item) for item in outcome["findings"]),
            "data": outcome["data"],
            "truncated": bool(outcome["truncated"]),
        }
    except (KeyError, ValueError, TypeError) as error:
        return {
            "status": ProbeStatus.ERROR,
            "error": f"the probe process answered out of shape: {error}",
        }
