"""A closed incident becomes a case that the engine judges alike: masked, readable, and hard to break."""

from __future__ import annotations

import asyncio
import lzma
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.cause import LogPlace
from bot.diagnosis.as_json import diagnosis_to_json
from bot.diagnosis.engine import assess, diagnose
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.hypothesis import Diagnosis
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.errors import BotError
from bot.incidents.opening import Opening
from bot.incidents.responding import Via
from bot.jobs import requests
from bot.jobs.collecting import Collecting
from bot.learning.case_folder import read_case
from bot.learning.cases import Case, case_from, files_of, replay
from bot.learning.drills.exercise import exercise_ports
from bot.learning.drills.playing import ports_of
from bot.learning.drills.script import Said, Stage
from bot.learning.drills.writing import write_script
from bot.learning.saving import case_of, masked_files, write_case
from bot.store import timeline
from bot.store.queue import Claim
from tests.diagnosis.worlds import CATALOGUE, CPU, LOCK, PINNED, SERVICE, SURGE, world
from tests.learning.test_drills import INVENTORY, real
from tests.learning.written import NOW, ledger
from tests.waiting import PATIENCE_SECONDS
from tests.web.door import Door, opened

SECRET = "sk-abcdefghijklmnopqrstuvwx"
CAUSE = "lock_contention"


def played(cause: str = CAUSE) -> DiagnosisPorts:
    """Sources that hold a real fault for a real incident: those of an exercise, which the incident is not."""
    stage = Stage(
        service="translate-api", nodes=("gpu-1", "gpu-2"), peers=("store",), matchers={"app": "translate"},
        began=NOW, recovered=None, seed=5,
    )  # fmt: skip
    script = write_script(CATALOGUE.causes[cause], CATALOGUE, stage)
    said = Said(
        text=f"login of lin@example.com from 10.1.2.3 with {SECRET} waited to enter",
        place=LogPlace.SERVICE,
        count=3,
    )
    script = replace(script, lines=(*script.lines, said))
    bare = DiagnosisPorts(inventory=INVENTORY, catalogue=CATALOGUE, clock=lambda: NOW)
    return replace(ports_of(script, stage, bare, lambda: NOW), inventory=INVENTORY)


@asynccontextmanager
async def closed(redis_url: str, *, is_over: bool = True):
    async with opened(redis_url, played()) as door:
        services = door.services
        taken = await services.openings.open(
            Opening(
                title=f"P99 is high, token={SECRET}", channel="C1", severity=Severity.SEV2, locale=Locale.EN,
                services=("translate-api",), at=NOW,
            ),
            once="one",
        )  # fmt: skip
        via = Via(by="U1", at=NOW, key="s")
        await services.responding.declare_symptom(
            taken.incident_id, "P99 is 600 ms, said by lin@example.com", via, metric=None, scope=None, since=None
        )  # fmt: skip
        await collect(door, taken.incident_id)
        incident = (await services.journal.load(taken.incident_id)).incident
        first = incident.hypotheses[0]
        text = Localized.verbatim("x")
        await services.responding.confirm_cause(
            taken.incident_id, first, Via(by="U1", at=NOW, key="c"), trigger=first.trigger, deep_cause=text, prevention=text
        )  # fmt: skip
        if is_over:
            await door.resolve(taken.incident_id)
        yield door, taken.incident_id


async def collect(door: Door, incident_id: str) -> None:
    job = requests.collect(incident_id, reason="symptom", by="U1")
    await Collecting(door.services).collect(Claim(job=job, attempt=1, token="t"))


def verdict(diagnosis: Diagnosis) -> Any:
    body = diagnosis_to_json(diagnosis, locale=Locale.EN)
    return [
        (item["cause"], item["probability"], item["node"], item["chain"])
        for item in body["hypotheses"]
    ]


async def test_a_saved_incident_is_judged_alike_by_the_engine(
    redis_url: str, tmp_path: Path
) -> None:
    async with closed(redis_url) as (door, incident_id):
        incident = (await door.services.journal.load(incident_id)).incident
        assert incident.hypotheses[0].cause == CAUSE
        case = await case_of(door.store, incident)
        folder = write_case(case, tmp_path)
        assert folder.name == f"{incident_id}.case"
        again = read_case(folder)
        found = replay(again, CATALOGUE)
        assert again.truth is not None
        assert again.truth.cause == found.hypotheses[0].cause == CAUSE
        assert found.hypotheses[0].chain == again.truth.chain
        then = [(item.cause, item.node, item.chain) for item in incident.hypotheses]
        assert [(item.cause, item.node, item.chain) for item in found.hypotheses] == then
        for now, before in zip(found.hypotheses, incident.hypotheses, strict=True):
            assert now.probability == pytest.approx(before.probability, abs=1e-4)


