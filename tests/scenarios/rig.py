"""A whole deployment on loopback: a Redis with AOF, the workspace, the bot; each a real process, each stopped by name."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from tests.conftest import free_port
from tests.waiting import PATIENCE_SECONDS, until

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHANNEL = "C0INCIDENTS"
TOKEN = {"Authorization": "Bearer hook"}


class Deployment:
    """The processes of one test."""

    def __init__(self, root: Path, **environment: str) -> None:
        self.root = root
        self.bot_port, self.workspace_port, self.redis_port = free_port(), free_port(), free_port()
        self.bot_url = f"http://127.0.0.1:{self.bot_port}"
        self.workspace_url = f"http://127.0.0.1:{self.workspace_port}"
        self.redis_url = f"redis://127.0.0.1:{self.redis_port}/0"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.http = httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("RCA_", "SLACK_"))},
            "SLACK_API_URL": f"{self.workspace_url}/api/",
            "SLACK_BOT_TOKEN": "xoxb-local-rca-bot",
            "SLACK_SIGNING_SECRET": "local-signing-secret",
            "REDIS_URL": self.redis_url,
            "RCA_DATA_DIR": str(root / "data"),
            "RCA_WEBHOOK_TOKEN": "hook",
            "RCA_READ_TOKEN": "read",
            "RCA_ALERT_CHANNEL": CHANNEL,
            "RCA_HOST": "127.0.0.1",
            "RCA_PORT": str(self.bot_port),
            "PYTHONPATH": str(ROOT),
            **environment,
        }

    def spawn(self, name: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        log = (self.root / f"{name}.log").open("ab")
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**self.environment, **environment},
            cwd=self.root,
        )
        log.close()
        self.processes[name] = process
        return process

    async def start_redis(self) -> None:
        self.spawn(
            "redis", "redis-server", "--bind", "127.0.0.1", "--port", str(self.redis_port),
            "--dir", str(self.root), "--appendonly", "yes", "--appendfsync", "always", "--save", "",
        )  # fmt: skip

        def up() -> bool:
            with socket.create_connection(("127.0.0.1", self.redis_port), 0.2):
                return True

        await until(up, "redis is up")

    async def start_workspace(self, *options: str) -> None:
        from bot.workspace.config import BOT_TOKEN, SIGNING_SECRET

        self.environment["SLACK_BOT_TOKEN"] = BOT_TOKEN
        self.environment["SLACK_SIGNING_SECRET"] = SIGNING_SECRET
        self.spawn(
            "workspace", sys.executable, str(HERE / "patient_workspace.py"),
            str(self.workspace_port), self.bot_url, "hook", *options,
        )  # fmt: skip

        async def up() -> bool:
            return (await self.http.get(f"{self.workspace_url}/control/state")).status_code == 200

        await until(up, "the workspace is up")

    async def start_bot(self, point: str = "", count: int = 1) -> subprocess.Popen[bytes]:
        process = self.spawn(
            "bot", sys.executable, str(HERE / "killable_bot.py"), point, str(count)
        )

        async def ready() -> bool:
            assert process.poll() is None or point, self.log("bot")
            if process.poll() is not None:
                return True
            return (await self.http.get(f"{self.bot_url}/readyz")).status_code == 200

        await until(ready, "the bot is ready")
        return process

    async def start_replica(self) -> subprocess.Popen[bytes]:
        """A second bot on the same Redis; it only works, nothing is sent to it."""
        port = free_port()
        process = self.spawn(
            "replica", sys.executable, str(HERE / "killable_bot.py"), "", "1", RCA_PORT=str(port)
        )

        async def ready() -> bool:
            assert process.poll() is None, self.log("replica")
            return (await self.http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200

        await until(ready, "the replica is ready")
        return process

    def log(self, name: str) -> str:
        path = self.root / f"{name}.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    async def incidents(self) -> list[dict[str, object]]:
        answer = await self.http.get(
            f"{self.bot_url}/incidents",
            headers={"Authorization": "Bearer read", "Accept": "application/json"},
        )
        return list(answer.json()["incidents"])

    async def report(self, incident: str, suffix: str = "json") -> httpx.Response:
        return await self.http.get(
            f"{self.bot_url}/incidents/{incident}/report.{suffix}",
            headers={"Authorization": "Bearer read"},
        )

    async def close(self) -> None:
        await self.http.aclose()
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
