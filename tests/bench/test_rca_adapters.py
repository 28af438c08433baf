"""The public benchmarks' adapters only map files, and the answers stay shut."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ADAPTERS = ("rca_files", "rca_petshop", "rca_nezha", "rca_rootcausebench")
EVIDENCE_ONLY = {
    "bot.diagnosis.components.evidence": {
        "Aspect", "Call", "CallSide", "ComponentEvidence", "EventCount", "EventKind", "Gauge", "SpanRole",
        "SpanTime", "Track",
    },
    "bot.diagnosis.components.graph": {"DependencyGraph"},
    "bot.diagnosis.changes.guilt": {"Candidate", "Failing"},
}  # fmt: skip
PUBLIC_DOORS = {
    "bot.diagnosis.components.ranking": {"rank_components"},
    "bot.diagnosis.changes.guilt": {"rank_changes"},
}


def tree_of(name: str) -> ast.Module:
    return ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))


def engine_names(tree: ast.Module) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bot.diagnosis"):
            found.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("bot.diagnosis") for alias in node.names)
    return found


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_know_only_the_types_of_evidence(name: str) -> None:
    for module, names in engine_names(tree_of(name)).items():
        assert names <= EVIDENCE_ONLY.get(module, set()), f"{name} takes {names} from {module}"


def test_the_runner_knows_only_the_public_doors() -> None:
    for module, names in engine_names(tree_of("rca_run")).items():
        assert names <= PUBLIC_DOORS.get(module, set())


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_weigh_nothing(name: str) -> None:
    """No threshold, no choice by size: nothing is compared with a number, and nothing is ordered by a key."""
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            assert not any(
                isinstance(side, ast.Constant) and isinstance(side.value, int | float)
                for side in sides
            ), ast.unparse(node)
        if isinstance(node, ast.Call):
            assert all(keyword.arg != "key" for keyword in node.keywords), ast.unparse(node)


@pytest.mark.parametrize("name", [*ADAPTERS])
def test_adapters_never_name_the_answers(name: str) -> None:
    texts = [node.value for node in ast.walk(tree_of(name)) if isinstance(node, ast.Constant)]
    assert not any(isinstance(text, str) and "truth" in text and " " not in text for text in texts)


def packed(path: Path, header: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


def small_benches(root: Path) -> None:
    """One made-up case of each benchmark, without answers."""
    shop = root / "petshop/cases/p-1"
    names = ["web", "pay", "bank"]
    wide = ["timestamp", "service", "metric", "value"]

    def level(name: str, sick: bool) -> dict[str, float]:
        slow = {"web": 0.9, "pay": 0.8, "bank": 0.75}
        calm = {"web": 0.2, "pay": 0.1, "bank": 0.05}
        return {
            "latency_Average": (slow if sick else calm)[name],
            "availability_Average": 100,
            "requests_Sum": 100,
        }

    packed(
        root / "petshop/baseline/calm.csv.gz", wide,
        [[300 * at, n, m, v + at % 3 * 0.001] for at in range(40) for n in names for m, v in level(n, False).items()],
    )  # fmt: skip
    packed(
        shop / "metrics.csv.gz", wide,
        [[30_000 + 300 * at, n, m, v] for at in range(5) for n in names for m, v in level(n, at >= 2).items()],
    )  # fmt: skip
    (shop / "graph.json").write_text(
        json.dumps({"nodes": names, "edges": [["web", "pay"], ["pay", "bank"]]})
    )
    (shop / "incident.json").write_text(
        json.dumps(
            {
                "case_id": "p-1", "candidates": names, "baseline_file": "petshop/baseline/calm.csv.gz",
                "alert": {"metric": "latency_Average", "service": "web", "timestamp": 30_700},
                "incident_window": {"start": 30_000, "end": 31_200, "step_s": 300},
            }
        )
    )  # fmt: skip
    nezha = root / "nezha/cases/n-1"
    packed(
        nezha / "metrics.csv.gz", wide,
        [[60 * at, n, "CpuUsageRate(%)", 95 if n == "pay" and at > 30 else 10 + at % 2] for at in range(34) for n in names],
    )  # fmt: skip
    (nezha / "graph.json").write_text(json.dumps({"edges": [["web", "pay"], ["pay", "bank"]]}))
    (nezha / "incident.json").write_text(
        json.dumps(
            {
                "case_id": "n-1", "candidates": names, "baseline_files": [], "known_past_incident_windows": [],
                "incident_window": {"start": 1_800, "end": 1_980, "step_s": 60},
            }
        )
    )  # fmt: skip
    code = root / "rootcausebench/cases/r-1"
    code.mkdir(parents=True)
    alert = {
        "service": "pay", "metric": "error_ratio", "summary": "calls to bank: deadline exceeded",
        "fired_at": "2026-11-30T12:00:00Z",
    }  # fmt: skip
    commits = [
        {"sha": "a" * 40, "timestamp": "2026-11-30T11:00:00Z", "message": "tidy", "files_changed": ["pay/client.go"],
         "diff": "-timeout = 5 * time.Second\n+timeout = 90 * time.Millisecond"},
        {"sha": "b" * 40, "timestamp": "2026-11-30T11:55:00Z", "message": "docs", "files_changed": ["README.md"], "diff": None},
    ]  # fmt: skip
    contents = {
        "incident": {"case_id": "r-1", "alert": alert}, "commits": commits, "patterns": [], "traces": [],
        "deploys": [{"commit_sha": "b" * 40, "service": "pay", "timestamp": "2026-11-30T11:58:00Z"}],
    }  # fmt: skip
    for name, content in contents.items():
        (code / f"{name}.json").write_text(json.dumps(content))
    (code / "metrics.csv").write_text("timestamp,service,metric,value\n")


def test_a_run_writes_one_file_a_benchmark_and_needs_no_answers(tmp_path: Path) -> None:
    small_benches(tmp_path / "bench")
    subprocess.run(
        [sys.executable, "-m", "tests.bench.rca_run", str(tmp_path / "bench"), str(tmp_path / "out")],
        check=True, cwd=HERE.parents[1], capture_output=True,
    )  # fmt: skip
    first = {
        name: json.loads((tmp_path / "out" / f"{name}.json").read_text())
        for name in ("petshop", "nezha", "rootcausebench")
    }
    assert first["petshop"]["p-1"] == ["bank", "pay", "web"]
    assert first["nezha"]["n-1"][0] == "pay"
    assert first["rootcausebench"]["r-1"] == ["a" * 40, "none", "b" * 40]
