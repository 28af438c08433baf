"""A demo that is stopped takes everything that it started with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.demo.processes import left_over
from tests.waiting import PATIENCE_SECONDS


def test_interrupted_demo_leaves_no_process_behind(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [
            sys.executable, "-m", "bot.cli", "demo",
            "--port", "0", "--data-dir", str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    )  # fmt: skip
    assert demo.stdout is not None
    said = ""
    while "page " not in said:
        line = demo.stdout.readline()
        assert line, f"the demo ended early: {said}"
        said += line
    assert left_over(tmp_path) != []

    demo.send_signal(signal.SIGTERM)
    demo.wait(PATIENCE_SECONDS)
    demo.stdout.close()

    assert left_over(tmp_path) == []
