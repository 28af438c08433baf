"""Every probe × {works, unsupported, denied, timeout, error}, provoked through what the probe reads."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.agent.child import ChildTask
from bot.agent.runner import ChildRunner
from bot.agent.serve import probe_catalogue
from bot.agent.settings import AgentSettings, Limits, load_settings
from bot.argument import ArgumentKind
from bot.device.service import ServiceTarget
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.probe import Probe
from tests.agent.live_service import LiveService, start_service
from tests.device.standin_libraries import cuda_library, nvml_library
from tests.waiting import PATIENCE_SECONDS

# One worker runs them all, so that what they share is made once.
pytestmark = pytest.mark.xdist_group("every_probe")

PROBES = probe_catalogue()
GIB = 2**30
REPOSITORY = Path(__file__).resolve().parents[2]

CARD = {
    "nvmlDeviceGetMemoryInfo": {"return": {"total": 80 * GIB, "used": 8 * GIB, "free": 72 * GIB}},
    "nvmlDeviceGetUtilizationRates": {"return": {"gpu": 80, "memory": 40}},
    "nvmlDeviceGetTemperature": {"return": 60},
    "nvmlDeviceGetPowerUsage": {"return": 300000},
    "nvmlDeviceGetClockInfo": {"return": 1980},
    "nvmlDeviceGetMaxClockInfo": {"return": 1980},
    "nvmlDeviceGetCurrentClocksEventReasons": {"return": 0},
    "nvmlDeviceGetCurrPcieLinkWidth": {"return": 16},
    "nvmlDeviceGetMaxPcieLinkWidth": {"return": 16},
    "nvmlDeviceGetCurrPcieLinkGeneration": {"return": 5},
    "nvmlDeviceGetMaxPcieLinkGeneration": {"return": 5},
    "nvmlDeviceGetPcieReplayCounter": {"return": 0},
    "nvmlDeviceGetComputeRunningProcesses": {"return": []},
    "nvmlDeviceGetTotalEccErrors": {"return": 0},
    "nvmlDeviceGetRemappedRows": {"return": [0, 0, 0, 0]},
}


def _table(path: Path, init: dict[str, Any] | None = None) -> str:
    device = {
        "index": 0,
        "uuid": "GPU-0",
        "pci": "00000000:01:00.0",
        "name": "Test Card",
        "calls": CARD,
    }
    path.write_text(
        json.dumps({"init": init or {"return": None}, "driver": "1", "devices": [device]})
    )
    return f"standin:{path}"


def _args(probe: Probe) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for argument in probe.arguments:
        if argument.kind is ArgumentKind.SERVICE and argument.is_required:
            values[argument.name] = "svc"
        elif argument.name == "window_s":
            values[argument.name] = 0.6
        elif argument.name == "seconds":
            values[argument.name] = 1.0
        elif argument.name == "gpu":
            values[argument.name] = 0
        elif argument.name == "tool":
            values[argument.name] = "py-spy"
    return values


@dataclasses.dataclass
class Stage:
    """What a probe will read; each provocation spoils one part of it."""

    folder: Path
    pages: dict[str, str]
    proc_root: str = "/proc"
    kernel_log: str = "/dev/kmsg"
    nvml_library: str = ""
    sys_root: str = "/sys"
    cuda_library: str = ""
    service: ServiceTarget | None = None
    held: list[socket.socket] = dataclasses.field(default_factory=list)

    def task(self, probe: Probe) -> ChildTask:
        return ChildTask(
            probe=probe.name,
            args=_args(probe),
            proc_root=self.proc_root,
            sys_root=self.sys_root,
            nvml_library=self.nvml_library,
            kernel_log=self.kernel_log,
            package_log="/not/there",
            services={} if self.service is None else {"svc": self.service},
            result_bytes=65536,
            cuda_library=self.cuda_library,
            artefact_folder=str(self.folder) if probe.makes_artefact else "",
            artefact_bytes=2**20,
        )


Spoil = Callable[[Stage, str], None]


def _spoil_file(path: Path, how: str) -> None:
    match how:
        case "unsupported":
            path.unlink(missing_ok=True)
        case "denied":
            path.chmod(0)
        case "timeout":
            path.unlink(missing_ok=True)
            os.mkfifo(path)
        case "error":
            path.write_text("\x00 no such thing is ever written here")


def _host_file(name: str) -> Spoil:
    def spoil(stage: Stage, how: str) -> None:
        root = stage.folder / "proc"
        for part in ("stat", "meminfo", "vmstat", "diskstats", "uptime", "net/snmp", "net/dev"):
            (root / part).parent.mkdir(parents=True, exist_ok=True)
            (root / part).write_text(Path("/proc", part).read_text())
        _spoil_file(root / name, how)
        stage.proc_root = str(root)

    return spoil


def _kernel_log(stage: Stage, how: str) -> None:
    path = stage.folder / "kmsg"
    path.write_text("[ 1.0] hello\n")
    if how == "error":
        path.unlink()
        path.mkdir()
    else:
        _spoil_file(path, how)
    stage.kernel_log = str(path)


def _pressure(stage: Stage, how: str) -> None:
    folder = stage.folder / "proc" / "pressure"
    folder.mkdir(parents=True)
    for name in ("cpu", "io", "memory"):
        (folder / name).write_text(Path("/proc/pressure", name).read_text())
        _spoil_file(folder / name, how)
    stage.proc_root = str(folder.parent)


def _dependencies(stage: Stage, how: str) -> None:
    if how == "timeout":
        # Its accept queue is full, so the kernel drops every further SYN.
        full = socket.create_server(("127.0.0.1", 0), backlog=0)
        port = full.getsockname()[1]
        stage.held = [full, *(_connect(port) for _ in range(4))]
        addresses = (f"tcp://127.0.0.1:{port}",)
    elif how == "denied":
        path = stage.folder / "peer.sock"
        stage.held = [socket.socket(socket.AF_UNIX)]
        stage.held[0].bind(str(path))
        stage.held[0].listen()
        path.chmod(0)
        addresses = (f"unix://{path}",)
    else:
        addresses = () if how == "unsupported" else ("nowhere at all",)
    stage.service = ServiceTarget(name="svc", cmdline="*", dependencies=addresses)


def _connect(port: int) -> socket.socket:
    one = socket.socket()
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        one.connect(("127.0.0.1", port))
    return one


def _pidfile(stage: Stage, how: str) -> None:
    path = stage.folder / "svc.pid"
    path.write_text(str(os.getpid()))
    if how == "unsupported":
        return  # the node has no such service at all
    _spoil_file(path, how)
    stage.service = ServiceTarget(name="svc", pidfile=path)


def _metrics_page(stage: Stage, how: str) -> None:
    address = None if how == "unsupported" else stage.pages[how]
    stage.service = ServiceTarget(name="svc", cmdline="*", metrics_url=address)


def _golden(stage: Stage, how: str) -> None:
    path = stage.folder / "golden.json"
    path.write_text(json.dumps({"requests": [{"body": {"prompt": "a"}, "expect": {"text": "b"}}]}))
    address = None if how == "unsupported" else stage.pages[how]
    stage.service = ServiceTarget(name="svc", cmdline="*", golden_url=address, golden_file=path)


def _clock_source(stage: Stage, how: str) -> None:
    path = stage.folder / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    path.parent.mkdir(parents=True)
    path.write_text("tsc\n")
    _spoil_file(path, how)
    stage.sys_root = str(stage.folder / "sys")


def _copies(stage: Stage, how: str) -> None:
    told = {
        "unsupported": {"code": {"cuInit": 100}},
        "denied": {"code": {"cuDevicePrimaryCtxRetain": 800}},
        "timeout": {"hang_s": {"cuMemcpyHtoD_v2": 600}},
        "error": {"code": {"cuMemAlloc_v2": 999}},
    }[how]
    stage.cuda_library = str(cuda_library(stage.folder, all=told).path)


def _driver(stage: Stage, how: str) -> None:
    """The real binding over a library that is not well, as `_gpu` is over a table."""
    told = {
        "unsupported": {"code": {"nvmlInit": 9}},
        "denied": {"code": {"nvmlInit": 4}},
        "timeout": {"hang_s": {"nvmlInit": 600}},
        "error": {"code": {"nvmlInit": 999}},
    }[how]
    stage.nvml_library = str(nvml_library(stage.folder, all=told).path)


def _gpu(stage: Stage, how: str) -> None:
    init = {
        "unsupported": {"raise": "DriverNotLoaded"},
        "denied": {"raise": "NoPermission"},
        "timeout": {"block_s": 600, "return": None},
        "error": {"raise": "Unknown"},
    }[how]
    stage.nvml_library = _table(stage.folder / "gpu.json", init)


PROVOCATIONS: dict[str, Spoil] = {
    "burst_sample": _pressure,
    "dependency_check": _dependencies,
    "gpu_errors": _driver,
    "gpu_processes": _driver,
    "model_artifact": _pidfile,
    "service_config": _pidfile,
    "gpu_allocator": _metrics_page,
    "golden_set": _golden,
    "h2d_bandwidth": _copies,
    "profile": _pidfile,
    "time_sync": _clock_source,
    "trace_health": _pidfile,
    "gpu_link": _gpu,
    "gpu_state": _driver,
    "host_cpu": _host_file("stat"),
    "host_disk": _host_file("diskstats"),
    "host_memory": _host_file("meminfo"),
    "host_network": _host_file("net/snmp"),
    "kernel_log": _kernel_log,
    "log_health": _pidfile,
    "process_memory": _pidfile,
    "process_stacks": _pidfile,
    "process_threads": _pidfile,
    "service_metrics": _metrics_page,
    "service_sockets": _pidfile,
}


class _Page(http.server.BaseHTTPRequestHandler):
    over = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/timeout":
            self.over.wait(PATIENCE_SECONDS)
        self.send_response(403 if self.path == "/denied" else 200)
        self.end_headers()
        if self.path == "/error":
            self.wfile.write(b"{{{ this is no exposition text\n")

    do_POST = do_GET  # noqa: N815 - the name that the server looks for

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture(scope="module")
def pages() -> Iterator[dict[str, str]]:
    _Page.over = threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    yield {how: f"{base}/{how}" for how in ("denied", "timeout", "error")}
    _Page.over.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def stage(tmp_path: Path, pages: dict[str, str]) -> Iterator[Stage]:
    made = Stage(tmp_path, pages)
    yield made
    for one in made.held:
        one.close()


def _settings(stage: Stage) -> AgentSettings:
    return AgentSettings(
        node="n",
        proc_root=Path(stage.proc_root),
        kernel_log=Path(stage.kernel_log),
        nvml_library=stage.nvml_library,
        sys_root=Path(stage.sys_root),
        cuda_library=stage.cuda_library,
        services={} if stage.service is None else {"svc": stage.service},
    )


async def _run(stage: Stage, probe: Probe, seconds: float) -> ProbeResult:
    runner = ChildRunner(_settings(stage), now=time.time, monotonic=time.monotonic)
    try:
        return await runner.run(probe, _args(probe), seconds)
    finally:
        await runner.close()


def _drop_capabilities() -> None:
    """Root reads everything; without its capabilities a file's mode counts for it as for anybody."""
    library = ctypes.CDLL(None)
    for capability in range(41):
        library.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP, Linux prctl(2)


