"""A real agent process on a free port, and tokens to ask it with."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bot.agent.keys import write_key_pair
from bot.argument import args_digest
from tests.conftest import free_port


@dataclass(frozen=True)
class LiveAgent:
    node: str
    url: str
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def key_pem(self) -> str:
        return (self.folder / "rca-agent.key").read_text()

    @property
    def public_pem(self) -> bytes:
        return (self.folder / "rca-agent.pub").read_bytes()

    def claims(self, name: str, args: dict[str, Any], /, **changes: Any) -> dict[str, Any]:
        now = time.time()
        claims = {
            "iss": "rca-bot",
            "aud": self.node,
            "sub": "U0TEST",
            "probe": name,
            "args_sha256": args_digest(args),
            "iat": now,
            "exp": now + 30,
            "jti": uuid.uuid4().hex,
        } | changes
        return {key: value for key, value in claims.items() if value is not None}

    def token(self, name: str, args: dict[str, Any], /, **changes: Any) -> str:
        key = load_pem_private_key(self.key_pem.encode(), password=None)
        return jwt.encode(self.claims(name, args, **changes), key, algorithm="EdDSA")  # type: ignore[arg-type]

    def post(
        self,
        name: str,
        args: dict[str, Any] | None = None,
        /,
        *,
        token: str | None = None,
        seconds: float | None = None,
        **changes: Any,
    ) -> httpx.Response:
        args = {} if args is None else args
        body: dict[str, Any] = {"args": args}
        if seconds is not None:
            body["timeout"] = seconds
        return httpx.post(
            f"{self.url}/v1/probes/{name}",
            json=body,
            headers={"Authorization": f"Bearer {token or self.token(name, args, **changes)}"},
            timeout=30,
        )

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "audit.jsonl").read_text().splitlines()]

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


def start_agent(
    folder: Path,
    config: str = "",
    *,
    node: str = "gpu-1",
    arguments: tuple[str, ...] = (),
    **env: str,
) -> LiveAgent:
    """Starts it and waits until it answers; `env` adds to its environment."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "rca-agent.key").exists():
        write_key_pair(folder)
    (folder / "agent.toml").write_text(config)
    port = free_port()
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "bot.cli", "agent", *arguments],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
                "RCA_AGENT_NODE": node,
                "RCA_AGENT_PUBLIC_KEYS": str(folder / "rca-agent.pub"),
                "RCA_AGENT_CONFIG": str(folder / "agent.toml"),
                "RCA_AGENT_AUDIT": str(folder / "audit.jsonl"),
                "RCA_AGENT_PORT": str(port),
                **env,
            },
            stdout=log,
            stderr=log,
        )
    scheme = "https" if "RCA_AGENT_TLS_CERT" in env else "http"
    agent = LiveAgent(node, f"{scheme}://127.0.0.1:{port}", folder, process)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            # A bare connection, because with mutual TLS a request would need a certificate.
            socket.create_connection(("127.0.0.1", port), 1).close()
            return agent
        except OSError:
            assert process.poll() is None, (folder / "agent.log").read_text()
            time.sleep(0.05)
    agent.stop()
    raise AssertionError((folder / "agent.log").read_text())
