"""Golden requests, copies to a GPU and profiles, each against something real on this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.agent.runner import ChildRunner
from bot.agent.serve import probe_catalogue
from bot.agent.settings import AgentSettings, Limits, load_settings
from bot.device.artefact import ArtefactFolder
from bot.device.service import ServiceTarget
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.errors import ProbeError, Reason
from bot.probes.h2d_bandwidth import h2d_bandwidth
from bot.probes.profile import profile
from tests.agent.live_service import LiveService, start_service
from tests.device.standin_libraries import cuda_library
from tests.probes.stage import Tree, ids, look

PROBES = probe_catalogue()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], LiveService]]:
    started: list[LiveService] = []

    def start(mode: str) -> LiveService:
        started.append(start_service(tmp_path / mode, mode))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def _settings(service: LiveService, folder: Path) -> AgentSettings:
    config = folder / "agent.toml"
    config.write_text(service.config())
    return load_settings({"RCA_AGENT_CONFIG": str(config), "RCA_AGENT_NODE": "n"})


async def _run(settings: AgentSettings, name: str, **args: Any) -> ProbeResult:
    runner = ChildRunner(settings, now=time.time, monotonic=time.monotonic)
    try:
        return await runner.run(PROBES[name], args, 30.0)
    finally:
        await runner.close()


@pytest.mark.parametrize(
    ("mode", "findings"),
    [
        ("idle", ["model.golden_ok"]),
        ("drifted", ["model.golden_mismatch"]),
        ("nan", ["model.nan_output", "model.golden_mismatch"]),
    ],
)
async def test_golden_answers_are_compared_within_their_tolerance(
    serve: Callable[[str], LiveService], tmp_path: Path, mode: str, findings: list[str]
) -> None:
    result = await _run(_settings(serve(mode), tmp_path), "golden_set", service="svc")
    assert [finding.id for finding in result.findings] == findings, result.error
    assert result.data["compared"] == 20


async def test_golden_requests_without_answer_are_a_gap_and_not_a_mismatch(
    serve: Callable[[str], LiveService], tmp_path: Path
) -> None:
    settings = _settings(serve("idle"), tmp_path)
    golden = settings.services["svc"].golden_file
    assert golden is not None
    content = json.loads(golden.read_text())
    content["requests"][3]["pick"] = "no.such.place"
    golden.write_text(json.dumps(content))
    result = await _run(settings, "golden_set", service="svc")
    assert result.findings == ()
    assert result.data["not_checked"][0].startswith("1 of 20 requests")


@pytest.mark.parametrize(
    "content",
    ['{"requests": []}', "[]", '{"requests": [{"body": {}}]}', '{"requests": [{"path": "/../x", "body": 1, "expect": 1}]}'],
    ids=["empty", "list", "nothing-expected", "climbing-path"],
)  # fmt: skip
async def test_golden_file_out_of_shape_is_an_error_that_names_it(
    serve: Callable[[str], LiveService], tmp_path: Path, content: str
) -> None:
    settings = _settings(serve("idle"), tmp_path)
    golden = settings.services["svc"].golden_file
    assert golden is not None
    golden.write_text(content)
    result = await _run(settings, "golden_set", service="svc")
    assert result.status is ProbeStatus.ERROR
    assert golden.name in str(result.error)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path / "proc")
    for name, text in (("max_link_speed", "32.0 GT/s PCIe"), ("max_link_width", "16")):
        made.write(f"sys/bus/pci/devices/0000:10:00.0/{name}", text)
    return made


@pytest.mark.parametrize(
    ("table", "findings"),
    # A machine under load sleeps too long and never too short, so what is well is far above its line.
    [
        ({"pinned_gb_per_s": 5000, "pageable_gb_per_s": 20}, ["gpu.h2d_ok"]),
        ({"pinned_gb_per_s": 12, "pageable_gb_per_s": 10}, ["gpu.h2d_slow"]),
        ({"code": {"cuMemHostAlloc": 2}, "pageable_gb_per_s": 3}, ["gpu.h2d_pageable_only"]),
        # No figure of its own: judged by the link, 0.6 of 63 GB/s.
        ({"unknown_model": 1, "pinned_gb_per_s": 5000, "pageable_gb_per_s": 20}, ["gpu.h2d_ok"]),
        ({"unknown_model": 1, "pinned_gb_per_s": 30, "pageable_gb_per_s": 20}, ["gpu.h2d_slow"]),
    ],
    ids=["well", "slow", "no-pinned-memory", "by-link", "by-link-slow"],
)
def test_copy_speed_is_judged_by_model_or_link(
    tree: Tree, tmp_path: Path, table: dict[str, Any], findings: list[str]
) -> None:
    library = cuda_library(tmp_path / "cuda", all=table)
    # A copy of this size at the line takes five milliseconds: more than another process keeps the CPU.
    size = 256 * 2**20
    reading = look(h2d_bandwidth, tree.context(cuda_library=str(library.path)), gpu=0, bytes=size)
    assert ids(reading) == findings
    assert reading.data["copied_bytes"] <= 12 * size


def test_copy_never_takes_the_room_of_a_service(tree: Tree, tmp_path: Path) -> None:
    library = cuda_library(tmp_path / "cuda", all={"free_bytes": 200 * 2**20})
    with pytest.raises(ProbeError, match="too little"):
        look(h2d_bandwidth, tree.context(cuda_library=str(library.path)), gpu=0)


def test_copy_to_a_card_that_is_not_there_is_unsupported(tree: Tree, tmp_path: Path) -> None:
    library = cuda_library(tmp_path / "cuda", all={"count": 1})
    with pytest.raises(ProbeError) as caught:
        look(h2d_bandwidth, tree.context(cuda_library=str(library.path)), gpu=7)
    assert caught.value.reason is Reason.UNSUPPORTED


def test_machine_without_cuda_is_unsupported_and_says_so(tree: Tree) -> None:
    with pytest.raises(ProbeError, match="CUDA") as caught:
        look(h2d_bandwidth, tree.context(cuda_library="/not/there.so"), gpu=0)
    assert caught.value.reason is Reason.UNSUPPORTED


async def test_python_profile_is_kept_with_its_digest_and_leaves_the_target_running(
    serve: Callable[[str], LiveService], tmp_path: Path
) -> None:
    service = serve("contended")
    settings = dataclasses.replace(_settings(service, tmp_path), artefacts=tmp_path / "profiles")
    result = await _run(settings, "profile", service="svc", seconds=1.0, tool="py-spy")
    assert [finding.id for finding in result.findings] == ["profile.captured"], result.error
    told = result.data["artefact"]
    content = (tmp_path / "profiles" / told["id"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == told["sha256"]
    assert len(content) == told["bytes"]
    # The profile is of that very service: the function that contends is in it.
    frames = {frame["name"] for frame in json.loads(content)["shared"]["frames"]}
    assert any(name.endswith("allocate") for name in frames), frames
    state = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state != "T"


async def test_profile_larger_than_its_bound_is_not_kept(
    serve: Callable[[str], LiveService], tmp_path: Path
) -> None:
    settings = dataclasses.replace(
        _settings(serve("contended"), tmp_path),
        artefacts=tmp_path / "profiles",
        limits=Limits(artefact_bytes=200),
    )
    result = await _run(settings, "profile", service="svc", seconds=1.0, tool="py-spy")
    assert result.status is ProbeStatus.ERROR
    assert list((tmp_path / "profiles").iterdir()) == []


def _context(tree: Tree, tmp_path: Path, **changes: Any) -> Any:
    folder = tmp_path / "profiles"
    folder.mkdir()
    tree.write("7/stat", f"7 (svc) S 1 7 7 0 -1 0 0 0 0 0 100 50 0 0 20 0 3 0 900 {'0 ' * 30}")
    pidfile = tmp_path / "svc.pid"
    pidfile.write_text("7")
    target = ServiceTarget(name="svc", pidfile=pidfile, **changes)
    return tree.context(artefacts=ArtefactFolder(folder, 2**20), services={"svc": target})


def test_node_without_nsys_says_what_to_run_by_hand(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProbeError, match=r"nsys profile .*--duration=3") as caught:
        look(profile, _context(tree, tmp_path), service="svc", seconds=3, tool="nsys")
    assert caught.value.reason is Reason.UNSUPPORTED


def test_profile_of_nsys_is_taken_over_from_the_file_that_it_writes(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "name = next(word for word in sys.argv if word.startswith('--output='))[9:]\n"
        "assert '--gpu-metrics-devices=all' in sys.argv\n"
        "open(name + '.nsys-rep', 'w').write('counters')\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    reading = look(profile, _context(tree, tmp_path), service="svc", seconds=1, tool="nsys")
    assert ids(reading) == ["profile.captured"]
    kept = tmp_path / "profiles" / str(reading.data["artefact"]["id"])  # type: ignore[index]
    assert kept.read_text() == "counters"


class _Profiled(http.server.BaseHTTPRequestHandler):
    """A server with a torch profiler of its own, as vLLM and SGLang have it."""

    traces = Path()

    def do_POST(self) -> None:
        if self.path == "/stop_profile":
            (self.traces / "worker.pt.trace.json").write_text('{"traceEvents": []}')
        is_known = self.path in {"/start_profile", "/stop_profile"}
        self.send_response(200 if is_known else 404)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "traces").mkdir()
    handler = type("Handler", (_Profiled,), {"traces": tmp_path / "traces"})
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listener.server_address[1]}"
    listener.shutdown()
    listener.server_close()


def test_torch_profile_is_the_trace_that_the_server_wrote_meanwhile(
    tree: Tree, tmp_path: Path, server: str
) -> None:
    (tmp_path / "traces" / "old.pt.trace.json").write_text("of last week")
    context = _context(tree, tmp_path, profile_url=server, profile_dir=tmp_path / "traces")
    reading = look(profile, context, service="svc", seconds=2, tool="torch")
    kept = tmp_path / "profiles" / str(reading.data["artefact"]["id"])  # type: ignore[index]
    assert kept.read_text() == '{"traceEvents": []}'
    assert tree.seconds == 2


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_profile_of_a_service_is_taken_over_only_as_a_file(tmp_path: Path, kind: str) -> None:
    """A service could otherwise have the agent send what only the agent may read, or wait for ever."""
    secret, source = tmp_path / "secret", tmp_path / "worker.pt.trace.json"
    secret.write_text("of the agent alone")
    if kind == "link":
        source.symlink_to(secret)
    else:
        os.mkfifo(source)
    (tmp_path / "kept").mkdir()
    with pytest.raises(ProbeError):
        ArtefactFolder(tmp_path / "kept", 1000).copy(source, "x", "application/json")
    assert list((tmp_path / "kept").iterdir()) == []


def test_server_without_its_profiler_is_unsupported(
    tree: Tree, tmp_path: Path, server: str
) -> None:
    context = _context(tree, tmp_path, profile_url=f"{server}/api", profile_dir=tmp_path / "traces")
    with pytest.raises(ProbeError, match="torch profiler") as caught:
        look(profile, context, service="svc", seconds=2, tool="torch")
    assert caught.value.reason is Reason.UNSUPPORTED


def test_profile_leaves_no_profiler_running_after_its_deadline(
    serve: Callable[[str], LiveService], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "agent", "run", "profile", "--timeout", "2", "--json",
         "--args", '{"service": "svc", "seconds": 30, "tool": "py-spy"}'],
        capture_output=True, text=True, timeout=120, check=False,
        cwd=Path(__file__).resolve().parents[2],
        env={"PATH": os.environ["PATH"], "RCA_AGENT_CONFIG": str(_config(serve("idle"), tmp_path))},
    )  # fmt: skip
    assert json.loads(done.stdout)["status"] == "timeout", done.stderr
    running = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"py-spy" in _bytes(path) and str(tmp_path).encode() in _bytes(path)
    ]
    assert running == []


def _config(service: LiveService, folder: Path) -> Path:
    path = folder / "agent.toml"
    path.write_text(service.config() + f'[paths]\nartefacts = "{folder}/profiles"\n')
    return path


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_profile_with_native_frames_lets_its_target_go_on(
    serve: Callable[[str], LiveService], tmp_path: Path
) -> None:
    service = serve("contended")
    settings = _settings(service, tmp_path)
    result = await _run(settings, "profile", service="svc", seconds=1, tool="py-spy", native="yes")
    assert result.status is ProbeStatus.OK, result.error
    assert "not_checked" not in result.data
    assert _state_of(result.data["pid"]) != "T"


async def test_target_that_stands_stopped_after_the_profile_is_told(
    serve: Callable[[str], LiveService], tmp_path: Path
) -> None:
    """Stopped by somebody in the middle, as a profiler that fails may leave it."""
    service = serve("contended")
    settings = _settings(service, tmp_path)
    stopped: list[int] = []

    def stop() -> None:
        deadline = time.monotonic() + 60
        while not stopped and time.monotonic() < deadline:
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0].endswith(b"py-spy") and b"record" in words:
                    pid = int(words[words.index(b"--pid") + 1])
                    if pid == service.process.pid:
                        time.sleep(0.5)  # it has attached by then; the profile lasts two seconds
                        os.kill(pid, signal.SIGSTOP)
                        stopped.append(pid)
            time.sleep(0.02)

    watcher = threading.Thread(target=stop)
    watcher.start()
    try:
        result = await _run(settings, "profile", service="svc", seconds=2, tool="py-spy")
    finally:
        watcher.join()
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert stopped
    said = " ".join([*result.data.get("not_checked", ()), str(result.error)])
    assert "stopped (state T)" in said
