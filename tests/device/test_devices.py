"""What probes stand on, over literal text and recorded trees."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import bot.device
import bot.probe
from bot.device.allocator import allocator_change, allocator_moment, told
from bot.device.exposition import Exposition, parse
from bot.device.launch import batch_limit, launch_flags, reduced_precision
from bot.device.proc import ProcRoot
from bot.device.service import ServiceTarget, find_processes
from bot.errors import ProbeError, Reason
from bot.probe import Reading

MODULES = [f"bot.device.{info.name}" for info in pkgutil.iter_modules(bot.device.__path__)]


@pytest.mark.parametrize("name", [*MODULES, "bot.probe"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def _process(
    root: Path, pid: int, parent: int, *, comm: str = "p", state: str = "S", **files: str
) -> None:
    folder = root / str(pid)
    folder.mkdir(parents=True)
    rest = f"{parent} 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 1 0 {pid} " + "0 " * 30
    (folder / "stat").write_text(f"{pid} ({comm}) {state} {rest}")
    for name, text in ({"cmdline": comm, "cgroup": "0::/\n"} | files).items():
        (folder / name).write_text(text)


RULES = {
    "cgroup": ServiceTarget(name="s", cgroup="*translate-api*"),
    "unit": ServiceTarget(name="s", unit="translate-api.service"),
    "cmdline": ServiceTarget(name="s", cmdline="*serve --model x*"),
}


@pytest.mark.parametrize("rule", RULES)
def test_service_is_found_by_its_rule_with_its_children(tmp_path: Path, rule: str) -> None:
    cgroup = "0::/system.slice/translate-api.service\n"
    _process(tmp_path, 10, 1, cgroup=cgroup, cmdline="python\0serve\0--model\0x\0")
    _process(tmp_path, 11, 10, cmdline="worker")
    _process(tmp_path, 12, 10, state="Z")
    _process(tmp_path, 20, 1, cgroup="0::/system.slice/other.service\n", cmdline="other")
    found = find_processes(ProcRoot(tmp_path), RULES[rule])
    assert [task.pid for task in found] == [10, 11]


def test_pidfile_of_a_process_that_is_gone_finds_nothing(tmp_path: Path) -> None:
    _process(tmp_path / "proc", 10, 1)
    (tmp_path / "pid").write_text("99\n")
    target = ServiceTarget(name="s", pidfile=tmp_path / "pid")
    with pytest.raises(ProbeError) as caught:
        find_processes(ProcRoot(tmp_path / "proc"), target)
    assert caught.value.reason is Reason.NOT_FOUND


def test_process_that_exits_between_listing_and_reading_is_left_out(tmp_path: Path) -> None:
    _process(tmp_path, 10, 1)
    (tmp_path / "11").mkdir()
    assert [task.pid for task in ProcRoot(tmp_path).tasks()] == [10]


def test_flags_with_secrets_never_leave() -> None:
    flags = launch_flags(
        ["python", "-m", "vllm", "--api-key", "sk-1", "--hf-token=hf-1", "--max-num-seqs", "7",
         "--quantization=fp8", "--dtype", "$(cat /etc/passwd)", "--enforce-eager", "--port", "1"]
    )  # fmt: skip
    assert flags == {
        "max_num_seqs": "7", "quantization": "fp8", "dtype": "not shown", "enforce_eager": "true",
    }  # fmt: skip
    assert batch_limit(flags) == ("max_num_seqs", 7)
    assert reduced_precision(flags) == {"quantization": "fp8"}


TRITON = """
nv_pinned_memory_pool_total_bytes 268435456
nv_pinned_memory_pool_used_bytes {used}
nv_inference_request_success{{model="m"}} {done}
"""


def test_allocator_series_are_known_under_the_names_of_the_servers() -> None:
    page = Exposition(parse(TRITON.format(used=268435456, done=5)), 0.1)
    moment = allocator_moment(page)
    assert (moment.sides, moment.pool_used_bytes, moment.requests) == ("host", 268435456, 5)
    assert allocator_moment(Exposition(parse("up 1\n"), 0.1)).sides == ""


def test_counter_that_restarted_is_untold_and_not_negative() -> None:
    text = "torch_host_alloc_total {}\ntorch_host_alloc_seconds_total {}\n"
    before, after = (
        allocator_moment(Exposition(parse(text.format(*values)), 0.1))
        for values in ((100, 5), (3, 0.1))
    )
    change = allocator_change(before, after)
    assert change.host_allocs is None
    assert change.mean_host_alloc_seconds is None
    assert told(change)["host_allocs"] != 0


def test_reading_names_its_gaps_on_the_wire() -> None:
    data = Reading(not_checked=("GPU 2: lost",), data={"x": float("nan")}).wire_data()
    assert data == {"finding_count": 0, "x": None, "partial": True, "not_checked": ["GPU 2: lost"]}
