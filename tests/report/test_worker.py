"""The worker process: replaced when it dies, stopped when it hangs, never in the way of the event loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.errors import BotError, Reason
from bot.report.worker import RenderWorker
from tests.waiting import PATIENCE_SECONDS, wait_until


def double(value: int) -> int:
    return value * 2


def fail(message: str) -> None:
    raise LookupError(message)


def hang() -> None:
    time.sleep(600)


def die_once(marker: str) -> str:
    path = Path(marker)
    if not path.exists():
        path.write_text("died")
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def worker() -> Iterator[RenderWorker]:
    made = RenderWorker(name="test")
    yield made
    made.close()


async def test_result_and_error_come_back(worker):
    assert await worker.run(double, 21, timeout_seconds=PATIENCE_SECONDS) == 42
    with pytest.raises(LookupError, match="not here"):
        await worker.run(fail, "not here", timeout_seconds=PATIENCE_SECONDS)


async def test_worker_that_was_killed_is_replaced(worker, tmp_path):
    assert (
        await worker.run(die_once, str(tmp_path / "marker"), timeout_seconds=PATIENCE_SECONDS)
        == "alive"
    )


async def test_worker_that_dies_twice_is_one_clear_line(worker):
    with pytest.raises(BotError, match="test: the worker process died twice"):
        await worker.run(die, timeout_seconds=PATIENCE_SECONDS)
    assert await worker.run(double, 1, timeout_seconds=PATIENCE_SECONDS) == 2


async def test_worker_that_hangs_is_stopped_and_the_next_call_works(worker):
    assert await worker.run(double, 1, timeout_seconds=PATIENCE_SECONDS) == 2
    with pytest.raises(BotError) as caught:
        await worker.run(hang, timeout_seconds=0.5)
    assert caught.value.reason is Reason.TIMEOUT
    assert await worker.run(double, 2, timeout_seconds=PATIENCE_SECONDS) == 4


def test_worker_of_a_killed_owner_ends_by_itself():
    script = (
        "import asyncio, os, sys, time\n"
        "from bot.report.worker import RenderWorker\n"
        "if __name__ == '__main__':\n"
        "    worker = RenderWorker(name='t')\n"
        "    print(asyncio.run(worker.run(os.getpid, timeout_seconds=600)), flush=True)\n"
        "    time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    owner.stdout.close()

    def is_gone() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        return state == "Z"

    wait_until(is_gone, "the worker ends with its owner")
