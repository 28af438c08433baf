"""The demo's inference service, translate-api: `python -m bot.demo.service --port 8000 --data-dir DIR`.

One thread per connection, as gunicorn's threaded workers do it. A thread that has no request waits on its
socket, so a thread that waits for a lock is one that has work and cannot get on.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import logging
import os
import signal
import threading
import time
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bot.demo.accelerator import Accelerator
from bot.demo.gpu_series import GpuSeries
from bot.demo.json_log import open_json_log
from bot.demo.pinned_pool import PinnedBufferPool, PoolMode
from bot.demo.pipeline import Stage, StageTime, Translator
from bot.demo.prctl import allow_stack_dumps, name_process
from bot.demo.request_spans import request_spans
from bot.demo.service_metrics import ServiceMetrics
from bot.demo.spans import SpanContext, SpanExporter

SERVICE = "translate-api"
MODEL = "translate-en-zh"
LOG_FILE = "translate-api.log"
PID_FILE = "translate-api.pid"
_BODY_LIMIT_BYTES = 64 * 1024
_LOG_EVERY_REQUESTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """How one instance runs; `collector_url` unset means that spans are not sent."""

    port: int
    data_dir: Path
    node: str
    pool: PoolMode
    registration_seconds: float
    collector_url: str | None = None


class TranslateService:
    """The parts of one running instance."""

    def __init__(self, config: ServiceConfig) -> None:
        self.log = open_json_log(config.data_dir / LOG_FILE, service=SERVICE)
        self.pool = PinnedBufferPool(
            mode=config.pool, registration_seconds=config.registration_seconds
        )
        self.accelerator = Accelerator()
        self.translator = Translator(self.pool, self.accelerator)
        self.spans = SpanExporter(config.collector_url, service=SERVICE, host=config.node)
        self.metrics = ServiceMetrics(
            model=MODEL, pool=self.pool, accelerator=self.accelerator, spans=self.spans
        )
        self.gpu = GpuSeries(self.accelerator, hostname=config.node, monotonic=time.monotonic)
        self._counting = threading.Lock()
        self._served = 0
        self.server = _Server(("127.0.0.1", config.port), self)

    def note_served(self) -> None:
        """Writes the usual progress line once in a while, as quiet services do."""
        with self._counting:
            self._served += 1
            served = self._served
        if served % _LOG_EVERY_REQUESTS == 0:
            self.log.info("requests served", extra={"fields": {"count": served, "model": MODEL}})

    def close(self) -> None:
        """Stops answering and sends the last spans."""
        self.server.shutdown()
        self.server.server_close()
        self.spans.close()
        self.log.info("stopped")
        for handler in tuple(self.log.handlers):
            self.log.removeHandler(handler)
            handler.close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def __init__(self, address: tuple[str, int], service: TranslateService) -> None:
        self.service = service
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "translate-api"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 120
    server: _Server

    def do_GET(self) -> None:
        service = self.server.service
        match self.path:
            case "/healthz":
                self._answer(HTTPStatus.OK, {"status": "ok"})
            case "/metrics":
                self._send(HTTPStatus.OK, service.metrics.exposition(), "text/plain; version=0.0.4")
            case "/gpu-metrics":
                self._send(HTTPStatus.OK, service.gpu.exposition(), "text/plain; version=0.0.4")
            case "/admin/pool":
                self._pool()
            case _:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "no such path"})

    def do_POST(self) -> None:
        start_ns = time.time_ns()
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _BODY_LIMIT_BYTES:
            self.close_connection = True
            self._answer(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": "body over 64 KiB or no length"}
            )
            return
        body = self.rfile.read(int(length))
        match self.path:
            case "/v1/translate":
                self._translate(body, start_ns)
            case "/admin/pool":
                self._switch_pool(body)
            case _:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "no such path"})

    def _translate(self, body: bytes, start_ns: int) -> None:
        service = self.server.service
        service.metrics.active.inc()
        try:
            text = _field(body, "text")
            if text is None:
                self._finish(
                    HTTPStatus.BAD_REQUEST, {"error": 'expected {"text": "..."}'}, start_ns
                )
                return
            read = StageTime(stage=Stage.READ_INPUT, start_ns=start_ns, end_ns=time.time_ns())
            translation = service.translator.translate(text)
            service.metrics.request_bytes.observe(len(body))
            service.metrics.observe_stages((read, *translation.stages))
            answer = {"translation": translation.text, "tokens": translation.tokens}
            end_ns = self._finish(HTTPStatus.OK, answer, start_ns)
            context = SpanContext.from_traceparent(self.headers.get("traceparent"))
            service.spans.add(*request_spans(context, start_ns, end_ns, translation, model=MODEL))
            service.note_served()
        finally:
            service.metrics.active.dec()

    def _finish(self, status: HTTPStatus, answer: dict[str, Any], start_ns: int) -> int:
        self._answer(status, answer)
        end_ns = time.time_ns()
        metrics = self.server.service.metrics
        metrics.requests.labels(str(status.value)).inc()
        metrics.duration.observe((end_ns - start_ns) / 1e9)
        return end_ns

    def _switch_pool(self, body: bytes) -> None:
        if not self._from_this_machine():
            return
        try:
            mode = PoolMode(_field(body, "mode") or "")
        except ValueError:
            modes = ", ".join(PoolMode)
            self._answer(HTTPStatus.BAD_REQUEST, {"error": f"mode is one of {modes}"})
            return
        self.server.service.pool.switch(mode)
        self.server.service.log.info("configuration reloaded")
        self._pool()

    def _pool(self) -> None:
        if self._from_this_machine():
            self._answer(HTTPStatus.OK, asdict(self.server.service.pool.statistics()))

    def _from_this_machine(self) -> bool:
        if ipaddress.ip_address(self.client_address[0]).is_loopback:
            return True
        self._answer(HTTPStatus.FORBIDDEN, {"error": "administration is for this machine only"})
        return False

    def _answer(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        self._send(status, json.dumps(answer, ensure_ascii=False).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Each request would be a line; the service reports counts instead."""


def _field(body: bytes, name: str) -> str | None:
    try:
        value = json.loads(body)
    except ValueError:
        return None
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def serve(config: ServiceConfig) -> None:
    """Runs until SIGTERM or SIGINT."""
    name_process(SERVICE)
    allow_stack_dumps()
    config.data_dir.mkdir(parents=True, exist_ok=True)
    service = TranslateService(config)
    stop = lambda *_: threading.Thread(target=service.server.shutdown).start()  # noqa: E731
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    pid_file = config.data_dir / PID_FILE
    pid_file.write_text(f"{os.getpid()}\n")
    service.log.info("ready", extra={"fields": {"model": MODEL, "port": config.port}})
    try:
        service.server.serve_forever(poll_interval=0.1)
    finally:
        pid_file.unlink(missing_ok=True)
        service.close()


def main() -> None:
    """Entry point of `python -m bot.demo.service`."""
    parser = argparse.ArgumentParser(prog="translate-api", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--node", default="demo-node")
    parser.add_argument(
        "--pool", type=PoolMode, choices=list(PoolMode), default=PoolMode.PER_REQUEST
    )
    parser.add_argument("--registration-ms", type=float, default=24.0)
    parser.add_argument("--collector-url")
    args = parser.parse_args()
    logging.captureWarnings(capture=True)
    serve(
        ServiceConfig(
            port=args.port,
            data_dir=args.data_dir,
            node=args.node,
            pool=args.pool,
            registration_seconds=args.registration_ms / 1000,
            collector_url=args.collector_url,
        )
    )


if __name__ == "__main__":
    main()
