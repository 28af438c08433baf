"""`rca-bot agent` as a person runs it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest


def _agent(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bot.cli", "agent", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            **env,
        },
    )


def test_keygen_writes_a_private_key_that_only_the_owner_reads(tmp_path: Path) -> None:
    done = _agent("keygen", "--out", str(tmp_path / "keys"))
    assert done.returncode == 0
    private, public = tmp_path / "keys" / "rca-agent.key", tmp_path / "keys" / "rca-agent.pub"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert "BEGIN PRIVATE KEY" in private.read_text()
    assert "BEGIN PUBLIC KEY" in public.read_text()


def test_keygen_never_overwrites_a_key(tmp_path: Path) -> None:
    _agent("keygen", "--out", str(tmp_path))
    before = (tmp_path / "rca-agent.key").read_bytes()
    again = _agent("keygen", "--out", str(tmp_path))
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
    assert (tmp_path / "rca-agent.key").read_bytes() == before


def test_run_prints_one_result_as_json() -> None:
    done = _agent("run", "host_memory", "--json", RCA_AGENT_NODE="here")
    result = json.loads(done.stdout)
    assert done.returncode == 0
    assert (result["probe"], result["node"], result["status"]) == ("host_memory", "here", "ok")


@pytest.mark.parametrize("words", [("--json",), ()], ids=["json", "text"])
def test_run_that_ends_without_an_answer_exits_1_and_still_prints_the_result(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    fifo = tmp_path / "kmsg"
    os.mkfifo(fifo)
    config = tmp_path / "agent.toml"
    config.write_text(f'[paths]\nkernel_log = "{fifo}"\n[limits]\ngrace_seconds = 1\n')
    done = _agent(
        "run", "kernel_log", "--timeout", "3", *words,
        RCA_AGENT_CONFIG=str(config), RCA_AGENT_NODE="here",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("rca-bot: agent: run: kernel_log: timeout: ")
    assert done.stderr.count("\n") == 1
    if words:
        assert json.loads(done.stdout)["status"] == "timeout"
    else:
        assert done.stdout.startswith("kernel_log on here: timeout")


def test_run_that_answers_that_the_machine_lacks_something_exits_0(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    config.write_text("")
    done = _agent(
        "run", "process_threads", "--args", '{"service": "none"}', "--json",
        RCA_AGENT_CONFIG=str(config),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["status"] == "unsupported"


def test_run_with_a_longer_window_has_the_time_that_it_takes() -> None:
    done = _agent("run", "host_network", "--args", '{"window_s": 6}', "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "ok")


def test_run_of_an_unknown_probe_fails_in_one_line() -> None:
    done = _agent("run", "no_such_probe")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rca-bot: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("args", ["{", "[]", '{"window_s": "x"}', '{"unknown": 1}'])
def test_run_with_wrong_arguments_is_a_usage_error(args: str) -> None:
    done = _agent("run", "host_cpu", "--args", args)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_list_names_every_probe() -> None:
    done = _agent("list", "--json")
    names = [entry["name"] for entry in json.loads(done.stdout)]
    assert names == sorted(names)
    assert "gpu_state" in names
    text = _agent("list").stdout
    assert all(name in text for name in names)


def test_server_with_faults_says_each_in_a_line_and_exits_1(tmp_path: Path) -> None:
    done = _agent(RCA_AGENT_CONFIG=str(tmp_path / "none.toml"), RCA_AGENT_PORT="x")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 2
    assert all(line.startswith("rca-bot: ") for line in done.stderr.splitlines())


def test_agent_loads_nothing_that_a_node_does_not_have() -> None:
    """The agent is installable alone."""
    code = (
        "import sys, bot.agent.cli, bot.agent.child; from bot.agent.serve import probe_catalogue; "
        "probe_catalogue(); print(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        cwd=Path(__file__).resolve().parents[2],
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    forbidden = {
        "slack_sdk", "slack_bolt", "redis", "jinja2", "matplotlib", "pandas", "pydantic", "yaml", "aiohttp",
    }  # fmt: skip
    assert done.returncode == 0
    assert not loaded & forbidden
