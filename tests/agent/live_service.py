"""A small real Python service for probes to look at: threads, a metrics page, a log file, a pidfile.

Run as a program: `live_service.py FOLDER MODE`, where MODE is `idle`, `contended`, `deadlocked`, `slow_pool`,
`frozen`, `leaking`, `loader`, `drifted` or `nan`.
"""

from __future__ import annotations

import http.server
import json
import os
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_STARTED = time.time()


def _page(mode: str) -> str:
    seconds = time.time() - _STARTED
    moved = 0 if mode == "frozen" else seconds * 100
    allocs = seconds * 50
    cost = 0.02 if mode == "slow_pool" else 0.00005
    return (
        f'vllm:num_requests_running{{model_name="m"}} 3\n'
        f'vllm:num_requests_waiting{{model_name="m"}} 0\n'
        f'vllm:generation_tokens_total{{model_name="m"}} {1000 + moved}\n'
        f'torch_cuda_memory_allocated_bytes{{device="0"}} 9.5e9\n'
        f'torch_cuda_memory_reserved_bytes{{device="0"}} 1e10\n'
        f"torch_host_alloc_total {allocs}\n"
        f"torch_host_alloc_seconds_total {allocs * cost}\n"
    )


class _Handler(http.server.BaseHTTPRequestHandler):
    mode = "idle"

    def do_GET(self) -> None:
        body = _page(self.mode).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """A model that adds up, so that a golden set can be checked against it."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        total = sum(request["values"])
        told = "NaN" if self.mode == "nan" else str(total * (1.2 if self.mode == "drifted" else 1))
        body = f'{{"outputs": [{{"data": [{told}]}}], "id": 7}}'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


def _spawn(work: object, count: int) -> None:
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()  # type: ignore[arg-type]


def _contend() -> None:
    lock = threading.Lock()

    def allocate() -> None:
        while True:
            with lock:
                time.sleep(0.02)

    _spawn(allocate, 8)


def _deadlock() -> None:
    first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def one() -> None:
        with first:
            both.wait()
            with second:
                pass

    def other() -> None:
        with second:
            both.wait()
            with first:
                pass

    _spawn(one, 1)
    _spawn(other, 1)


def _prefetch_queue() -> None:
    batches: queue.Queue[int] = queue.Queue()

    def next_batch() -> None:
        batches.get()

    _spawn(next_batch, 1)


def _leak(held: list[bytearray]) -> None:
    while True:
        held.append(bytearray(b"x" * 2**20))
        time.sleep(0.05)


def main(folder: Path, mode: str) -> None:
    _Handler.mode = mode
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    pool = ThreadPoolExecutor(6)
    for _ in range(6):
        pool.submit(time.sleep, 0.05)
    held: list[bytearray] = []
    match mode:
        case "contended":
            _contend()
        case "deadlocked":
            _deadlock()
        case "loader":
            _prefetch_queue()
        case "leaking":
            threading.Thread(target=_leak, args=(held,), daemon=True).start()
    with (folder / "service.log").open("a", buffering=1) as log:
        log.write("started\n")
        (folder / "service.pid").write_text(str(os.getpid()))
        (folder / "port.part").write_text(str(server.server_address[1]))
        (folder / "port.part").rename(folder / "port")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        while True:
            time.sleep(0.2)
            log.write("a request was served\n")


@dataclass(frozen=True)
class LiveService:
    folder: Path
    process: subprocess.Popen[bytes]
    port: int

    def config(self, name: str = "svc") -> str:
        golden = self.folder.with_name(f"{self.folder.name}-golden.json")
        requests = [
            {"path": "/v2/infer", "body": {"values": [n, 0.5]}, "pick": "outputs.0.data.0", "expect": n + 0.5}
            for n in range(20)
        ]  # fmt: skip
        golden.write_text(json.dumps({"tolerance": 0.01, "requests": requests}))
        return (
            f"[services.{name}]\n"
            f'match = {{ pidfile = "{self.folder}/service.pid" }}\n'
            f'metrics = "http://127.0.0.1:{self.port}/metrics"\n'
            f'log_files = ["{self.folder}/*.log"]\n'
            f'model_dir = "{self.folder}"\n'
            f'dependencies = ["tcp://127.0.0.1:{self.port}"]\n'
            f'golden_url = "http://127.0.0.1:{self.port}"\n'
            f'golden_file = "{golden}"\n'
        )

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(5)


def start_service(folder: Path, mode: str) -> LiveService:
    """Starts the program and waits until it is up."""
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([sys.executable, __file__, str(folder), mode])
    deadline = time.monotonic() + 60
    while not (folder / "port").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return LiveService(folder, process, int((folder / "port").read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
