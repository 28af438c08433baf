"""Errors, neighbours, launch flags, model files, dependencies and bursts: each fault is found, a clean run is clean."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.device.service import ServiceTarget
from bot.probe import Reading
from bot.probes.burst_sample import burst_sample
from bot.probes.dependency_check import dependency_check
from bot.probes.gpu_errors import gpu_errors
from bot.probes.gpu_processes import gpu_processes
from bot.probes.model_artifact import model_artifact
from bot.probes.service_config import service_config
from tests.probes.stage import PRESSURE, Tree, ids, look, severity

MIB = 2**20
BOOT = 1_700_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "proc")


def _process(
    tree: Tree, pid: int, comm: str, *, started_ticks: int = 500, cmdline: str = ""
) -> None:
    rest = f"1 {pid} {pid} 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 {started_ticks} " + "0 " * 30
    tree.write(f"{pid}/stat", f"{pid} ({comm}) S {rest}")
    tree.write(f"{pid}/cgroup", "0::/\n")
    tree.write(f"{pid}/cmdline", cmdline or comm)
    tree.write(f"{pid}/status", f"Name: {comm}\nUid: 1041 1041 1041 1041\n")


def _gpu(
    tree: Tree, *, log: str = "[1.0] hello\n", services: Any = None, **calls: Any
) -> dict[str, Any]:
    answers = {
        "nvmlDeviceGetTotalEccErrors": {"return": 0},
        "nvmlDeviceGetRemappedRows": {"return": [0, 0, 0, 0]},
        "nvmlDeviceGetComputeRunningProcesses": {"return": []},
    } | calls
    device = {"index": 0, "uuid": "GPU-0", "pci": "x", "name": "Test Card", "calls": answers}
    (tree.root / "gpus.json").write_text(json.dumps({"driver": "1", "devices": [device]}))
    tree.write("kmsg", log)
    return {
        "nvml_library": f"standin:{tree.root}/gpus.json",
        "kernel_log": tree.root / "kmsg",
        "services": services or {},
    }


def test_gpu_without_errors_is_clean(tree: Tree) -> None:
    assert ids(look(gpu_errors, tree.context(**_gpu(tree)))) == ["gpu.errors_clean"]


def test_xid_is_found_with_every_sources_word_and_its_process(tree: Tree) -> None:
    log = (
        "[99000.0] NVRM: Xid (PCI:0000:3b:00): 31, pid=41001, name=python3, MMU Fault\n"
        "[99940.0] NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen\n"
    )
    reading = look(gpu_errors, tree.context(**_gpu(tree, log=log)))
    found = [(item.value, item.severity.value) for item in reading.findings]
    assert found == [(31, "warning"), (79, "critical")]
    assert "pid 41001 python3" in reading.findings[0].summary
    assert "60 s old" in reading.findings[1].summary
    event = reading.wire_data()["events"][1]
    assert {item["source"] for item in event["classification"]} >= {"nvidia-catalog", "gpud"}


def test_ecc_and_row_remapping_are_found(tree: Tree) -> None:
    bad = {
        "nvmlDeviceGetTotalEccErrors": {"return": 3},
        "nvmlDeviceGetRemappedRows": {"return": [0, 2, 1, 1]},
    }
    reading = look(gpu_errors, tree.context(**_gpu(tree, **bad)))
    assert set(ids(reading)) == {
        "gpu.ecc_uncorrected", "gpu.row_remap_failed", "gpu.row_remap_pending",
    }  # fmt: skip


def test_older_card_tells_retired_pages_where_later_ones_remap_rows(tree: Tree) -> None:
    """V100 and T4 have no row remapping; the same two answers stand on pages there."""

    def errors(single: int, double: int, pending: int) -> Reading:
        fields = {"return": {"29": single, "30": double, "31": pending}}
        settings = _gpu(
            tree,
            nvmlDeviceGetRemappedRows={"raise": "NotSupported"},
            nvmlDeviceGetFieldValues=fields,
        )
        return look(gpu_errors, tree.context(**settings))

    assert ids(errors(3, 1, 0)) == ["gpu.errors_clean"]
    assert ids(errors(3, 1, 1)) == ["gpu.row_remap_pending"]
    worn = errors(40, 23, 0)
    assert ids(worn) == ["gpu.row_remap_failed"]
    assert (worn.findings[0].value, worn.findings[0].unit) == (63, "pages")


@pytest.mark.parametrize(
    ("action", "words"),
    [(0, None), (1, "a reset of the GPU"), (3, "peer-to-peer"), (9, "unknown action 9")],
)
def test_card_for_which_the_driver_asks_something_is_not_called_clean(
    tree: Tree, action: int, words: str | None
) -> None:
    settings = _gpu(tree, nvmlDeviceGetFieldValues={"return": {"230": action}})
    reading = look(gpu_errors, tree.context(**settings))
    assert reading.wire_data()["gpus"][0]["recovery_action"] == action
    assert ids(reading) == (["gpu.errors_clean"] if words is None else [])
    assert words is None or words in reading.not_checked[0]


def test_card_without_ecc_is_no_gap_and_one_that_fails_is(tree: Tree) -> None:
    absent = {"nvmlDeviceGetTotalEccErrors": {"raise": "NotSupported"}}
    assert ids(look(gpu_errors, tree.context(**_gpu(tree, **absent)))) == ["gpu.errors_clean"]
    failing = {"nvmlDeviceGetTotalEccErrors": {"raise": "Unknown"}}
    assert ids(look(gpu_errors, tree.context(**_gpu(tree, **failing)))) == []


def test_unreadable_kernel_log_leaves_the_xids_unchecked(tree: Tree) -> None:
    settings = _gpu(tree)
    (tree.root / "kmsg").unlink()
    reading = look(gpu_errors, tree.context(**settings))
    assert ids(reading) == []
    assert "Xid events" in reading.not_checked[0]


def test_foreign_process_is_told_apart_from_the_services_own(tree: Tree) -> None:
    _process(tree, 10, "server")
    _process(tree, 20, "train.py")
    _process(tree, 30, "dcgm")
    holders = [
        {"pid": 10, "usedGpuMemory": 40000 * MIB},
        {"pid": 20, "usedGpuMemory": 9049 * MIB},
        {"pid": 30, "usedGpuMemory": 100 * MIB},
    ]
    services = {"svc": ServiceTarget(name="svc", cmdline="server")}
    settings = _gpu(
        tree, services=services, nvmlDeviceGetComputeRunningProcesses={"return": holders}
    )
    reading = look(gpu_processes, tree.context(**settings))
    assert ids(reading) == ["gpu.foreign_process"]
    assert (reading.findings[0].value, reading.findings[0].unit) == (9049, "MiB")
    assert "pid 20 (train.py, uid 1041)" in reading.findings[0].summary


def test_agent_that_sees_only_its_containers_processes_calls_none_expected(tree: Tree) -> None:
    """The driver tells the host's process ids; here another process may bear the same number."""
    _process(tree, 10, "server")
    holders = [{"pid": 10, "usedGpuMemory": 40000 * MIB}]
    services = {"svc": ServiceTarget(name="svc", cmdline="server")}
    settings = _gpu(
        tree, services=services, nvmlDeviceGetComputeRunningProcesses={"return": holders}
    )
    (tree.root / "1" / "ns").mkdir(parents=True)
    link = tree.root / "1" / "ns" / "pid"
    link.symlink_to("pid:[4026531836]")
    assert ids(look(gpu_processes, tree.context(**settings))) == ["gpu.processes_expected"]
    link.unlink()
    link.symlink_to("pid:[4026532201]")
    reading = look(gpu_processes, tree.context(**settings))
    assert ids(reading) == []
    assert "hostPID" in reading.not_checked[0]


