"""The command lines of everything that a run consists of."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from bot.demo.faults import Fault
from bot.demo.monitoring import Monitoring, ScrapeTarget
from bot.demo.processes import Program
from bot.demo.service import SERVICE
from bot.demo.settings_files import NODE, Ports, RunFiles, Secrets
from bot.domain.text import Locale

CHANNEL = "C0INCIDENTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What to start, for one run."""

    ports: Ports
    files: RunFiles
    tokens: Secrets
    fault: Fault
    locale: Locale

    @property
    def page_url(self) -> str:
        """The workspace's page."""
        return f"http://127.0.0.1:{self.ports.workspace}"

    @property
    def bot_url(self) -> str:
        """The bot."""
        return f"http://127.0.0.1:{self.ports.bot}"

    @property
    def bot_settings(self) -> Mapping[str, str]:
        """The environment of the bot, and of commands that work on its incidents."""
        return self.files.bot_environment(self.ports, self.tokens, CHANNEL, self.locale)

    def monitoring(self) -> Monitoring:
        """Prometheus, Alertmanager and whom they tell."""
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

    def telemetry(self) -> Program:
        """Stand-ins of Loki and Jaeger, and the node's series."""
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

    def service(self) -> Program:
        """The inference service."""
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

    def gateway(self) -> Program:
        """The gateway with its users."""
        return self._module(
            "gateway",
            "bot.demo.load",
            f"--target=http://127.0.0.1:{self.ports.service}",
            f"--port={self.ports.gateway}",
            f"--node={NODE}",
            f"--collector-url=http://127.0.0.1:{self.ports.jaeger}",
            ready=f"http://127.0.0.1:{self.ports.gateway}/healthz",
        )

    def workspace(self) -> Program:
        """The Slack-compatible workspace."""
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

    def agent(self) -> Program:
        """The node agent."""
        return Program(
            name="node agent",
            command=(sys.executable, "-m", "bot.cli", "agent"),
            log=self.files.logs / "agent.out",
            ready_url=f"http://127.0.0.1:{self.ports.agent}/healthz",
            environment=self.files.agent_environment(self.ports),
            directory=self.files.root,
        )

    def bot(self) -> Program:
        """The bot."""
        return Program(
            name="bot",
            command=(sys.executable, "-m", "bot.cli", "serve"),
            log=self.files.logs / "bot.out",
            ready_url=f"{self.bot_url}/readyz",
            start_seconds=60.0,
            stop_seconds=20.0,
            environment=self.files.bot_environment(self.ports, self.tokens, CHANNEL, self.locale),
            directory=self.files.root,
        )
