"""Which processes a demo has left behind."""

from __future__ import annotations

import os
from pathlib import Path

import psutil


def left_over(directory: Path) -> list[list[str]]:
    """Command lines of processes that still work in the directory of the run."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if any(str(directory) in word for word in command) and process.pid != os.getpid():
            found.append(command)
    return found
