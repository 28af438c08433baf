"""Real faults on this machine: `make lab`. They load the machine, so the ordinary suite leaves them out."""

from __future__ import annotations

from pathlib import Path

import pytest

LAB = Path(__file__).parent
BEYOND = (
    "disk latency of a device: a virtual disk cannot be slowed from inside; tests/probes covers it from a recorded tree",
    "per-cgroup pressure and quota of cgroup v2: only where the machine has v2; tests/probes covers v2 from a recorded tree",
    "netem delay: this lab drops packets with nftables, which needs no module",
    "GPU faults: tests/device covers them with a stand-in library",
)


def _is_named(config: pytest.Config) -> bool:
    named = [Path(config.invocation_params.dir, word.partition("::")[0]) for word in config.args]
    return any(LAB in (path.resolve(), *path.resolve().parents) for path in named)


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Collected only when the lab itself is named."""
    return None if _is_named(config) else True


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says what no test here covers, and why."""
    if not _is_named(config):
        return
    terminalreporter.section("beyond this lab")
    for line in BEYOND:
        terminalreporter.write_line(line)