def test_pid_that_does_not_exist_here_is_a_gap(tree: Tree) -> None:
    holders = [{"pid": 777, "usedGpuMemory": 9000 * MIB}]
    settings = _gpu(tree, nvmlDeviceGetComputeRunningProcesses={"return": holders})
    reading = look(gpu_processes, tree.context(**settings))
    assert ids(reading) == []
    assert "not seen from here" in reading.not_checked[0]


@pytest.fixture
def model(tmp_path: Path, tree: Tree) -> Path:
    """A model folder older than the process, which started 5 s after boot."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("{}")
        os.utime(folder / name, (BOOT - 100, BOOT - 100))
    _process(
        tree,
        10,
        "server",
        cmdline="serve\0--max-num-seqs\x007\0--kv-cache-dtype=fp8\0--api-key\0k\0",
    )
    return folder


def _service(tree: Tree, model: Path, **more: Any) -> dict[str, Any]:
    target = ServiceTarget(name="svc", cmdline="*serve*", model_dir=model, **more)
    return {"services": {"svc": target}}


def _touch(path: Path, seconds_after_boot: float) -> None:
    os.utime(path, (BOOT + seconds_after_boot, BOOT + seconds_after_boot))


def test_unchanged_files_are_clean_and_flags_are_told(tree: Tree, model: Path) -> None:
    context = tree.context(**_service(tree, model))
    assert ids(look(model_artifact, context, service="svc")) == ["model.artifact_unchanged"]
    reading = look(service_config, context, service="svc")
    assert ids(reading) == ["svc.quantized", "svc.config_unchanged"]
    assert reading.data["flags"] == {"max_num_seqs": "7", "kv_cache_dtype": "fp8"}


def test_weights_newer_than_the_process_are_found(tree: Tree, model: Path) -> None:
    _touch(model / "model.safetensors", 900)
    reading = look(model_artifact, tree.context(**_service(tree, model)), service="svc")
    assert ids(reading) == ["model.changed_after_start"]
    assert severity(reading, "model.changed_after_start").value == "critical"


@pytest.mark.parametrize("what", ["folder", "file"])
def test_revision_switched_behind_a_link_is_found_though_its_files_are_old(
    tree: Tree, model: Path, what: str
) -> None:
    folder = model.with_name("current")
    if what == "folder":
        folder.symlink_to(model)
        link = folder
    else:
        folder.mkdir()
        link = folder / "model.safetensors"
        link.symlink_to(model / "model.safetensors")
    os.utime(link, (BOOT - 50, BOOT - 50), follow_symlinks=False)
    context = tree.context(**_service(tree, folder))
    assert ids(look(model_artifact, context, service="svc")) == ["model.artifact_unchanged"]
    os.utime(link, (BOOT + 900, BOOT + 900), follow_symlinks=False)
    assert ids(look(model_artifact, context, service="svc")) == ["model.changed_after_start"]


def test_deleted_mapped_weights_are_found(tree: Tree, model: Path) -> None:
    tree.write("10/maps", f"7f00-7f01 r--s 0 fe:00 1   {model}/old.safetensors (deleted)\n")
    reading = look(model_artifact, tree.context(**_service(tree, model)), service="svc")
    assert ids(reading) == ["model.changed_after_start"]


def test_workers_on_both_sides_of_a_change_serve_two_revisions(tree: Tree, model: Path) -> None:
    _process(tree, 11, "worker", started_ticks=200_000, cmdline="serve worker")
    _touch(model / "model.safetensors", 900)
    reading = look(model_artifact, tree.context(**_service(tree, model)), service="svc")
    assert ids(reading) == ["model.changed_after_start", "model.version_mismatch"]


def test_configuration_newer_than_the_process_is_found(tree: Tree, model: Path) -> None:
    _touch(model / "config.json", 900)
    reading = look(service_config, tree.context(**_service(tree, model)), service="svc")
    assert "svc.config_changed" in ids(reading)
    assert "svc.config_unchanged" not in ids(reading)


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _dependencies(tree: Tree, *addresses: str) -> Reading:
    target = ServiceTarget(name="svc", cmdline="x", dependencies=addresses)
    return look(dependency_check, tree.context(services={"svc": target}), service="svc")


def test_dependency_that_takes_a_connection_is_clean_and_a_refusal_is_found(
    tree: Tree, listening: int
) -> None:
    assert ids(_dependencies(tree, f"tcp://127.0.0.1:{listening}")) == ["dep.ok"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    reading = _dependencies(tree, f"tcp://127.0.0.1:{listening}", f"tcp://127.0.0.1:{closed}")
    assert ids(reading) == ["dep.unreachable"]
    assert f"127.0.0.1:{closed}" in reading.findings[0].summary


def test_dependency_behind_a_local_socket_is_contacted_by_its_path(
    tree: Tree, tmp_path: Path
) -> None:
    path = tmp_path / "cache.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert ids(_dependencies(tree, f"unix://{path}")) == ["dep.ok"]
    reading = _dependencies(tree, f"unix://{path}")
    assert ids(reading) == ["dep.unreachable"]
    assert str(path) in reading.findings[0].summary


def test_dependencies_beyond_the_bound_are_named_and_not_called_well(
    tree: Tree, listening: int
) -> None:
    reading = _dependencies(tree, *[f"tcp://127.0.0.1:{listening}"] * 17)
    assert ids(reading) == []
    assert "beyond the first 16" in reading.not_checked[0]


def test_short_stalls_between_scrapes_are_found_and_a_steady_one_is_not(tree: Tree) -> None:
    stalled = {"us": 0.0}

    def bursts() -> None:
        # 0.5 s of stall every 4 s, in a time that is otherwise calm.
        if tree.seconds % 4 < 0.5:
            stalled["us"] += 50_000
        tree.write("pressure/io", PRESSURE.format(some=1.0, full=0.0, total=int(stalled["us"])))

    tree.during = bursts
    reading = look(burst_sample, tree.context(), seconds=12)
    assert ids(reading) == ["metric.hidden_burst"]
    assert float(str(reading.findings[0].value)) == pytest.approx(0.125, abs=0.03)

    def steady() -> None:
        stalled["us"] += 15_000
        tree.write("pressure/io", PRESSURE.format(some=30.0, full=0.0, total=int(stalled["us"])))

    tree.during = steady
    reading = look(burst_sample, tree.context(), seconds=4)
    assert ids(reading) == []
    assert "steady" in reading.not_checked[0]
    tree.during = lambda: None
    assert ids(look(burst_sample, tree.context(), seconds=2)) == ["metric.flat"]
