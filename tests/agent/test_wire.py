"""Attacks below HTTP: each ends, each is one audit line, and the agent goes on answering."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from bot.agent.serve import connection_limit
from tests.agent.live_agent import LiveAgent
from tests.agent.raw_wire import WAIT_SECONDS, connect, read_to_end, reasons, send, status_of, until

POST = b"POST /v1/probes/host_memory HTTP/1.1\r\nHost: x\r\n"
NO_HTTP: dict[str, tuple[bytes, int, str]] = {
    "header-of-130-kb": (
        b"GET /v1/probes HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 130_000 + b"\r\n\r\n",
        431,
        "head_too_large",
    ),
    "many-headers": (
        b"GET /v1/probes HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        431,
        "head_too_large",
    ),
    "long-request-line": (
        b"GET /" + b"a" * 130_000 + b" HTTP/1.1\r\n\r\n",
        431,
        "head_too_large",
    ),
    "garbage": (b"\x00\x01\x02\x03\xff\r\n\r\n", 400, "bad_http"),
    "tls-to-plain-http": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "bad_http"),
    "no-host": (b"GET /v1/probes HTTP/1.1\r\n\r\n", 400, "bad_http"),
    "two-lengths": (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "bad_http"),
    "negative-length": (POST + b"Content-Length: -1\r\n\r\n", 400, "bad_http"),
    "length-of-other-digits": (POST + b"Content-Length: \xb2\r\n\r\n", 400, "bad_http"),
    "unknown-encoding": (POST + b"Transfer-Encoding: xchunked\r\n\r\n", 400, "bad_http"),
    "folded-header": (POST + b"Authorization: Bearer x\r\n y\r\n\x00: z\r\n\r\n", 400, "bad_http"),
}


@pytest.mark.parametrize("name", NO_HTTP)
def test_bytes_that_are_no_request_are_one_audit_line(agent: LiveAgent, name: str) -> None:
    content, status, reason = NO_HTTP[name]
    before = len(agent.audit())
    answer = send(agent, content)
    # A sender that is cut off in the middle of its bytes may lose the answer; the line is there in any case.
    assert answer == b"" or status_of(answer) == status
    until(lambda: len(agent.audit()) > before, "no audit line")
    assert agent.post("host_memory").status_code == 200
    lines = agent.audit()[before:]
    assert [line.get("reason") for line in lines] == [reason, None, None]
    assert (lines[0]["remote"], lines[0]["http_status"]) == ("127.0.0.1", status)


def test_head_that_drips_is_given_up_with_one_line(agent: LiveAgent) -> None:
    before = len(agent.audit())
    with connect(agent) as line:
        line.sendall(b"GET /v1/probes HTTP/1.1\r\nHost: x\r\nX: ")
        line.settimeout(0.5)
        answer = b""
        for _ in range(int(WAIT_SECONDS / 0.5)):
            try:
                answer += line.recv(65536)
                break
            except TimeoutError:
                line.sendall(b"a")
    assert status_of(answer) == 408
    assert reasons(agent, before) == ["head_too_slow"]


def test_connection_that_says_nothing_is_closed_with_one_line(agent: LiveAgent) -> None:
    before = len(agent.audit())
    assert status_of(send(agent, b"")) == 408
    assert reasons(agent, before) == ["no_request"]


def test_head_that_breaks_off_is_one_line(agent: LiveAgent) -> None:
    before = len(agent.audit())
    with connect(agent) as line:
        line.sendall(b"GET /v1/pro")
    until(lambda: len(agent.audit()) > before, "no audit line")
    assert reasons(agent, before) == ["head_broken"]


def test_connection_that_only_looks_whether_the_port_is_open_leaves_no_line(
    agent: LiveAgent,
) -> None:
    before = len(agent.audit())
    connect(agent).close()
    assert httpx.get(f"{agent.url}/healthz").status_code == 200
    assert len(agent.audit()) == before


def test_body_that_never_ends_after_its_refusal_does_not_hold_the_connection(
    agent: LiveAgent,
) -> None:
    before = len(agent.audit())
    with connect(agent) as line:
        line.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        assert status_of(line.recv(65536)) == 401
        line.settimeout(0.5)
        for _ in range(int(WAIT_SECONDS / 0.5)):
            try:
                line.sendall(b"1\r\nx\r\n")
                if line.recv(65536) == b"":
                    break
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                break
        else:
            pytest.fail("the connection was never closed")
    assert reasons(agent, before) == ["no_token"]


def test_body_whose_chunks_are_garbage_is_one_line(agent: LiveAgent) -> None:
    before = len(agent.audit())
    token = agent.token("host_memory", {}).encode()
    head = POST + b"Authorization: Bearer " + token + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert status_of(send(agent, head + b"zz\r\n{}")) == 400
    until(lambda: len(agent.audit()) > before, "no audit line")
    assert reasons(agent, before) == ["body_broken"]


def test_garbage_after_a_refused_request_on_the_same_connection_is_no_crash(
    agent: LiveAgent,
) -> None:
    before = len(agent.audit())
    with connect(agent) as line:
        line.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += line.recv(65536)
        assert status_of(answer) == 401
        line.sendall(b"zz\r\n")
        assert read_to_end(line) == b""
    assert reasons(agent, before) == ["no_token"]
    assert "Traceback" not in (agent.folder / "agent.log").read_text()


def test_two_answers_to_where_a_body_ends_are_refused(agent: LiveAgent) -> None:
    """What is left of such a body must never be read as a request of its own."""
    before = len(agent.audit())
    token = agent.token("host_memory", {}).encode()
    answer = send(
        agent,
        POST
        + b"Authorization: Bearer "
        + token
        + b"\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b'b\r\n{"args":{}}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
    )
    assert (status_of(answer), answer.count(b"HTTP/1.1 ")) == (400, 1)
    assert reasons(agent, before) == ["ambiguous_length"]


def test_pipelined_requests_each_need_their_own_token(agent: LiveAgent) -> None:
    token = agent.token("catalogue", {}).encode()
    ask = b"GET /v1/probes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + b"\r\n"
    answer = send(agent, ask + b"\r\n" + ask + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200") == 1
    assert answer.count(b"HTTP/1.1 401") == 1


def test_held_connections_do_not_keep_the_bot_out(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory("[limits]\nrequests_per_minute = 1000\nconnections = 8\n")
    held = [connect(agent) for _ in range(40)]
    try:
        assert [agent.post("host_memory").status_code for _ in range(3)] == [200, 200, 200]
        # The oldest were let go for it, and each is told.
        assert status_of(read_to_end(held[0])) == 503
        until(lambda: reasons(agent, 0).count("too_many_connections") >= 32, "too few lines")
    finally:
        for line in held:
            line.close()


def test_idle_connections_that_were_answered_once_go_first_too(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory("[limits]\nrequests_per_minute = 1000\nconnections = 4\n")
    held = [connect(agent) for _ in range(4)]
    try:
        for line in held:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert status_of(line.recv(65536)) == 200
        assert agent.post("host_memory").status_code == 200
    finally:
        for line in held:
            line.close()


def test_there_are_never_more_connections_than_half_the_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert connection_limit(hard) <= hard // 2 + 1
        assert connection_limit(16) == 16
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_node_that_has_no_descriptor_left_answers_with_a_result(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    agent = agent_factory()
    assert agent.post("host_memory").json()["status"] == "ok"
    hard = resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE)[1]
    taken = len(list(Path(f"/proc/{agent.process.pid}/fd").iterdir()))
    # One for the connection, and too few for the pipes of a child.
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (taken + 2, hard))
    result = agent.post("host_memory").json()
    assert (result["status"], result["findings"]) == ("error", [])
    assert "no process could be started" in result["error"]
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    assert agent.post("host_memory").json()["status"] == "ok"


def test_forwarded_address_is_written_down_as_a_claim_only(agent: LiveAgent) -> None:
    before = len(agent.audit())
    httpx.get(f"{agent.url}/v1/probes", headers={"X-Forwarded-For": "6.6.6.6\t" + "x" * 500})
    [line] = agent.audit()[before:]
    assert line["remote"] == "127.0.0.1"
    assert line["forwarded_for"].startswith("6.6.6.6")
    assert len(line["forwarded_for"]) <= 128
