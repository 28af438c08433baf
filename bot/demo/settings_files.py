"""The files that the demo writes for the bot and the agent: inventory, agent settings, keys, environment."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from bot.demo.gpu_standin import write_gpu_table
from bot.demo.processes import free_ports, is_free
from bot.demo.service import LOG_FILE, PID_FILE, SERVICE
from bot.domain.text import Locale
from bot.errors import BotError

NODE = "demo-gpu-1"
_KEYGEN_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Loopback ports of everything that listens."""

    workspace: int
    bot: int
    agent: int
    service: int
    gateway: int
    loki: int
    jaeger: int
    node: int
    prometheus: int
    alertmanager: int
    console: int

    @classmethod
    def choose(cls, page_port: int) -> Ports:
        """Free ports; the page's is the wanted one where nobody has it, 0 wants any."""
        names = [field.name for field in fields(cls)]
        chosen = dict(zip(names, free_ports(len(names)), strict=True))
        return cls(
            **{**chosen, "workspace": page_port} if page_port and is_free(page_port) else chosen
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Tokens of one run; they are made anew each time and open nothing but this run."""

    webhook: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    read: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    signing: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    bot: str = field(default_factory=lambda: f"xoxb-local-{secrets.token_hex(12)}", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """Where the files of one run are."""

    root: Path

    @property
    def service(self) -> Path:
        """Data of the inference service, its log included."""
        return self.root / "service"

    @property
    def logs(self) -> Path:
        """What the programs print."""
        return self.root / "output"

    @property
    def monitoring(self) -> Path:
        """Data of Prometheus and Alertmanager."""
        return self.root / "monitoring"

    @property
    def exports(self) -> Path:
        """The reports."""
        return self.root / "exports"

    @property
    def settings(self) -> Path:
        """Keys, inventory and agent settings."""
        return self.root / "settings"

    def write(self, ports: Ports) -> None:
        """Makes the directories and writes the settings."""
        for directory in (self.service, self.logs, self.exports, self.settings):
            directory.mkdir(parents=True, exist_ok=True)
        _write_key_pair(self.settings)
        write_gpu_table(self.settings / "gpu.json")
        self._write("nodes.yaml", json.dumps(_inventory(ports), indent=2))
        self._write("agent.toml", self._agent_settings(ports))

    def agent_environment(self, ports: Ports) -> Mapping[str, str]:
        """Settings of the node agent."""
        return {
            "RCA_AGENT_NODE": NODE,
            "RCA_AGENT_PUBLIC_KEYS": str(self.settings / "rca-agent.pub"),
            "RCA_AGENT_CONFIG": str(self.settings / "agent.toml"),
            "RCA_AGENT_AUDIT": str(self.logs / "agent-audit.jsonl"),
            "RCA_AGENT_PORT": str(ports.agent),
        }

    def bot_environment(
        self, ports: Ports, tokens: Secrets, channel: str, locale: Locale
    ) -> Mapping[str, str]:
        """Settings of the bot."""
        return {
            "RCA_DATA_DIR": str(self.root / "bot"),
            "RCA_PORT": str(ports.bot),
            "RCA_PUBLIC_URL": f"http://127.0.0.1:{ports.bot}",
            "RCA_LOCALE": locale.value,
            "RCA_NODES": str(self.settings / "nodes.yaml"),
            "RCA_AGENT_KEY": str(self.settings / "rca-agent.key"),
            "RCA_WEBHOOK_TOKEN": tokens.webhook,
            "RCA_READ_TOKEN": tokens.read,
            "RCA_ALERT_CHANNEL": channel,
            "SLACK_BOT_TOKEN": tokens.bot,
            "SLACK_SIGNING_SECRET": tokens.signing,
            "SLACK_API_URL": f"http://127.0.0.1:{ports.workspace}/api/",
            "PROMETHEUS_URL": f"http://127.0.0.1:{ports.prometheus}",
            "ALERTMANAGER_URL": f"http://127.0.0.1:{ports.alertmanager}",
            "LOKI_URL": f"http://127.0.0.1:{ports.loki}",
            "JAEGER_URL": f"http://127.0.0.1:{ports.jaeger}",
        }

    def _write(self, name: str, text: str) -> None:
        (self.settings / name).write_text(text, encoding="utf-8")

    def _agent_settings(self, ports: Ports) -> str:
        # JSON strings are TOML basic strings, whatever the path contains.
        quoted = {
            "pidfile": json.dumps(str(self.service / PID_FILE)),
            "metrics": json.dumps(f"http://127.0.0.1:{ports.service}/metrics"),
            "log": json.dumps(str(self.service / LOG_FILE)),
            "nvml": json.dumps(f"standin:{self.settings / 'gpu.json'}"),
        }
        return (
            f"[services.{SERVICE}]\n"
            f"match = {{ pidfile = {quoted['pidfile']} }}\n"
            f"metrics = {quoted['metrics']}\n"
            f"log_files = [{quoted['log']}]\n"
            "\n[paths]\n"
            f"nvml_library = {quoted['nvml']}\n"
        )


def _write_key_pair(directory: Path) -> None:
    """Makes the keys as an operator would."""
    made = subprocess.run(
        [sys.executable, "-m", "bot.cli", "agent", "keygen", "--out", str(directory)],
        capture_output=True,
        text=True,
        timeout=_KEYGEN_SECONDS,
        check=False,
    )
    if made.returncode != 0:
        raise BotError(f"the agent's keys were not made: {made.stderr.strip()}")


def _inventory(ports: Ports) -> dict[str, object]:
    return {
        "nodes": [{"name": NODE, "url": f"http://127.0.0.1:{ports.agent}"}],
        "services": [{"name": SERVICE, "nodes": [NODE]}],
    }
