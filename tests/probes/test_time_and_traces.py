"""The clock's account and the span exporter's."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import bot.probes.time_sync as time_sync_module
from bot.device.clock import KernelClock
from bot.device.service import ServiceTarget
from bot.probe import Reading
from bot.probes.time_sync import time_sync
from bot.probes.trace_health import trace_health
from tests.probes.stage import Tree, ids, look


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path / "proc")
    made.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    return made


def _process(tree: Tree, pid: int, comm: str) -> None:
    fields = "0 -1 0 0 0 0 0 100 50 0 0 20 0 3 0 900"
    tree.write(f"{pid}/stat", f"{pid} ({comm}) S 1 {pid} {pid} {fields} {'0 ' * 30}")


def _chronyc(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int = 0) -> None:
    program = folder / "bin" / "chronyc"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


TRACKING = (
    "C0A80101,10.0.0.1,3,1764526000.1,{offset},0.00001,0.00002,1.5,0.0,0.1,0.02,0.001,64.0,{leap}"
)


@pytest.mark.parametrize(
    ("offset", "findings"),
    [("0.000021", ["time.ok"]), ("0.080", ["time.skew"]), ("-3.5", ["time.skew"])],
    ids=["well", "behind", "far-ahead"],
)
def test_clock_that_chrony_keeps_is_judged_by_chronys_offset(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: str, findings: list[str]
) -> None:
    _process(tree, 9, "chronyd")
    _chronyc(tmp_path, monkeypatch, TRACKING.format(offset=offset, leap="Normal"))
    reading = look(time_sync, tree.context())
    assert ids(reading) == findings
    assert reading.data["daemons"] == ("chrony",)


def test_clock_that_nothing_keeps_is_neither_right_nor_skewed(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _chronyc(tmp_path, monkeypatch, TRACKING.format(offset="0.0", leap="Not synchronised"))
    _kernel(monkeypatch, is_synchronised=False)
    reading = look(time_sync, tree.context())
    assert ids(reading) == []
    assert "nothing has synchronised" in reading.not_checked[0]


def test_chrony_that_cannot_be_asked_leaves_a_gap(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _process(tree, 9, "chronyd")
    _chronyc(tmp_path, monkeypatch, "506 Cannot talk to daemon", 1)
    _kernel(monkeypatch, is_synchronised=True)
    reading = look(time_sync, tree.context())
    assert ids(reading) == []
    assert any("506 Cannot talk to daemon" in gap for gap in reading.not_checked)


@pytest.mark.parametrize(("offset", "findings"), [(0.001, ["time.ok"]), (0.2, ["time.skew"])])
def test_clock_without_chrony_is_judged_by_the_kernels_offset(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: float, findings: list[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    _kernel(monkeypatch, is_synchronised=True, offset_seconds=offset)
    assert ids(look(time_sync, tree.context())) == findings


def _kernel(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    """The system call of this machine has one answer; the judgement needs several."""
    clock = KernelClock(
        **{
            "offset_seconds": 0.0,
            "estimated_error_seconds": 0.0,
            "max_error_seconds": 16.0,
            "frequency_ppm": 0.0,
            **values,
        }
    )
    monkeypatch.setattr(time_sync_module, "kernel_clock", lambda: clock)


class _Page(BaseHTTPRequestHandler):
    text = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[type[_Page]]:
    handler = type("Handler", (_Page,), {})
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    handler.url = f"http://127.0.0.1:{listener.server_address[1]}/metrics"
    yield handler
    listener.shutdown()
    listener.server_close()


def _traced(
    tree: Tree,
    environ: str,
    page: Any = None,
    command: str = "python\0serve.py",
    rows: str = "",
) -> Reading:
    _process(tree, 7, "svc")
    tree.write("7/environ", environ)
    tree.write("7/cmdline", command)
    tree.write("7/net/tcp", f"head\n{rows}")
    (tree.root / "7/fd").mkdir(exist_ok=True)
    (tree.root / "7/fd/5").symlink_to("socket:[777]")
    pidfile = tree.root.parent / "svc.pid"
    pidfile.write_text("7")
    target = ServiceTarget(
        name="svc", pidfile=pidfile, metrics_url=None if page is None else page.url
    )
    return look(trace_health, tree.context(services={"svc": target}), service="svc")


@pytest.mark.parametrize(
    "command",
    ["vllm\0serve\0m", "python3\0-m\0vllm.entrypoints.openai.api_server", "/opt/tritonserver/bin/tritonserver"],
)  # fmt: skip
def test_inference_server_without_any_exporter_is_not_configured(tree: Tree, command: str) -> None:
    assert ids(_traced(tree, "PATH=/bin\0HOME=/root", command=command)) == ["trace.not_configured"]


def test_program_of_its_own_may_trace_without_a_sign_and_is_not_accused(tree: Tree) -> None:
    reading = _traced(tree, "PATH=/bin\0HOME=/root")
    assert ids(reading) == []
    assert "the program itself may set it up" in reading.not_checked[-1]


@pytest.mark.parametrize(
    "switch",
    ["OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_SAMPLER=always_off"],
)
def test_tracing_that_is_switched_off_names_the_switch(tree: Tree, switch: str) -> None:
    reading = _traced(tree, f"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317\0{switch}")
    assert ids(reading) == ["trace.not_configured"]
    assert switch in reading.findings[0].summary


@pytest.mark.parametrize(
    ("counters", "findings"),
    [
        ("otel_sdk_exporter_span_exported_total 900\n", ["trace.ok"]),
        ('otel_sdk_exporter_span_exported_total{error_type="UNAVAILABLE"} 214\notel_sdk_exporter_span_exported_total 0\n', ["trace.exporter_failing"]),
        ("otelcol_exporter_sent_spans_total 90\notelcol_exporter_enqueue_failed_spans_total 30\n", ["trace.exporter_failing"]),
    ],
    ids=["well", "refused", "queue-full"],
)  # fmt: skip
def test_exporter_is_judged_by_its_own_counters(
    tree: Tree, page: Any, counters: str, findings: list[str]
) -> None:
    page.text = counters
    reading = _traced(tree, "OTEL_EXPORTER_OTLP_ENDPOINT=http://user:pw@collector:4317/v1", page)
    assert ids(reading) == findings
    assert reading.data["collector"] == "collector:4317"


@pytest.mark.parametrize(
    ("port", "findings"), [("10DD", ["trace.ok"]), ("1F90", [])], ids=["collector", "other"]
)
def test_connection_to_the_collector_counts_as_exporting(
    tree: Tree, port: str, findings: list[str]
) -> None:
    row = (
        f"0: 0100007F:C350 0200007F:{port} 01 00000000:00000000 00:00000000 00000000 0 0 777 1 0\n"
    )
    assert ids(_traced(tree, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317", rows=row)) == findings


def test_exporter_that_cannot_be_seen_is_a_gap_and_not_well(tree: Tree) -> None:
    reading = _traced(tree, "OTEL_TRACES_EXPORTER=otlp")
    assert ids(reading) == []
    assert "no counters" in reading.not_checked[-1]


@pytest.mark.parametrize(
    "command",
    ["vllm\0serve\0--otlp-traces-endpoint\0http://c:4317", "tgi\0--otlp-endpoint=http://c:4317",
     "tritonserver\0--trace-config\0opentelemetry,url=http://c:4317/v1/traces"],
    ids=["vllm", "tgi", "triton"],
)  # fmt: skip
def test_flags_of_inference_servers_count_as_configured(tree: Tree, command: str) -> None:
    reading = _traced(tree, "PATH=/bin", command=command)
    assert ids(reading) == []
    assert reading.data["collector"] == "c:4317"


def test_nothing_of_the_environment_but_the_list_leaves_the_node(tree: Tree) -> None:
    reading = _traced(
        tree,
        "HF_TOKEN=hf_secret\0OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer secret\0"
        "OTEL_EXPORTER_OTLP_ENDPOINT=https://user:secret@c:4318/secret?key=secret\0"
        "OTEL_TRACES_SAMPLER_ARG=$(cat secret)",
        command="vllm\0--api-key\0secret",
    )
    assert "secret" not in str(reading.wire_data())