def _run_stripped(stage: Stage, probe: Probe) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bot.agent.child"],
        input=stage.task(probe).to_json(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
        preexec_fn=_drop_capabilities if os.getuid() == 0 else None,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["result"]
    return result


def test_every_probe_has_its_provocations() -> None:
    assert set(PROVOCATIONS) == set(PROBES)


TRIES = 6


def _deadline(name: str, how: str, earlier: int = 0) -> float:
    if how != "timeout":
        return PATIENCE_SECONDS
    # It gives a peer two seconds, after which that peer is a finding and no timeout.
    return 1.5 + 0.5 * earlier if name == "dependency_check" else 3.0 * (earlier + 1)


def _is_before_its_reading(result: ProbeResult) -> bool:
    child = result.data.get("child")
    return child is not None and child["at"] == "start"


def _has_proven_nothing(result: ProbeResult, how: str) -> bool:
    """Its deadline was too early for a machine so busy, or after what it was to come before."""
    is_late = result.probe == "dependency_check" and result.status is ProbeStatus.OK
    return _is_before_its_reading(result) or (how == "timeout" and is_late)


@pytest.fixture(scope="module")
def outcomes(
    pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, str], ProbeResult]]:
    """Every probe with each provocation, many at a time: most of the time is spent waiting for a deadline."""
    stages: list[Stage] = []

    def provoke(name: str, how: str) -> Stage:
        stages.append(Stage(tmp_path_factory.mktemp(f"{name}-{how}"), pages))
        PROVOCATIONS[name](stages[-1], how)
        return stages[-1]

    async def everything() -> dict[tuple[str, str], ProbeResult]:
        found: dict[tuple[str, str], ProbeResult] = {}
        for how in ("unsupported", "error", "timeout"):
            results = await asyncio.gather(
                *(
                    _run(provoke(name, how), PROBES[name], _deadline(name, how))
                    for name in PROVOCATIONS
                )
            )
            found |= {(result.probe, how): result for result in results}
        for earlier in range(TRIES):
            # Once more, alone, and with more time.
            for name, how in [at for at, told in found.items() if _has_proven_nothing(told, at[1])]:
                deadline = _deadline(name, how, earlier)
                found[name, how] = await _run(provoke(name, how), PROBES[name], deadline)
        return found

    yield asyncio.run(everything())
    for stage in stages:
        for one in stage.held:
            one.close()


