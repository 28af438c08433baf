"""Everything that a demo needs, started in order, watched while it starts, stopped in reverse."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from bot.demo.faults import Fault, RecordedChange, neighbour, recorded_changes
from bot.demo.monitoring import Monitoring, ScrapeTarget
from bot.demo.pinned_pool import PoolMode
from bot.demo.processes import (
    Program,
    RunningProgram,
    free_port,
    free_ports,
    inherited_environment,
)
from bot.demo.remedies import Remedy
from bot.demo.service import SERVICE
from bot.demo.settings_files import NODE, Ports, RunFiles, Secrets
from bot.demo.users import LoadPhase
from bot.domain.text import Locale
from bot.errors import BotError, DeliveryError, Reason

CHANNEL = "C0INCIDENTS"
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
        workspace, others = free_port(page_port), free_ports(10)
        self.ports = Ports(
            workspace=workspace,
            **dict(
                zip(
                    (
                        "bot", "agent", "service", "gateway", "loki",
                        "jaeger", "node", "prometheus", "alertmanager", "console",
                    ),
                    others,
                    strict=True,
                )
            ),
        )  # fmt: skip
        self._locale = locale
        self._say = say
        self._started: list[RunningProgram] = []
        self._neighbour: RunningProgram | None = None
        self.load_started = 0.0
        # Loopback only, so no proxy of the environment may come between.
        self.http = httpx.AsyncClient(timeout=_CALL_SECONDS, trust_env=False)

    @property
    def page_url(self) -> str:
        """The workspace's page."""
        return f"http://127.0.0.1:{self.ports.workspace}"

    @property
    def bot_url(self) -> str:
        """The bot."""
        return f"http://127.0.0.1:{self.ports.bot}"

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
        self.files.write(self.ports)
        monitoring = self._monitoring()
        monitoring.write()
        # The load and its monitoring come first: the history that the bot compares with begins with them.
        await self._launch("inference service and telemetry", [self._telemetry(), self._service()])
        await self._launch(
            "load, Prometheus and Alertmanager", [self._gateway(), *monitoring.programs()]
        )
        self.load_started = time.monotonic()
        await self._launch("workspace and node agent", [self._workspace(), self._agent()])
        await self._launch("bot", [self._bot()])
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
        """Does what a person chose, and records it as the delivery system would."""
        match remedy:
            case Remedy.PREALLOCATE:
                await self.set_pool(PoolMode.PREALLOCATED)
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
        return {**inherited_environment(), **self._bot_settings()}

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

    def _bot_settings(self) -> Mapping[str, str]:
        return self.files.bot_environment(self.ports, self.tokens, CHANNEL, self._locale)

    def _monitoring(self) -> Monitoring:
        ports, node = self.ports, {"node": NODE}
        service = {"service": SERVICE}
        return Monitoring(
            directory=self.files.monitoring,
            prometheus_port=ports.prometheus,
            alertmanager_port=ports.alertmanager,
            webhook_url=f"{self.bot_url}/webhooks/alertmanager",
            webhook_token=self.tokens.webhook,
            targets=(
                ScrapeTarget(job="inference", port=ports.service, labels={**service, **node}),
                ScrapeTarget(job="gateway", port=ports.gateway, labels=service),
                ScrapeTarget(job="dcgm", port=ports.service, path="/gpu-metrics", labels={}),
                ScrapeTarget(job="node", port=ports.node, labels=node),
                ScrapeTarget(job="rca-bot", port=ports.bot, labels={}),
            ),
        )

    def _module(self, name: str, module: str, *arguments: str, ready: str | None) -> Program:
        return Program(
            name=name,
            command=(sys.executable, "-m", module, *arguments),
            log=self.files.logs / f"{name.replace(' ', '-')}.out",
            ready_url=ready,
            directory=self.files.root,
        )

    def _telemetry(self) -> Program:
        ports = self.ports
        return self._module(
            "telemetry",
            "bot.demo.telemetry",
            f"--loki-port={ports.loki}",
            f"--jaeger-port={ports.jaeger}",
            f"--node-port={ports.node}",
            f"--log-dir={self.files.service}",
            f"--node={NODE}",
            ready=f"http://127.0.0.1:{ports.loki}/ready",
        )

    def _service(self) -> Program:
        return self._module(
            SERVICE,
            "bot.demo.service",
            f"--port={self.ports.service}",
            f"--data-dir={self.files.service}",
            f"--node={NODE}",
            f"--pool={self.fault.initial_pool}",
            f"--collector-url=http://127.0.0.1:{self.ports.jaeger}",
            ready=f"http://127.0.0.1:{self.ports.service}/healthz",
        )

    def _gateway(self) -> Program:
        return self._module(
            "gateway",
            "bot.demo.load",
            f"--target=http://127.0.0.1:{self.ports.service}",
            f"--port={self.ports.gateway}",
            f"--node={NODE}",
            f"--collector-url=http://127.0.0.1:{self.ports.jaeger}",
            ready=f"http://127.0.0.1:{self.ports.gateway}/healthz",
        )

    def _workspace(self) -> Program:
        return self._module(
            "workspace",
            "bot.cli",
            "workspace",
            f"--port={self.ports.workspace}",
            f"--bot-url={self.bot_url}",
            f"--bot-token={self.tokens.bot}",
            f"--signing-secret={self.tokens.signing}",
            f"--webhook-token={self.tokens.webhook}",
            ready=f"{self.page_url}/",
        )

    def _agent(self) -> Program:
        return Program(
            name="node agent",
            command=(sys.executable, "-m", "bot.cli", "agent"),
            log=self.files.logs / "agent.out",
            ready_url=f"http://127.0.0.1:{self.ports.agent}/healthz",
            environment=self.files.agent_environment(self.ports),
            directory=self.files.root,
        )

    def _bot(self) -> Program:
        return Program(
            name="bot",
            command=(sys.executable, "-m", "bot.cli", "serve"),
            log=self.files.logs / "bot.out",
            ready_url=f"{self.bot_url}/readyz",
            start_seconds=60.0,
            stop_seconds=20.0,
            environment=self.files.bot_environment(self.ports, self.tokens, CHANNEL, self._locale),
            directory=self.files.root,
        )
