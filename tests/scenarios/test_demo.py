"""The demo from the built wheel, outside the tree: the same run with three truths, each found by the evidence alone."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from tests.scenarios.rig import ROOT

# Each run measures latency on this machine: another test beside it would be a neighbour that takes its CPU.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The unpacked wheel and nothing of the source tree."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(out), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    [wheel] = out.glob("*.whl")
    unpacked = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    return unpacked


def play(site, tmp_path, fault, locale="en"):
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(site),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    script = "import sys; from bot.cli import main; main(sys.argv[1:])"
    words = ["demo", "--headless", "--fault", fault, "--locale", locale, "--data-dir", str(tmp_path)]
    answer = subprocess.run(
        [sys.executable, "-P", "-c", script, *words],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    told = f"{answer.stdout}\n{answer.stderr}"
    assert answer.returncode == 0, told
    paths = [line for line in answer.stdout.splitlines() if line.startswith("/")]
    assert sorted(path.rpartition(".")[2] for path in paths) == ["html", "json", "md", "pdf"], told
    contents = {}
    for path in paths:
        with open(path, "rb") as file:
            contents[path.rpartition(".")[2]] = file.read()
    return json.loads(contents["json"]), contents, told


def test_the_lock_of_the_pinned_pool_is_found_fixed_and_learned_from(site, tmp_path):
    report, contents, told = play(site, tmp_path, "pinned")
    assert report["root_cause"]["cause"] == "pinned_memory_contention", told
    # The guilty change is three days old; today's deploy of another service is innocent.
    assert "pinned" in json.dumps(report["root_cause"]["trigger"])
    assert report["root_cause"]["evidence"]
    cited = {item["id"]: item["source"] for item in report["evidence"]}
    assert {"metrics", "probe", "traces"} <= set(cited.values())
    assert report["incident"]["status"] == "resolved"
    assert report["fix"]["verified"] is True, told
    assert report["durations"]["time_to_verified_fix_s"] > 0
    assert {item["status"] for item in report["checklist_changes"]} == {"accepted"}
    assert report["experiments"], told
    assert all(item["predicted"] for item in report["experiments"])
    assert b"stand-in" in contents["html"]
    assert contents["pdf"].startswith(b"%PDF-")


def test_without_a_fault_nothing_is_established(site, tmp_path):
    report, _, told = play(site, tmp_path, "none", locale="zh-CN")
    assert report["root_cause"]["cause"] == "not_established", told


def test_busy_neighbours_are_named_as_cpu_contention(site, tmp_path):
    report, _, told = play(site, tmp_path, "cpu")
    assert report["root_cause"]["cause"] == "cpu_contention", told