@pytest.mark.parametrize("name", sorted(PROVOCATIONS))
@pytest.mark.parametrize("how", ["unsupported", "error", "timeout"])
def test_probe_that_cannot_look_says_why_and_finds_nothing(
    outcomes: dict[tuple[str, str], ProbeResult], name: str, how: str
) -> None:
    result = outcomes[name, how]
    assert result.status.value == how, result.error
    assert result.findings == ()
    assert result.error
    assert "\n" not in result.error
    if how == "timeout" and "child" in result.data:
        # It hung on what it read, and not before it began.
        assert not _is_before_its_reading(result)


@pytest.mark.parametrize("name", sorted(PROVOCATIONS))
def test_probe_without_permission_is_denied_and_finds_nothing(stage: Stage, name: str) -> None:
    PROVOCATIONS[name](stage, "denied")
    result = _run_stripped(stage, PROBES[name])
    assert result["status"] == "denied", result["error"]
    assert result["findings"] == []
    assert result["error"]


def test_dependency_that_this_node_forbids_is_neither_well_nor_unreachable(stage: Stage) -> None:
    _dependencies(stage, "denied")
    assert stage.service is not None
    with socket.create_server(("127.0.0.1", 0)) as peer:
        address = f"tcp://127.0.0.1:{peer.getsockname()[1]}"
        both = (address, *stage.service.dependencies)
        stage.service = dataclasses.replace(stage.service, dependencies=both)
        result = _run_stripped(stage, PROBES["dependency_check"])
    assert (result["status"], result["findings"]) == ("ok", [])
    assert "forbids" in result["data"]["not_checked"][0]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    started = start_service(tmp_path_factory.mktemp("service"), "idle")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def readings(
    service: LiveService, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ProbeResult]:
    """Every probe once, all at the same time, on this machine and a service that is well."""
    folder = tmp_path_factory.mktemp("works")
    library = _table(folder / "gpu.json")
    copies = cuda_library(folder, all={"pinned_gb_per_s": 56.5, "pageable_gb_per_s": 20}).path
    config = folder / "agent.toml"
    config.write_text(
        f'{service.config()}\n[paths]\nnvml_library = "{library}"\ncuda_library = "{copies}"\n'
        "[limits]\nparallel = 32\n"
    )
    settings = load_settings({"RCA_AGENT_CONFIG": str(config), "RCA_AGENT_NODE": "n"})
    assert settings.limits == Limits(parallel=32)

    async def everything() -> list[ProbeResult]:
        runner = ChildRunner(settings, now=time.time, monotonic=time.monotonic)
        results = await asyncio.gather(
            *(runner.run(probe, _args(probe), PATIENCE_SECONDS) for probe in PROBES.values())
        )
        await runner.close()
        return results

    return {result.probe: result for result in asyncio.run(everything())}


