"""The audit file: nothing runs without its line, and no line can be forged, torn or lost by moving the file."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from bot.agent.audit import AuditError, AuditLog
from bot.errors import ConfigError
from tests.agent.live_agent import LiveAgent
from tests.agent.raw_wire import until

ENTRY = {"outcome": "accepted", "token_id": "t", "expires_at": 9e9}
FORGED = 'x"}\n{"outcome":"accepted","token_id":"forged","expires_at":9e9}'


def test_probe_does_not_run_while_its_line_cannot_be_written(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    """/dev/full is what a full disk is to a writer."""
    agent = agent_factory(RCA_AGENT_AUDIT="/dev/full")
    answer = agent.post("host_memory")
    assert (answer.status_code, answer.json()["reason"]) == (503, "audit_unwritable")
    assert "No space left" in answer.json()["error"]
    assert int(answer.headers["Retry-After"]) > 0
    token = {"Authorization": f"Bearer {agent.token('catalogue', {})}"}
    assert httpx.get(f"{agent.url}/v1/probes", headers=token).status_code == 503
    # A forged request is refused for what it is, and everybody still sees that the agent lives.
    assert agent.post("host_memory", token="x.y.z").status_code == 401
    assert httpx.get(f"{agent.url}/healthz").status_code == 200
    page = httpx.get(f"{agent.url}/metrics").text
    assert "probe_runs_total{" not in page
    # Two requests that stood, their two refusals, and the forged one.
    assert "rca_agent_audit_lines_lost_total 5.0" in page


def test_flood_without_a_token_is_counted_and_does_not_fill_the_disk(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory("[limits]\nrequests_per_minute = 1000\nrefused_lines_per_minute = 5\n")
    for _ in range(25):
        assert agent.post("host_memory", token="x.y.z").status_code == 401
    assert agent.post("host_memory").status_code == 200
    lines = agent.audit()
    refused = [line for line in lines if line["outcome"] == "refused"]
    # Every refusal is a line or counted on a later one; the bound refills by one in twelve seconds.
    assert len(refused) + sum(line.get("refused_before", 0) for line in lines) == 25
    assert 5 <= len(refused) < 25
    page = httpx.get(f"{agent.url}/metrics").text
    assert 'requests_refused_total{reason="malformed_token"} 25.0' in page


def test_file_that_is_rotated_by_renaming_is_made_anew(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory()
    agent.post("host_memory")
    path = agent.folder / "audit.jsonl"
    path.rename(path.with_suffix(".1"))
    assert agent.post("host_memory").status_code == 200
    assert [line["outcome"] for line in agent.audit()] == ["accepted", "finished"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    assert agent.post("host_memory").status_code == 200
    assert len(agent.audit()) == 2


def test_folder_that_was_removed_stops_the_probes_and_not_the_agent(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    agent = agent_factory(RCA_AGENT_AUDIT=str(folder / "audit.jsonl"))
    assert agent.post("host_memory").status_code == 200
    shutil.rmtree(folder)
    assert agent.post("host_memory").json()["reason"] == "audit_unwritable"
    folder.mkdir()
    assert agent.post("host_memory").status_code == 200


def test_rotation_by_truncating_goes_on_in_the_same_file(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory()
    agent.post("host_memory")
    with (agent.folder / "audit.jsonl").open("wb"):
        pass
    agent.post("host_memory")
    assert [line["outcome"] for line in agent.audit()] == ["accepted", "finished"]


def test_line_break_in_a_claim_forges_no_line(agent: LiveAgent) -> None:
    before = len(agent.audit())
    assert agent.post("host_memory", sub=FORGED, jti=f"1{FORGED}").status_code == 200
    lines = agent.audit()[before:]
    assert [line["outcome"] for line in lines] == ["accepted", "finished"]
    assert (lines[0]["subject"], lines[0]["token_id"]) == (FORGED, f"1{FORGED}")


def test_line_break_in_a_path_forges_no_line_in_the_agents_own_log(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory(RCA_AGENT_AUDIT="")
    log = agent.folder / "agent.log"
    httpx.post(f"{agent.url}/v1/probes/a%0aoutcome=accepted%0devent=audit")
    httpx.get(f"{agent.url}/v1/probes", headers={"X-Forwarded-For": "a\tb"})
    lines = [line for line in log.read_text().splitlines() if "event=audit" in line]
    assert len(lines) == 2
    assert all("outcome=refused" in line for line in lines)
    assert not any(line.startswith("outcome=accepted") for line in log.read_text().splitlines())


async def test_line_that_was_cut_off_does_not_take_the_next_with_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text(json.dumps(ENTRY) + "\n" + '{"outcome": "acc')
    audit = AuditLog(path)
    await audit.write({**ENTRY, "token_id": "u"})
    await audit.write({**ENTRY, "token_id": "v"})
    assert set(audit.recent_token_ids(0)) == {"t", "u", "v"}
    audit.close()


async def test_line_that_cannot_be_written_is_told_to_the_caller() -> None:
    audit = AuditLog(Path("/dev/full"))
    with pytest.raises(AuditError, match="No space left"):
        await audit.write(ENTRY)
    assert audit.recent_token_ids(0) == {}
    audit.close()


def test_audit_into_a_pipe_works_as_into_a_file(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    """A container's log is its standard output."""
    agent = agent_factory(RCA_AGENT_AUDIT="/dev/stdout")
    assert agent.post("host_memory").status_code == 200
    log = agent.folder / "agent.log"
    until(lambda: '"outcome": "finished"' in log.read_text(), "no audit line in the output")


def test_audit_path_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "audit.jsonl"):
        with pytest.raises(ConfigError, match="RCA_AGENT_AUDIT"):
            AuditLog(path)
