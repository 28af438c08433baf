"""`rca-bot sop` with what was accepted: a patch that git takes, whole files, and a lint that finds what fits no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bot.app import diagnosis_ports, load_catalogue
from bot.checklist import load_checklists, shipped_checklists
from bot.checklist.diffs import diff_of
from bot.checklist.writing import moved, without
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.checklist import ChecklistChange, ProposalKind
from bot.domain.text import Localized
from bot.inventory import Inventory
from bot.settings import load_settings
from tests.incidents.test_checklists import change, via
from tests.incidents.test_procedure import CAUSE
from tests.waiting import PATIENCE_SECONDS
from tests.web.door import NOW, opened, payload

NAME = "inference-latency"
PATH = f"checklists/{NAME}.yaml"
LIST = load_checklists([shipped_checklists()])[NAME]
ROOT = Path(__file__).resolve().parents[2]


def rca_bot(redis_url: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RCA_", "SLACK_"))}
    return subprocess.run(
        [sys.executable, "-m", "bot.cli", *words],
        env={**kept, "PYTHONPATH": str(ROOT), "REDIS_URL": redis_url, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


async def accept(redis_url: str) -> None:
    order = diff_of(PATH, LIST.source, moved(LIST, "disk-waits", "cpu-waits"))
    reason = Localized("order", "顺序")
    async with opened(redis_url) as door:
        await door.take("alertmanager", payload("pair_first.json"))
        both = [change("memory"), (ChecklistChange(n=2, checklist=NAME, diff=order), reason)]
        await door.services.checklists.propose("INC-1", both, via("p"))
        await door.services.checklists.accept("INC-1", 1, via("a"))
        await door.services.checklists.accept("INC-1", 2, via("b"))


async def test_patch_is_taken_by_git_and_files_are_whole(redis_url: str, tmp_path: Path) -> None:
    await accept(redis_url)
    said = rca_bot(redis_url, "sop", "patch")
    assert said.returncode == 0, said.stderr
    (tmp_path / "checklists").mkdir()
    (tmp_path / PATH).write_text(LIST.source, encoding="utf-8")
    (tmp_path / "accepted.patch").write_text(said.stdout, encoding="utf-8")
    subprocess.run(["git", "apply", "accepted.patch"], cwd=tmp_path, check=True)
    out = tmp_path / "out"
    written = rca_bot(redis_url, "sop", "patch", "--out", str(out))
    assert written.stdout.strip() == str(out / PATH)
    assert (out / PATH).read_text("utf-8") == (tmp_path / PATH).read_text("utf-8")
    assert rca_bot(redis_url, "sop", "lint", "--versions").returncode == 0


async def test_lint_names_the_version_that_the_teams_own_file_has_no_place_for(
    redis_url: str, tmp_path: Path
) -> None:
    await accept(redis_url)
    (tmp_path / "checklists").mkdir()
    (tmp_path / PATH).write_text(without(LIST, ["disk-waits"]), encoding="utf-8")
    said = rca_bot(redis_url, "sop", "lint", "--versions", RCA_KNOWLEDGE_DIR=str(tmp_path))
    assert said.returncode == 1
    assert said.stdout.startswith(f"{PATH}@v2:1: does not fit the file below"), said.stdout
    assert "@v1" not in said.stdout


async def test_branch_holds_the_accepted_files_and_a_second_push_adds_no_commit(
    redis_url: str, tmp_path: Path
) -> None:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(there), *words], capture_output=True, text=True, check=True
        )
        return done.stdout

    there = tmp_path / "knowledge.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(there)], check=True)
    more = {"RCA_DATA_DIR": str(tmp_path / "data")}
    words = ("sop", "branch", "--url", str(there), "--folder", "rca")
    await accept(redis_url)
    pushed = rca_bot(redis_url, *words, **more)
    assert pushed.returncode == 0 and "rca/knowledge: 1 files" in pushed.stdout, pushed.stderr
    assert "id: memory" in git("show", f"rca/knowledge:rca/{PATH}")
    assert "already" in rca_bot(redis_url, *words, **more).stdout
    assert git("rev-list", "--count", "rca/knowledge").strip() == "1"
    wrong = rca_bot(redis_url, "sop", "branch", "--url", "ftp://x", **more)
    assert wrong.returncode == 1 and wrong.stderr.count("\n") == 1 and "--url" in wrong.stderr


async def test_accepted_cause_is_ranked_by_a_diagnosis_from_the_shell(redis_url: str) -> None:
    name = "causes/pool_exhausted_inc_1"
    new = ChecklistChange(
        n=1, checklist=name, diff=diff_of(f"{name}.yaml", "", CAUSE), kind=ProposalKind.CAUSE
    )
    settings = load_settings({"REDIS_URL": redis_url})
    catalogue = load_catalogue(settings)
    ports = DiagnosisPorts(inventory=Inventory(), catalogue=catalogue, clock=lambda: NOW)
    async with opened(redis_url, ports) as door:
        await door.take("alertmanager", payload("pair_first.json"))
        await door.services.checklists.propose("INC-1", [(new, Localized("why", "为何"))], via("p"))
        await door.services.checklists.accept("INC-1", 1, via("a"))
    async with diagnosis_ports(settings) as known:
        assert set(known.catalogue.causes) - set(catalogue.causes) == {"pool_exhausted_inc_1"}
    gone = load_settings({"REDIS_URL": "redis://127.0.0.1:1/0"})
    async with diagnosis_ports(gone) as known:
        assert set(known.catalogue.causes) == set(catalogue.causes)