@pytest.mark.parametrize("name", sorted(PROBES))
def test_probe_that_works_reports_only_findings_that_it_declares(
    readings: dict[str, ProbeResult], name: str
) -> None:
    result = readings[name]
    assert result.status.value == "ok", result.error
    assert result.error is None
    assert {finding.id for finding in result.findings} <= set(PROBES[name].findings)
    # Something was judged, or it is said what was not.
    assert result.findings or result.data["not_checked"]
    assert json.loads(json.dumps(result.to_json()))["data"] == dict(result.data)


@pytest.mark.parametrize("name", sorted(PROBES))
def test_clean_finding_stands_alone_and_never_beside_a_gap(
    readings: dict[str, ProbeResult], name: str
) -> None:
    result = readings[name]
    clean = PROBES[name].findings[-1]
    if clean in {finding.id for finding in result.findings}:
        assert "not_checked" not in result.data
        assert all(finding.severity.value == "info" for finding in result.findings)


@pytest.mark.parametrize("name", sorted(PROBES))
def test_stand_in_reading_is_labelled(readings: dict[str, ProbeResult], name: str) -> None:
    result = readings[name]
    is_gpu = name.startswith("gpu_") and PROBES[name].serial_group == "nvml"
    assert result.data.get("standin", False) is is_gpu
    if is_gpu:
        assert all(finding.summary.startswith("stand-in") for finding in result.findings)


@pytest.mark.parametrize("name", sorted(PROBES))
def test_description_is_complete(name: str) -> None:
    probe = PROBES[name]
    assert probe.summary
    assert probe.needs
    assert probe.findings
    assert all(re.fullmatch(r"[a-z]+\.[a-z0-9_]+", item) for item in probe.findings)
    module = sys.modules[f"bot.probes.{name}"]
    source = Path(str(module.__file__)).read_text()
    for finding in probe.findings:
        assert finding in source or finding in _device_sources(), finding
    # Every number that judges stands beside the words that say where it comes from.
    numbers = re.findall(r"^([A-Z][A-Z_]+) = -?[\d.][^\n]*\n(.*)", source, re.MULTILINE)
    assert [name for name, below in numbers if not below.startswith('"""')] == []


def _device_sources() -> str:
    return "".join(path.read_text() for path in (REPOSITORY / "bot" / "device").glob("*.py"))
