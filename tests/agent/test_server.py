"""The HTTP surface with real children behind it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bot.agent.audit import AuditLog
from bot.agent.metrics import AgentMetrics
from bot.agent.runner import ChildRunner
from bot.agent.serve import probe_catalogue
from bot.agent.server import AgentServer
from bot.agent.settings import AgentSettings
from bot.agent.tokens import TokenCheck
from bot.argument import Argument, ArgumentKind, args_digest
from tests.agent.live_agent import LiveAgent
from tests.agent.live_service import start_service

ROOMY = "[limits]\nrequests_per_minute = 100000\nmoderate_per_minute = 100000\n"


def test_health_needs_no_token_and_tells_nothing(agent: LiveAgent) -> None:
    answer = httpx.get(f"{agent.url}/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_catalogue_lists_every_probe_with_its_schema(agent: LiveAgent) -> None:
    token = agent.token("catalogue", {})
    answer = httpx.get(f"{agent.url}/v1/probes", headers={"Authorization": f"Bearer {token}"})
    entries = {entry["name"]: entry for entry in answer.json()["probes"]}
    assert {"host_cpu", "gpu_state", "process_stacks", "gpu_allocator"} <= set(entries)
    assert entries["process_stacks"]["cost"] == "moderate"
    assert entries["process_stacks"]["args"]["required"] == ["service"]


def test_result_has_the_shape_of_the_contract(agent: LiveAgent) -> None:
    result = agent.post("host_memory").json()
    assert set(result) == {
        "probe", "node", "status", "started_at", "duration_s", "findings", "data", "truncated", "error",
    }  # fmt: skip
    assert (result["probe"], result["node"], result["status"]) == ("host_memory", "gpu-1", "ok")
    assert result["data"]["total_bytes"] > 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/etc/passwd", 404),
        ("GET", "/v1/probes/host_memory", 405),
        ("POST", "/healthz", 405),
    ],
)
def test_door_that_is_none_is_refused_with_one_audit_line(
    agent: LiveAgent, method: str, path: str, status: int
) -> None:
    before = len(agent.audit())
    answer = httpx.request(method, agent.url + path)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "reason"})
    [line] = agent.audit()[before:]
    assert (line["outcome"], line["http_status"]) == ("refused", status)


def test_unknown_probe_is_404_and_wrong_arguments_are_400(agent: LiveAgent) -> None:
    assert agent.post("no_such_probe").status_code == 404
    for args in (
        {"window_s": "2"},
        {"window_s": 1e9},
        {"window_s": True},
        {"path": "/etc/passwd"},
    ):
        answer = agent.post("host_cpu", args)
        assert answer.status_code == 400, args
    for service in ("", "x" * 200, 5, ["svc"]):
        assert agent.post("process_threads", {"service": service}).status_code == 400


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/proc/self/environ", "$(id)", "svc; id", "a\x00b"]
)
def test_hostile_service_name_is_just_unknown(agent: LiveAgent, name: str) -> None:
    result = agent.post("process_threads", {"service": name}).json()
    assert (result["status"], result["findings"]) == ("unsupported", [])
    assert "not mapped" in result["error"]


def test_body_over_the_limit_is_413_declared_or_not(agent: LiveAgent) -> None:
    token = {"Authorization": f"Bearer {agent.token('host_cpu', {})}"}
    big = b"x" * (10 * 1024 * 1024)

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(big), 65536):
            yield big[start : start + 65536]

    before = len(agent.audit())
    for content in (big, pieces()):
        try:
            answer = httpx.post(
                f"{agent.url}/v1/probes/host_cpu", content=content, headers=token, timeout=30
            )
        except httpx.TransportError:
            # The agent answered and closed while the rest was still being sent.
            continue
        assert answer.status_code in {401, 413}
    lines = agent.audit()[before:]
    assert {line["outcome"] for line in lines} == {"refused"}
    assert len(lines) == 2
    assert lines[0]["reason"] == "body_too_large"
    assert agent.post("host_memory").status_code == 200


def test_body_that_comes_too_slowly_is_given_up(agent: LiveAgent) -> None:
    host, port = agent.url.removeprefix("http://").split(":")
    token = agent.token("host_cpu", {})
    before = len(agent.audit())
    with socket.create_connection((host, int(port)), timeout=20) as line:
        line.sendall(
            f"POST /v1/probes/host_cpu HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Length: 100\r\n\r\n{".encode()
        )
        answer = line.recv(4096)
    assert b" 408 " in answer.split(b"\r\n")[0]
    assert [line["reason"] for line in agent.audit()[before:]] == ["body_too_slow"]
    assert agent.post("host_memory").status_code == 200


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"args": []}', b'{"args": {"x": NaN}}', b'{"timeout": -1}', b"[" * 20000],
)
def test_body_that_is_no_request_is_refused_in_one_line(agent: LiveAgent, body: bytes) -> None:
    answer = httpx.post(
        f"{agent.url}/v1/probes/host_cpu",
        content=body,
        headers={"Authorization": f"Bearer {agent.token('host_cpu', {})}"},
    )
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]


def test_too_many_requests_are_429_with_the_seconds_to_wait(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory("[limits]\nrequests_per_minute = 3\n")
    answers = [agent.post("host_memory") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert int(answers[-1].headers["Retry-After"]) >= 1


def test_thousand_requests_at_once_leave_the_agent_up(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory("[limits]\nrequests_per_minute = 20\n")
    limits = httpx.Limits(max_connections=100)
    with httpx.Client(limits=limits, timeout=60) as client:

        def ask(_number: int) -> int:
            return client.post(
                f"{agent.url}/v1/probes/host_memory",
                json={"args": {}},
                headers={"Authorization": f"Bearer {agent.token('host_memory', {})}"},
            ).status_code

        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            codes = list(pool.map(ask, range(1000)))
    assert set(codes) <= {200, 429}
    assert 20 <= codes.count(200) <= 120
    refused = [line for line in agent.audit() if line.get("reason") == "rate_limited"]
    assert len(refused) == codes.count(429)
    assert httpx.get(f"{agent.url}/healthz").status_code == 200


def test_probe_that_the_node_does_not_allow_is_denied(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory(f'[probes]\nallow = ["host_*"]\n{ROOMY}')
    result = agent.post("kernel_log").json()
    assert (result["status"], result["findings"]) == ("denied", [])
    assert agent.post("host_memory").json()["status"] == "ok"


def test_hanging_probe_times_out_while_the_others_answer(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    fifo = tmp_path / "kmsg"
    os.mkfifo(fifo)
    agent = agent_factory(f'{ROOMY}[paths]\nkernel_log = "{fifo}"\n')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        hanging = pool.submit(agent.post, "kernel_log", seconds=3.0)
        beside = agent.post("host_memory").json()
        assert not hanging.done()
        assert beside["status"] == "ok"
        result = hanging.result().json()
    assert result["status"] == "timeout"
    assert result["findings"] == []
    assert result["duration_s"] >= 3.0
    assert result["data"]["child"]["at"] == "looking"


def test_longer_window_has_the_time_that_it_takes(agent: LiveAgent) -> None:
    """A window longer than the usual deadline, and no word of a timeout from the caller."""
    result = agent.post("host_network", {"window_s": 6}).json()
    assert (result["status"], result["error"]) == ("ok", None)
    assert result["data"]["window_s"] >= 6


def test_own_metrics_count_runs_and_refusals(agent: LiveAgent) -> None:
    agent.post("host_memory")
    agent.post("host_memory", token="x.y.z")
    page = httpx.get(f"{agent.url}/metrics").text
    assert 'rca_agent_probe_runs_total{probe="host_memory",status="ok"}' in page
    assert 'rca_agent_requests_refused_total{reason="malformed_token"}' in page


def test_service_of_the_configuration_is_found_and_read(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    service = start_service(tmp_path / "svc", "idle")
    try:
        agent = agent_factory(ROOMY + service.config())
        result = agent.post("service_metrics", {"service": "svc", "window_s": 0.5}).json()
    finally:
        service.stop()
    assert [finding["id"] for finding in result["findings"]] == ["svc.metrics_ok"]
    assert result["data"]["engine"] == "vllm"


def test_audit_line_of_a_run_names_who_asked_and_what(agent: LiveAgent) -> None:
    before = len(agent.audit())
    agent.post("host_memory", sub="U0RESPONDER")
    accepted, finished = agent.audit()[before:]
    assert (accepted["outcome"], accepted["subject"]) == ("accepted", "U0RESPONDER")
    assert accepted["args_sha256"]
    assert accepted["probe"] == "host_memory"
    assert (finished["outcome"], finished["status"]) == ("finished", "ok")
    assert "eyJ" not in json.dumps([accepted, finished])


def test_agent_that_is_told_to_stop_leaves_no_child_behind(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    fifo = tmp_path / "kmsg"
    os.mkfifo(fifo)
    agent = agent_factory(
        f'[limits]\nrequests_per_minute = 100\ngrace_seconds = 60\n[paths]\nkernel_log = "{fifo}"\n'
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asking = pool.submit(agent.post, "kernel_log", seconds=20.0)
        children: list[int] = []
        deadline = time.monotonic() + 60
        while not children:
            assert time.monotonic() < deadline
            text = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text()
            # Only once it runs its own program: stopped before, it would hold the agent inside the start.
            children = [
                int(pid)
                for pid in text.split()
                if b"bot.agent.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
        os.kill(children[0], 19)  # it would not take SIGTERM by itself
        agent.stop()
        with contextlib.suppress(httpx.HTTPError):
            asking.result()
    assert agent.process.returncode == 0
    assert not Path(f"/proc/{children[0]}").exists()


async def test_defect_of_a_probes_own_is_one_audit_line_and_an_answer(tmp_path: Path) -> None:
    """A plug-in that declares its argument wrongly fails where the arguments are checked."""
    wrong = Argument(name="x", kind=ArgumentKind.NUMBER, summary="", low="1")  # type: ignore[arg-type]
    probe = replace(probe_catalogue()["host_memory"], arguments=(wrong,))
    key = Ed25519PrivateKey.generate()
    settings = AgentSettings(node="gpu-1")
    runner = ChildRunner(settings, now=time.time, monotonic=time.monotonic)
    audit = AuditLog(tmp_path / "audit.jsonl")
    server = AgentServer(
        settings,
        {probe.name: probe},
        runner,
        TokenCheck("gpu-1", (key.public_key(),), started_at=0),
        audit,
        AgentMetrics(),
        now=time.time,
        monotonic=time.monotonic,
    )
    now = time.time()
    claims = {"iss": "rca-bot", "aud": "gpu-1", "sub": "U0", "jti": "a", "iat": now, "exp": now + 9}
    args = {"x": 2}
    claims |= {"probe": probe.name, "args_sha256": args_digest(args)}
    token = jwt.encode(claims, key, algorithm="EdDSA")
    transport = httpx.ASGITransport(server.app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://agent") as client:
        answer = await client.post(
            f"/v1/probes/{probe.name}",
            json={"args": args},
            headers={"Authorization": f"Bearer {token}"},
        )
    await runner.close()
    audit.close()
    assert (answer.status_code, answer.json()["reason"]) == (500, "agent_fault")
    [line] = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert (line["outcome"], line["reason"]) == ("refused", "agent_fault")