async def test_no_secret_and_no_person_is_in_any_file(redis_url: str, tmp_path: Path) -> None:
    async with closed(redis_url) as (door, incident_id):
        case = await case_of(door.store, (await door.services.journal.load(incident_id)).incident)
        files, counts = masked_files(case)
        everything = b"".join(files.values()).decode()
        for secret in (SECRET, "lin@example.com", "10.1.2.3"):
            assert secret in b"".join(files_of(case).values()).decode()
            assert secret not in everything
        assert counts["secret"] == 1
        assert masked_files(case)[0] == files, "the same case gives the same bytes"


async def test_words_that_were_taken_back_are_not_in_the_case(redis_url: str) -> None:
    async with closed(redis_url) as (door, incident_id):
        raw = await door.store.blob(f"rca:inc:{incident_id}:readings")
        assert raw is not None
        entries = (await door.services.journal.load(incident_id)).entries
        symptom = next(entry for entry in entries if entry.kind.value == "symptom")
        await door.store.commit(timeline.withhold(incident_id, [symptom.seq]), doing="test")
        case = await case_of(door.store, (await door.services.journal.load(incident_id)).incident)
        assert b"600 ms, said by" not in b"".join(files_of(case).values())


async def test_an_open_incident_is_no_case_yet(redis_url: str) -> None:
    async with closed(redis_url, is_over=False) as (door, incident_id):
        incident = (await door.services.journal.load(incident_id)).incident
        with pytest.raises(BotError, match="still open; resolve it first"):
            await case_of(door.store, incident)


async def test_readings_after_the_cause_was_known_do_not_replace_those_before(
    redis_url: str,
) -> None:
    async with closed(redis_url, is_over=False) as (door, incident_id):
        before = await door.store.blob(f"rca:inc:{incident_id}:readings")
        door.pass_time(minutes=5)
        await collect(door, incident_id)
        assert await door.store.blob(f"rca:inc:{incident_id}:readings") == before


async def test_an_exercise_replays_a_saved_case_and_the_engine_finds_the_same(
    redis_url: str, tmp_path: Path
) -> None:
    async with closed(redis_url) as (door, incident_id):
        case = await case_of(door.store, (await door.services.journal.load(incident_id)).incident)
        folder = write_case(case, tmp_path / "cases")
    made = ledger("INC-9", drill=CAUSE, days_ago=0.0, is_over=False).incident
    assert made.drill is not None
    later = NOW + timedelta(days=3, minutes=4)
    began = NOW + timedelta(days=3)
    incident = replace(made, drill=replace(made.drill, case=folder.name), opened_at=began)
    ports = exercise_ports(real(), incident, lambda: later, tmp_path)
    found = await diagnose(
        DiagnosisRequest(service="translate-api", at=later, deadline_seconds=30), ports
    )
    assert found.hypotheses[0].cause == CAUSE


WORLDS = {"cpu": CPU, "lock": LOCK, "pinned": PINNED, "surge": SURGE}


@pytest.mark.parametrize("name", WORLDS)
def test_files_hold_everything_that_the_judgement_needs(name: str) -> None:
    collected = world(WORLDS[name])
    case = Case(id="INC-1", title="t", service=SERVICE, collected=collected, alert={})
    files = files_of(case)
    assert verdict(replay(case_from(files, "x"), CATALOGUE)) == verdict(
        assess(collected, CATALOGUE, SERVICE)
    )
    assert files_of(case_from(files, "x")) == files


@pytest.mark.parametrize(
    "name", ["case.json", "metrics.jsonl", "logs.jsonl", "probes.json", "changes.jsonl"]
)
@pytest.mark.parametrize("content", [b"{", b'{"a": 1}', b"\xff\xfe"])
def test_a_broken_file_is_named_in_one_line(name: str, content: bytes) -> None:
    case = Case(id="INC-1", title="t", service=SERVICE, collected=world(CPU), alert={})
    with pytest.raises(BotError) as caught:
        case_from({**files_of(case), name: content}, "INC-1.case")
    assert f"INC-1.case/{name}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_may_be_compressed_and_a_bomb_is_refused(tmp_path: Path) -> None:
    case = Case(id="INC-1", title="t", service=SERVICE, collected=world(CPU), alert={})
    for name, content in files_of(case).items():
        (tmp_path / f"{name}.xz").write_bytes(lzma.compress(content))
    assert files_of(read_case(tmp_path)) == files_of(case)
    (tmp_path / "logs.jsonl.xz").write_bytes(lzma.compress(bytes(80 * 1024 * 1024)))
    with pytest.raises(BotError, match="larger than 64 MiB"):
        read_case(tmp_path)


def test_a_folder_that_is_none_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BotError, match="cannot be read"):
        read_case(tmp_path / "nowhere")


async def test_the_shell_writes_the_case_and_says_where(redis_url: str, tmp_path: Path) -> None:
    async with closed(redis_url) as (_, incident_id):
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("RCA_")},
            "REDIS_URL": redis_url,
        }
        run = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "bot.cli", "export", incident_id, "--format", "json,case", "--out", str(tmp_path)],
            env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        assert set(run.stdout.split()) == {
            str(tmp_path / f"{incident_id}.json"),
            str(tmp_path / f"{incident_id}.case"),
        }
        assert read_case(tmp_path / f"{incident_id}.case").truth is not None
