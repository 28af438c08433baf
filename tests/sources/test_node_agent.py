"""The bot's client: real agents, and every way in which an answer can be none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.argument import args_digest
from bot.domain.finding import ProbeStatus
from bot.errors import ConfigError, EvidenceError
from bot.inventory import Inventory, Node
from bot.sources.node_agent import NodeAgents
from tests.agent.live_agent import LiveAgent, start_agent
from tests.conftest import free_port

GOOD = {
    "probe": "host_memory",
    "node": "gpu-1",
    "status": "ok",
    "started_at": "2026-11-30T08:15:00Z",
    "duration_s": 0.1,
    "findings": [{"id": "mem.ok", "severity": "info", "summary": "fine"}],
    "data": {},
    "truncated": False,
    "error": None,
}
Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAgent]:
    started = start_agent(
        tmp_path_factory.mktemp("agent"), "[limits]\nrequests_per_minute = 100000\n"
    )
    yield started
    started.stop()


def _inventory(url: str | None) -> Inventory:
    return Inventory(nodes={"gpu-1": Node(name="gpu-1", url=url)})


def _agents(agent: LiveAgent, handler: Handler | None = None, url: str | None = None) -> NodeAgents:
    return NodeAgents(
        _inventory(url or agent.url),
        agent.key_pem,
        transport=httpx.MockTransport(handler) if handler else None,
    )


async def _run(agents: NodeAgents, seconds: float = 5.0, node: str = "gpu-1") -> Any:
    try:
        return await agents.run(node, "host_memory", {}, subject="U0", timeout_seconds=seconds)
    finally:
        await agents.aclose()


async def test_real_agent_answers_a_signed_request(agent: LiveAgent) -> None:
    result = await _run(_agents(agent))
    assert (result.status, result.node) == (ProbeStatus.OK, "gpu-1")
    assert result.data["total_bytes"] > 0


async def test_arguments_in_any_script_are_signed_as_the_agent_reads_them(agent: LiveAgent) -> None:
    agents = _agents(agent)
    result = await agents.run(
        "gpu-1", "process_threads", {"service": "翻译服务"}, subject="U0", timeout_seconds=5
    )
    await agents.aclose()
    assert result.status is ProbeStatus.UNSUPPORTED
    assert "not mapped" in str(result.error)


async def test_hundred_requests_at_once_are_all_answered(agent: LiveAgent) -> None:
    agents = _agents(agent)
    results = await asyncio.gather(
        *(
            agents.run("gpu-1", "no_such_probe", {}, subject="U0", timeout_seconds=20)
            for _ in range(100)
        )
    )
    await agents.aclose()
    assert {result.status for result in results} == {ProbeStatus.UNSUPPORTED}


async def test_catalogue_is_read(agent: LiveAgent) -> None:
    agents = _agents(agent)
    names = [entry["name"] for entry in await agents.catalogue("gpu-1")]
    await agents.aclose()
    assert "host_memory" in names


async def test_wrong_key_is_denied_and_says_what_to_compare(
    agent: LiveAgent, tmp_path: Path
) -> None:
    from bot.agent.keys import write_key_pair

    private, _ = write_key_pair(tmp_path)
    result = await _run(NodeAgents(_inventory(agent.url), private.read_text()))
    assert (result.status, result.findings) == (ProbeStatus.DENIED, ())
    assert "RCA_AGENT_KEY" in str(result.error)


async def test_nobody_listening_is_an_error_result(agent: LiveAgent) -> None:
    result = await _run(_agents(agent, url=f"http://127.0.0.1:{free_port()}"))
    assert (result.status, result.findings) == (ProbeStatus.ERROR, ())
    assert "cannot be reached" in str(result.error)


async def test_agent_that_never_answers_is_a_timeout_within_the_deadline(agent: LiveAgent) -> None:
    over = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    result = await _run(_agents(agent, url=f"http://127.0.0.1:{port}"), seconds=0.5)
    assert result.status is ProbeStatus.TIMEOUT
    over.set()
    server.close()
    await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (httpx.Response(401, json={"error": "the token expired"}), ProbeStatus.DENIED, "expired"),
        (httpx.Response(403, json={"error": "no"}), ProbeStatus.DENIED, "refused"),
        (
            httpx.Response(429, json={"error": "x"}, headers={"Retry-After": "7"}),
            ProbeStatus.ERROR,
            "in 7 s",
        ),
        (httpx.Response(404, json={"error": "no such"}), ProbeStatus.UNSUPPORTED, "does not know"),
        (httpx.Response(400, json={"error": "bad"}), ProbeStatus.ERROR, "HTTP 400: bad"),
        (httpx.Response(500, text="<html>"), ProbeStatus.ERROR, "HTTP 500"),
        (httpx.Response(302, headers={"Location": "http://x/"}), ProbeStatus.ERROR, "HTTP 302"),
        (httpx.Response(200, text="<html>"), ProbeStatus.ERROR, "no JSON"),
        (httpx.Response(200, json=[]), ProbeStatus.ERROR, "no JSON object"),
        (httpx.Response(200, json={}), ProbeStatus.ERROR, "out of shape"),
        (httpx.Response(200, json=GOOD | {"status": "fine"}), ProbeStatus.ERROR, "out of shape"),
        (httpx.Response(200, json=GOOD | {"node": "gpu-2"}), ProbeStatus.ERROR, "another node"),
        (httpx.Response(200, json=GOOD | {"findings": [1]}), ProbeStatus.ERROR, "out of shape"),
        (httpx.Response(200, content=b"x" * 3_000_000), ProbeStatus.ERROR, "larger than"),
        (
            httpx.Response(200, json=GOOD | {"status": "ok", "started_at": None}),
            ProbeStatus.ERROR,
            "out of shape",
        ),
        (
            httpx.Response(
                200,
                json=GOOD
                | {"status": "unsupported", "started_at": None, "findings": [], "error": "no GPU"},
            ),
            ProbeStatus.UNSUPPORTED,
            "no GPU",
        ),
    ],
    ids=[
        "401", "403", "429", "404", "400", "500", "redirect", "html", "list", "empty", "bad-status",
        "other-node", "bad-finding", "flood", "ok-without-a-time", "never-begun",
    ],
)  # fmt: skip
async def test_bad_answer_is_a_result_with_its_reason_and_no_findings(
    agent: LiveAgent, answer: httpx.Response, status: ProbeStatus, words: str
) -> None:
    result = await _run(_agents(agent, lambda _: answer))
    assert (result.status, result.findings) == (status, ())
    assert words in str(result.error)
    assert "\n" not in str(result.error)


@pytest.mark.parametrize("status", ["unsupported", "denied", "timeout", "error"])
async def test_run_without_a_reading_needs_no_time_and_no_duration(
    agent: LiveAgent, status: str
) -> None:
    told = GOOD | {"status": status, "findings": None, "started_at": None, "duration_s": None}
    answer = httpx.Response(200, json=told | {"error": "nothing to read"})
    result = await _run(_agents(agent, lambda _: answer))
    assert (result.status.value, result.error) == (status, "nothing to read")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"started_at": None}, "started_at is missing"),
        ({"started_at": 17}, "started_at is not a time"),
        ({"started_at": "noon"}, "a time"),
        ({"status": None}, "status is missing"),
        ({"status": []}, "status is not a word"),
        ({"duration_s": "long"}, "duration_s is not a number"),
        ({"findings": {"id": "x"}}, "findings is not a list"),
        ({"findings": [None]}, "a finding"),
        ({"data": [1]}, "data is not an object"),
        ({"error": {"code": 1}}, "error is not a text"),
    ],
)
async def test_what_is_out_of_shape_is_told_in_the_contracts_words(
    agent: LiveAgent, change: dict[str, Any], said: str
) -> None:
    result = await _run(_agents(agent, lambda _: httpx.Response(200, json=GOOD | change)))
    assert result.status is ProbeStatus.ERROR
    assert said in str(result.error)
    assert not any(word in str(result.error) for word in ("NoneType", "object has", "argument"))


async def test_unknown_node_or_one_without_address_is_an_error_result(agent: LiveAgent) -> None:
    assert "inventory" in str((await _run(_agents(agent), node="gpu-9")).error)
    assert "inventory" in str((await _run(NodeAgents(_inventory(None), agent.key_pem))).error)


async def test_claims_are_those_of_the_contract(agent: LiveAgent) -> None:
    import jwt

    seen: list[dict[str, Any]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        token = request.headers["Authorization"].removeprefix("Bearer ")
        seen.append(jwt.decode(token, options={"verify_signature": False}))
        seen.append(json.loads(request.content))
        return httpx.Response(200, json=GOOD)

    agents = _agents(agent, handler)
    await agents.run(
        "gpu-1",
        "host_memory",
        {"b": 1, "a": "é"},
        subject="U0",
        timeout_seconds=5,
        approved_by="U0LEAD",
    )
    await agents.aclose()
    claims, body = seen
    assert (claims["iss"], claims["aud"], claims["sub"]) == ("rca-bot", "gpu-1", "U0")
    assert claims["args_sha256"] == args_digest({"a": "é", "b": 1})
    assert claims["approved_by"] == "U0LEAD"
    assert claims["exp"] - claims["iat"] <= 60
    assert body == {"args": {"b": 1, "a": "é"}, "timeout": 4.5}


async def test_token_is_in_no_message(agent: LiveAgent) -> None:
    for handler in (
        lambda request: httpx.Response(500, json={"error": "x"}),
        lambda request: (_ for _ in ()).throw(httpx.ConnectError("refused", request=request)),
    ):
        result = await _run(_agents(agent, handler))
        assert "eyJ" not in str(result.error)


@pytest.mark.parametrize("pem", ["", "nonsense"])
def test_key_that_is_none_is_a_fault_of_the_settings(pem: str) -> None:
    with pytest.raises(ConfigError, match="RCA_AGENT_KEY"):
        NodeAgents(Inventory(), pem)


async def test_catalogue_out_of_shape_is_an_evidence_error(agent: LiveAgent) -> None:
    agents = _agents(agent, lambda _: httpx.Response(200, json={"probes": [1]}))
    with pytest.raises(EvidenceError, match="out of shape"):
        await agents.catalogue("gpu-1")
    await agents.aclose()


async def test_number_that_is_none_is_no_value_and_stays_out_of_the_record(
    agent: LiveAgent,
) -> None:
    """Python's JSON reads and writes `NaN`; the record, the export and Slack cannot."""
    found = '{"id": "cpu.pressure", "severity": "warning", "summary": "s", "value": NaN}'
    told = (
        json.dumps(GOOD)[:-1] + f', "findings": [{found}], "data": {{"a": 1e999, "b": -Infinity}}}}'
    )
    result = await _run(_agents(agent, lambda _: httpx.Response(200, text=told)))
    assert result.status is ProbeStatus.OK
    assert [item.value for item in result.findings] == [None]
    assert dict(result.data) == {"a": None, "b": None}
    json.dumps(result.to_json(), allow_nan=False)
