"""The whole demo from the built wheel, outside the tree, headless, in each of its variants.

Run one after another and not beside other tests: these measure latencies of tens of milliseconds, and a test beside
them would be a neighbour that takes their CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.demo.processes import left_over
from tests.waiting import PATIENCE_SECONDS

MINUTES = 60

pytestmark = [pytest.mark.alone, pytest.mark.timeout(9 * MINUTES)]


MAIN = "import sys; from bot.cli import main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel, and nothing of the source tree."""
    root = Path(__file__).resolve().parents[2]
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(out), str(root)],
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    [wheel] = out.glob("*.whl")
    unpacked = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    return unpacked


def play(site: Path, fault: str, tmp_path: Path, *more: str) -> dict[str, Any]:
    """Plays one variant to its end; gives the JSON report."""
    demo = subprocess.Popen(
        [
            sys.executable, "-P", "-c", MAIN, "demo", "--headless",
            "--fault", fault, "--port", "0", "--data-dir", str(tmp_path), *more,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    try:
        said, complaint = demo.communicate(timeout=8 * MINUTES)
    finally:
        demo.kill()
    assert demo.returncode == 0, f"{said}\n{complaint}"
    paths = [Path(line) for line in said.splitlines() if line.startswith("/")]
    assert [path.suffix for path in paths] == [".md", ".html", ".pdf", ".json"]
    assert all(path.stat().st_size > 1000 for path in paths)
    assert left_over(tmp_path) == []
    report: dict[str, Any] = json.loads(paths[-1].read_text())
    assert report["incident"]["status"] == "resolved"
    return report


def test_pinned_memory_contention_is_found_fixed_and_verified(site: Path, tmp_path: Path) -> None:
    report = play(site, "pinned", tmp_path)

    cause = report["root_cause"]
    assert cause["cause"] == "pinned_memory_contention"
    assert cause["trigger"]["change"] == "config-2207"
    assert report["fix"]["verified"] is True
    assert all(item["status"] == "accepted" for item in report["checklist_changes"])
    assert report["checklist_changes"]
    cited = {item["source"] for item in report["evidence"]}
    assert {"metrics", "traces", "probe"} <= cited
    assert report["root_cause"]["evidence"]
    assert report["experiments"]
    assert all(item["predicted"] for item in report["experiments"])


@pytest.mark.chaos
def test_cpu_contention_is_named_instead(site: Path, tmp_path: Path) -> None:
    report = play(site, "cpu", tmp_path)

    assert report["root_cause"]["cause"] == "cpu_contention"
    assert report["fix"]["verified"] is True


def test_without_a_fault_nothing_is_established(site: Path, tmp_path: Path) -> None:
    report = play(site, "none", tmp_path, "--locale", "zh-CN")

    assert report["root_cause"]["cause"] == "not_established"
    assert not any(entry["kind"] == "alert" for entry in report["timeline"])
