"""A node that answers every probe at once and counts what it was asked."""

from __future__ import annotations

import collections
import json
import math
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class CountingAgent:
    """Speaks the agent's route for probes on a free loopback port; use it as a context manager.

    asked: how often each probe was run, by node and name. soonest_again: the least seconds between two runs of one.
    """

    def __init__(self, nodes: tuple[str, ...] = ("gpu-1", "gpu-2")) -> None:
        self.nodes = nodes
        self.asked: collections.Counter[tuple[str, str]] = collections.Counter()
        self.soonest_again = math.inf
        self._asked_at: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> CountingAgent:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def count(self, node: str, probe: str) -> None:
        """One run."""
        with self._lock:
            now = time.monotonic()
            since = now - self._asked_at.get((node, probe), -math.inf)
            self.soonest_again = min(self.soonest_again, since)
            self._asked_at[node, probe] = now
            self.asked[node, probe] += 1

    @property
    def most(self) -> int:
        """How often the probe was run that was run most often on one node."""
        return max(self.asked.values(), default=0)

    def url(self, node: str) -> str:
        """The node's own address: the name is in the path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{node}"

    def environment(self, root: Path, service: str = "translate-api") -> dict[str, str]:
        """Writes an inventory and a key into `root`; gives the settings that name them."""
        key = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (root / "agent.key").write_bytes(key)
        inventory = {
            "nodes": [{"name": node, "url": self.url(node)} for node in self.nodes],
            "services": [{"name": service, "nodes": list(self.nodes)}],
        }
        (root / "nodes.yaml").write_text(yaml.safe_dump(inventory))
        return {
            "RCA_NODES": str(root / "nodes.yaml"),
            "RCA_AGENT_KEY": str(root / "agent.key"),
        }


def _handler(agent: CountingAgent) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            node, _, probe = self.path.strip("/").replace("/v1/probes/", " ").partition(" ")
            self.rfile.read(int(self.headers.get("content-length", 0)))
            agent.count(node, probe)
            body = json.dumps(
                {
                    "probe": probe,
                    "node": node,
                    "status": "ok",
                    "started_at": datetime.now(UTC).isoformat(),
                    "duration_s": 0.01,
                    "findings": [],
                    "data": {},
                    "truncated": False,
                    "error": None,
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    return Handler
