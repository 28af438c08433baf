import os
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from bot.demo.processes import Program, RunningProgram, is_free
from bot.errors import BotError
from tests.conftest import free_port
from tests.waiting import PATIENCE_SECONDS

SERVE = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()"


def program(tmp_path: Path, code: str, *arguments: str, **more: object) -> Program:
    return Program(
        name="sample",
        command=(sys.executable, "-c", code, *arguments),
        log=tmp_path / "sample.out",
        **more,  # type: ignore[arg-type]
    )


async def test_program_that_answers_is_ready_and_is_gone_after_stop(tmp_path: Path) -> None:
    port = free_port()
    wanted = program(tmp_path, SERVE, str(port), ready_url=f"http://127.0.0.1:{port}/")
    running = RunningProgram(wanted)
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            await running.wait_ready(client)
        assert not is_free(port)
    finally:
        running.stop()

    assert is_free(port)
    assert not psutil.pid_exists(running.pid)


async def test_program_that_ends_at_once_is_named_with_its_log(tmp_path: Path) -> None:
    running = RunningProgram(
        program(tmp_path, "raise SystemExit('no luck')", ready_url="http://127.0.0.1:1/")
    )

    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(BotError) as fault:
            await running.wait_ready(client)

    assert str(fault.value) == f"sample ended with code 1; see {tmp_path / 'sample.out'}"
    assert (tmp_path / "sample.out").read_text() == "no luck\n"


async def test_program_that_never_answers_is_given_up_at_its_deadline(tmp_path: Path) -> None:
    running = RunningProgram(
        program(
            tmp_path,
            "import time; time.sleep(600)",
            ready_url="http://127.0.0.1:1/",
            start_seconds=0.5,
        )
    )
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            with pytest.raises(BotError, match=r"did not come up in 0\.5 s; see "):
                await running.wait_ready(client)
    finally:
        running.stop()


def test_program_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    running = RunningProgram(program(tmp_path, deaf, stop_seconds=0.5))
    log = tmp_path / "sample.out"
    while not log.read_text():
        assert running.is_running

    running.stop()

    assert not running.is_running


def test_settings_of_another_bot_do_not_reach_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RCA_PORT", "1")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    monkeypatch.setenv("KEPT", "yes")
    show = "import os; print(sorted(k for k in os.environ if k in ('RCA_PORT', 'REDIS_URL', 'KEPT', 'RCA_OWN')))"
    running = RunningProgram(program(tmp_path, show, environment={"RCA_OWN": "x"}))

    running._process.wait(PATIENCE_SECONDS)

    assert (tmp_path / "sample.out").read_text().strip() == "['KEPT', 'RCA_OWN']"


def test_neighbour_ends_with_its_parent(tmp_path: Path) -> None:
    parent = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-m', 'bot.demo.neighbour', "
        "'--threads', '2']); print(child.pid, flush=True); sys.stdin.read()"
    )
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
    )
    assert process.stdout is not None
    assert process.stdin is not None
    child = psutil.Process(int(process.stdout.readline()))
    while child.cpu_times().user < 0.2:
        assert child.is_running()

    process.kill()
    process.wait(PATIENCE_SECONDS)
    process.stdin.close()
    process.stdout.close()

    gone, alive = psutil.wait_procs([child], timeout=PATIENCE_SECONDS)
    assert (len(gone), alive) == (1, [])
