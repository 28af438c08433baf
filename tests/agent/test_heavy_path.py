"""A heavy probe from approval to the fetched file, over the wire."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.domain.finding import ProbeResult, ProbeStatus
from bot.errors import EvidenceError
from bot.inventory import Inventory, Node
from bot.sources.node_agent import NodeAgents
from tests.agent.live_agent import LiveAgent, start_agent
from tests.agent.live_service import start_service
from tests.agent.raw_wire import until

ARGS = {"service": "svc", "seconds": 1.0, "tool": "py-spy"}


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAgent]:
    """An agent that allows heavy probes, beside a service."""
    folder = tmp_path_factory.mktemp("heavy")
    service = start_service(folder / "svc", "contended")
    agent = start_agent(
        folder / "agent",
        '[probes]\nheavy = ["profile", "golden_set"]\n[limits]\nrequests_per_minute = 100000\n'
        f'[paths]\nartefacts = "{folder}/profiles"\n{service.config()}',
    )
    yield agent
    agent.stop()
    service.stop()


def _profiles(agent: LiveAgent) -> Path:
    return agent.folder.parent / "profiles"


def _bot(agent: LiveAgent) -> NodeAgents:
    return NodeAgents(
        Inventory(nodes={agent.node: Node(name=agent.node, url=agent.url)}), agent.key_pem
    )


async def _with_bot(agent: LiveAgent, work: Callable[[NodeAgents], Any]) -> Any:
    bot = _bot(agent)
    try:
        return await work(bot)
    finally:
        await bot.aclose()


def _run(agent: LiveAgent, probe: str = "profile", args: dict[str, Any] | None = None) -> Any:
    return asyncio.run(
        _with_bot(
            agent,
            lambda bot: bot.run(
                agent.node, probe, ARGS if args is None else args,
                subject="U0SRE", timeout_seconds=30, approved_by="U0LEAD",
            ),
        )
    )  # fmt: skip


def _place(agent: LiveAgent, size: int, age_seconds: float = 0) -> dict[str, Any]:
    content = os.urandom(size)
    _profiles(agent).mkdir(exist_ok=True)
    path = _profiles(agent) / os.urandom(16).hex()
    path.write_bytes(content)
    os.utime(path, (time.time() - age_seconds,) * 2)
    return {"id": path.name, "bytes": size, "sha256": hashlib.sha256(content).hexdigest()}


def _fetch(agent: LiveAgent, artefact: dict[str, Any]) -> bytes:
    content: bytes = asyncio.run(
        _with_bot(agent, lambda bot: bot.artefact(agent.node, artefact, subject="U0SRE"))
    )
    return content


def test_heavy_probe_without_approval_runs_nothing(heavy: LiveAgent) -> None:
    before = len(heavy.audit())
    answer = heavy.post("profile", ARGS)
    assert (answer.status_code, answer.json()["reason"]) == (403, "no_approval")
    assert [line["outcome"] for line in heavy.audit()[before:]] == ["refused"]


def test_approved_heavy_probe_is_denied_where_the_node_does_not_list_it(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory()
    result = agent.post("profile", ARGS, approved_by="U0LEAD").json()
    assert (result["status"], result["findings"]) == ("denied", [])
    assert "[probes] heavy" in result["error"]


def test_approved_profile_is_fetched_whole_and_the_audit_names_who_approved(
    heavy: LiveAgent,
) -> None:
    before = len(heavy.audit())
    result: ProbeResult = _run(heavy)
    assert result.status is ProbeStatus.OK, result.error
    assert "shared" in json.loads(_fetch(heavy, result.data["artefact"]))
    lines = heavy.audit()[before:]
    assert lines[0]["approved_by"] == "U0LEAD"
    assert [line["probe"] for line in lines if line["outcome"] == "accepted"][1:] == [
        "artefact"
    ] * (len(lines) - 2)


def test_large_file_comes_in_pieces_with_its_digest(heavy: LiveAgent) -> None:
    artefact = _place(heavy, 700_000)
    before = len(heavy.audit())
    content = _fetch(heavy, artefact)
    assert hashlib.sha256(content).hexdigest() == artefact["sha256"]
    assert len(heavy.audit()) - before == 3


def test_file_that_changed_on_the_way_is_not_accepted(heavy: LiveAgent) -> None:
    artefact = _place(heavy, 1000) | {"sha256": "0" * 64}
    with pytest.raises(EvidenceError, match="digest"):
        _fetch(heavy, artefact)


def test_file_that_is_too_old_or_never_was_is_not_there(heavy: LiveAgent) -> None:
    old = _place(heavy, 10, age_seconds=4000)
    for artefact in (old, old | {"id": "0" * 32}):
        with pytest.raises(EvidenceError):
            _fetch(heavy, artefact)
    assert not (_profiles(heavy) / old["id"]).exists()


@pytest.mark.parametrize(
    ("name", "offset"),
    [("../agent/rca-agent.key", 0), ("..%2fagent%2frca-agent.key", 0), ("/etc/passwd", 0), ("0" * 32, "x")],
    ids=["climbing", "encoded", "absolute", "no-number"],
)  # fmt: skip
def test_hostile_name_of_a_file_reads_nothing(heavy: LiveAgent, name: str, offset: Any) -> None:
    args = {"id": name, "offset": offset}
    answer = httpx.get(
        f"{heavy.url}/v1/artefacts/{name}?offset={offset}",
        headers={"Authorization": f"Bearer {heavy.token('artefact', args)}"},
    )
    assert answer.status_code in {400, 403, 404}
    assert "PRIVATE" not in answer.text
    assert "root:" not in answer.text


def test_token_of_one_piece_does_not_open_another(heavy: LiveAgent) -> None:
    artefact = _place(heavy, 100)
    token = heavy.token("artefact", {"id": artefact["id"], "offset": 0})
    for query, headers in (("offset=50", token), ("offset=0", None)):
        answer = httpx.get(
            f"{heavy.url}/v1/artefacts/{artefact['id']}?{query}",
            headers={"Authorization": f"Bearer {headers}"} if headers else {},
        )
        assert answer.status_code in {401, 403}


def test_heavy_probes_of_a_node_take_turns(heavy: LiveAgent) -> None:
    async def both(bot: NodeAgents) -> list[ProbeResult]:
        ask = {"subject": "U0", "timeout_seconds": 30.0, "approved_by": "U0LEAD"}
        profile = asyncio.create_task(bot.run(heavy.node, "profile", ARGS, **ask))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        golden = asyncio.create_task(bot.run(heavy.node, "golden_set", {"service": "svc"}, **ask))  # type: ignore[arg-type]
        return list(await asyncio.gather(profile, golden))

    profile, golden = asyncio.run(_with_bot(heavy, both))
    assert {profile.status, golden.status} == {ProbeStatus.OK}
    # Whichever came first, the other's time holds the first one's.
    assert max(profile.duration_seconds, golden.duration_seconds) > 1.0
    ended = [
        result.started_at.timestamp() + result.duration_seconds for result in (profile, golden)
    ]
    assert abs(ended[0] - ended[1]) > 0.05


def test_folder_of_profiles_keeps_only_the_newest(heavy: LiveAgent) -> None:
    for age in range(10, 20):
        _place(heavy, 10, age_seconds=age)
    assert _run(heavy).status is ProbeStatus.OK
    assert len(list(_profiles(heavy).iterdir())) <= 8


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_under_a_profiles_name_is_not_fetched(heavy: LiveAgent, kind: str) -> None:
    """Whoever may write beside the agent could otherwise have it read any file, or wait for ever."""
    artefact = _place(heavy, 10)
    path = _profiles(heavy) / artefact["id"]
    secret = heavy.folder / "secret"
    secret.write_bytes(path.read_bytes())
    path.unlink()
    match kind:
        case "link":
            path.symlink_to(secret)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()
    try:
        with pytest.raises(EvidenceError, match="no such profile"):
            _fetch(heavy, artefact)
    finally:
        path.rmdir() if kind == "folder" else path.unlink()


def test_folder_that_others_may_write_into_takes_no_profile(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    service = start_service(tmp_path / "svc", "idle")
    try:
        agent = agent_factory(
            f'[probes]\nheavy = ["*"]\n[paths]\nartefacts = "{folder}"\n{service.config()}'
        )
        result = agent.post("profile", ARGS, approved_by="U0LEAD").json()
    finally:
        service.stop()
    assert (result["status"], result["findings"]) == ("error", [])
    assert "others may write there" in result["error"]
    assert list(folder.iterdir()) == []


def test_answer_that_nobody_reads_does_not_hold_the_connection(heavy: LiveAgent) -> None:
    artefact = _place(heavy, 1024 * 1024)
    host, port = heavy.url.removeprefix("http://").split(":")
    asked = b""
    for _ in range(64):
        token = heavy.token("artefact", {"id": artefact["id"], "offset": 0})
        head = f"GET /v1/artefacts/{artefact['id']} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
        asked += f"{head}{token}\r\n\r\n".encode()
    with socket.create_connection((host, int(port)), timeout=60) as line:
        own = line.getsockname()[1]
        line.sendall(asked)
        until(lambda: _is_open(int(port), own), "the agent has no such connection")
        # 16 MiB are more than the kernel keeps for both ends, so the agent has to wait for a reader.
        until(lambda: not _is_open(int(port), own), "the agent still holds the connection")
    assert heavy.post("host_memory").status_code == 200


def _is_open(agent_port: int, caller_port: int) -> bool:
    """Whether the agent's end of the connection is established."""
    ends = f":{agent_port:04X}", f":{caller_port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(
        row[1].endswith(ends[0]) and row[2].endswith(ends[1]) and row[3] == "01" for row in rows
    )
