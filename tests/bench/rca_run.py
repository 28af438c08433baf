"""`python -m tests.bench.rca_run BENCH OUT [SCORER]`: public benchmarks through the engine; the answers are never opened."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bot.diagnosis.changes.guilt import rank_changes
from bot.diagnosis.components.ranking import rank_components
from tests.bench import rca_nezha, rca_petshop, rca_rootcausebench
from tests.bench.rca_files import cases_of

Ranking = Callable[[Path, Path, dict[str, Any]], list[str]]


def _components(evidence_of: Callable[..., Any]) -> Ranking:
    def ranking(bench: Path, folder: Path, incident: dict[str, Any]) -> list[str]:
        return [item.name for item in rank_components(evidence_of(bench, folder, incident))]

    return ranking


def _changes(_bench: Path, folder: Path, incident: dict[str, Any]) -> list[str]:
    changes, failing = rca_rootcausebench.inputs_of(folder, incident)
    return [item.id for item in rank_changes(changes, failing)]


BENCHES: dict[str, Ranking] = {
    "petshop": _components(rca_petshop.evidence_of),
    "nezha": _components(rca_nezha.evidence_of),
    "rootcausebench": _changes,
}


def main(root: Path, out: Path, scorer: Path | None) -> int:
    out.mkdir(parents=True, exist_ok=True)
    for name, ranking in BENCHES.items():
        bench = root / name
        if not bench.is_dir():
            sys.stderr.write(f"bench-rca: {bench}: no such folder\n")
            return 1
        began = time.monotonic()
        predictions = {
            incident["case_id"]: ranking(bench, folder, incident)
            for folder, incident in cases_of(bench)
        }
        target = out / f"{name}.json"
        target.write_text(
            json.dumps(predictions, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        seconds = time.monotonic() - began
        sys.stdout.write(f"{target}: {len(predictions)} cases, {seconds:.1f} s\n")
        sys.stdout.flush()
        answers = root / name / "truth.json"
        if scorer is not None and answers.exists():
            subprocess.run(
                [sys.executable, str(scorer), "--truth", str(answers), "--pred", str(target)],
                check=True,
            )
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python -m tests.bench.rca_run BENCH OUT [SCORER]")
    sys.exit(
        main(
            Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) == 4 else None
        )
    )
