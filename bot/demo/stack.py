"""Everything that a demo needs, started in order, watched while it starts, stopped in reverse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from bot.demo.faults import Fault, RecordedChange, neighbour, recorded_changes
from bot.demo.pinned_pool import PoolMode
from bot.demo.processes import (
    Program,
    RunningProgram,
    inherited_environment,
)
from bot.demo.programs import Programs
from bot.demo.remedies import Remedy
from bot.demo.settings_files import Ports, RunFiles, Secrets
from bot.demo.users import LoadPhase
from bot.domain.text import Locale
from bot.errors import BotError, DeliveryError, Reason

DEFAULT_PAGE_PORT = 8800
_CALL_SECONDS = 10.0
_WATCH_SECONDS = 1.0


class DemoStack:
    """One run of the demo. Use it as an async context manager, from the main thread."""

    def __init__(
        self,
        root: Path,
        *,
        fault: Fault,
        page_port: int = DEFAULT_PAGE_PORT,
        locale: Locale = Locale.EN,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.fault = fault
        self.files = RunFiles(root=root.absolute())
        self.tokens = Secrets()
        self.ports = Ports.choose(page_port)
        self.programs = Programs(
            ports=self.ports, files=self.files, tokens=self.tokens, fault=fault, locale=locale
        )
        self._say = say
        self._started: list[RunningProgram] = []
        self._neighbour: RunningProgram | None = None
        self.load_started = 0.0
        # Loopback only, so no proxy of the environment may come between.
        self.http = httpx.AsyncClient(timeout=_CALL_SECONDS, trust_env=False)

    @property
    def page_url(self) -> str:
        """The workspace's page."""
        return self.programs.page_url

    @property
    def bot_url(self) -> str:
        """The bot."""
        return self.programs.bot_url

    @property
    def prometheus_url(self) -> str:
        """Prometheus."""
        return f"http://127.0.0.1:{self.ports.prometheus}"

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops what was started, last first, and nothing else."""
        await self.stop_neighbour()
        while self._started:
            await asyncio.to_thread(self._started.pop().stop)
        await self.http.aclose()

    async def wait_for_an_end(self) -> Program:
        """The first program that ends although it should run."""
        while True:
            for running in self._started:
                if not running.is_running:
                    return running.program
            await asyncio.sleep(_WATCH_SECONDS)

    async def _start(self) -> None:
        programs = self.programs
        self.files.write(self.ports)
        monitoring = programs.monitoring()
        monitoring.write()
        # The load and its monitoring come first: the history that the bot compares with begins with them.
        await self._launch(
            "inference service and telemetry", [programs.telemetry(), programs.service()]
        )
        await self._launch(
            "load, Prometheus and Alertmanager", [programs.gateway(), *monitoring.programs()]
        )
        self.load_started = time.monotonic()
        await self._launch("workspace and node agent", [programs.workspace(), programs.agent()])
        await self._launch("bot", [programs.bot()])
        await self.record_changes(list(recorded_changes(self.fault, datetime.now(UTC))))

    async def _launch(self, what: str, programs: Sequence[Program]) -> None:
        self._say(f"starting {what}")
        first = len(self._started)
        for program in programs:
            self._started.append(RunningProgram(program))
        for running in self._started[first:]:
            await running.wait_ready(self.http)

    async def set_load(self, phase: LoadPhase) -> None:
        """Turns the evening on or off."""
        await self._post(f"http://127.0.0.1:{self.ports.gateway}/phase", {"phase": phase.value})

    async def start_evening(self) -> None:
        """The peak, and in the variant `cpu` the neighbour that wakes with it."""
        await self.set_load(LoadPhase.PEAK)
        if self.fault is Fault.CPU:
            self._neighbour = RunningProgram(neighbour(self.files.logs / "batch-reindex.out"))

    async def apply(self, remedy: Remedy) -> None:
        """Does what a person chose, and records it as the delivery system would.

        Raises:
            BotError: there is nothing to do it to.
            DeliveryError: it was not taken.
        """
        match remedy:
            case Remedy.PREALLOCATE:
                await self.set_pool(PoolMode.PREALLOCATED)
            case Remedy.STOP_NEIGHBOUR if self._neighbour is None:
                raise BotError(
                    "there is no job batch-reindex on the serving node; look again at the hypotheses",
                    reason=Reason.NOT_FOUND,
                )
            case Remedy.STOP_NEIGHBOUR:
                await self.stop_neighbour()
        await self.record_changes([remedy.as_change(datetime.now(UTC))])

    async def set_pool(self, mode: PoolMode) -> None:
        """Switches the staging buffers of the running service."""
        await self._post(f"http://127.0.0.1:{self.ports.service}/admin/pool", {"mode": mode.value})

    async def stop_neighbour(self) -> None:
        """Ends the neighbour, if it was started."""
        if self._neighbour is not None:
            await asyncio.to_thread(self._neighbour.stop)
            self._neighbour = None

    async def record_changes(self, changes: Sequence[RecordedChange]) -> None:
        """Tells the bot of changes, as a delivery system does."""
        await self._post(
            f"{self.bot_url}/webhooks/changes",
            {"events": [change.to_json() for change in changes]},
            token=self.tokens.webhook,
        )

    def environment_for_bot(self) -> dict[str, str]:
        """The whole environment of a command that works on this run's incidents."""
        return {**inherited_environment(), **self.programs.bot_settings}

    async def query(self, promql: str) -> float | None:
        """The value of a PromQL expression now; None while it has none.

        Raises:
            BotError: Prometheus does not answer.
        """
        try:
            answer = await self.http.get(
                f"{self.prometheus_url}/api/v1/query", params={"query": promql}
            )
            result = answer.raise_for_status().json()["data"]["result"]
        except (httpx.HTTPError, KeyError, ValueError) as error:
            raise BotError(
                f"Prometheus did not answer: {type(error).__name__}; see {self.files.monitoring}",
                reason=Reason.REFUSED,
            ) from error
        value = float(result[0]["value"][1]) if result else float("nan")
        return None if value != value else value

    async def _post(self, url: str, body: object, token: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            answer = await self.http.post(url, json=body, headers=headers)
        except httpx.HTTPError as error:
            raise DeliveryError(
                f"{url}: {type(error).__name__}; see {self.files.logs}", reason=Reason.REFUSED
            ) from error
        if not answer.is_success:
            raise DeliveryError(
                f"{url}: answered {answer.status_code}: {answer.text[:200]}",
                reason=Reason.MALFORMED,
            )
