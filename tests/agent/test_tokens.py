"""Attacks on the door: nothing runs, each is one audit line, the agent stays up."""

from __future__ import annotations

import base64
import concurrent.futures
import hashlib
import hmac
import json
import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bot.agent.keys import write_key_pair
from bot.agent.serve import probe_catalogue
from bot.agent.tokens import Refusal, TokenCheck, TokenRefused
from bot.argument import Argument, ArgumentKind
from bot.probe import Probe
from tests.agent.live_agent import LiveAgent
from tests.agent.raw_wire import until

CHEAP = "host_memory"
ENDLESS_NUMBER = b'{"alg": ' + b"9" * 6000 + b"}"


def _part(value: dict[str, Any] | bytes) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unsigned(agent: LiveAgent) -> str:
    return f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(agent.claims(CHEAP, {}))}."


def _hmac_with_public_key(agent: LiveAgent) -> str:
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(agent.claims(CHEAP, {}))}"
    mac = hmac.new(agent.public_pem, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{_part(mac)}"


def _other_key(agent: LiveAgent) -> str:
    return jwt.encode(agent.claims(CHEAP, {}), Ed25519PrivateKey.generate(), algorithm="EdDSA")


def _with_header(agent: LiveAgent, **header: Any) -> str:
    key = load_pem_private_key(agent.key_pem.encode(), password=None)
    return jwt.encode(agent.claims(CHEAP, {}), key, algorithm="EdDSA", headers=header)  # type: ignore[arg-type]


def _own_key_in_header(agent: LiveAgent) -> str:
    """Names the key that is to be trusted, by path, by address and by value."""
    key = Ed25519PrivateKey.generate()
    point = key.public_key().public_bytes_raw()
    header = {
        "kid": "../../../proc/self/environ",
        "jku": "http://127.0.0.1:1/keys",
        "jwk": {"kty": "OKP", "crv": "Ed25519", "x": _part(point)},
    }
    return jwt.encode(agent.claims(CHEAP, {}), key, algorithm="EdDSA", headers=header)


Forge = Callable[[LiveAgent], str]
ATTACKS: dict[str, tuple[Forge, int, str]] = {
    "garbage": (lambda _: "x.y.z", 401, "malformed_token"),
    "alg-none": (_unsigned, 401, "wrong_algorithm"),
    "hs256-with-public-key": (_hmac_with_public_key, 401, "wrong_algorithm"),
    "foreign-key": (_other_key, 401, "bad_signature"),
    "wrong-issuer": (lambda a: a.token(CHEAP, {}, iss="somebody"), 401, "wrong_issuer"),
    "wrong-audience": (lambda a: a.token(CHEAP, {}, aud="gpu-2"), 403, "wrong_audience"),
    "audience-list": (lambda a: a.token(CHEAP, {}, aud=["gpu-1", "gpu-2"]), 403, "wrong_audience"),
    "expired": (
        lambda a: a.token(CHEAP, {}, iat=time.time() - 50, exp=time.time() - 20),
        401,
        "expired",
    ),
    "from-the-future": (
        lambda a: a.token(CHEAP, {}, iat=time.time() + 3600, exp=time.time() + 3630),
        401,
        "issued_in_future",
    ),
    "lives-too-long": (
        lambda a: a.token(CHEAP, {}, exp=time.time() + 3600),
        401,
        "lifetime_too_long",
    ),
    "before-the-start": (
        lambda a: a.token(CHEAP, {}, iat=time.time() - 3600, exp=time.time() + 1),
        401,
        "lifetime_too_long",
    ),
    "time-no-float-holds": (lambda a: a.token(CHEAP, {}, exp=10**400), 401, "missing_claim"),
    "time-before-all": (lambda a: a.token(CHEAP, {}, iat=-(10**400)), 401, "missing_claim"),
    "endless": (lambda a: a.token(CHEAP, {}, exp=math.inf), 401, "missing_claim"),
    "issued-after-expiry": (
        lambda a: a.token(CHEAP, {}, iat=time.time() + 60, exp=time.time() + 30),
        401,
        "issued_in_future",
    ),
    "critical-header": (lambda a: _with_header(a, crit=["b64"]), 401, "malformed_token"),
    "payload-left-out": (
        lambda a: _with_header(a, b64=False, crit=["b64"]),
        401,
        "malformed_token",
    ),
    "key-id-no-text": (
        lambda _: f"{_part({'alg': 'EdDSA', 'kid': 1})}.e30.x",
        401,
        "malformed_token",
    ),
    "algorithm-as-list": (lambda _: f"{_part({'alg': ['EdDSA']})}.e30.x", 401, "malformed_token"),
    "key-in-the-token": (_own_key_in_header, 401, "bad_signature"),
    "nested-10,000-deep": (lambda _: f"{_part(b'[' * 10_000)}.e30.x", 401, "malformed_token"),
    "endless-number": (
        lambda _: f"{_part(ENDLESS_NUMBER)}.e30.x",
        401,
        "malformed_token",
    ),
    "no-expiry": (lambda a: a.token(CHEAP, {}, exp=None), 401, "missing_claim"),
    "no-id": (lambda a: a.token(CHEAP, {}, jti=None), 401, "missing_claim"),
    "no-subject": (lambda a: a.token(CHEAP, {}, sub=None), 401, "missing_claim"),
    "boolean-time": (lambda a: a.token(CHEAP, {}, exp=True), 401, "missing_claim"),
    "other-probe": (lambda a: a.token("host_cpu", {}), 403, "wrong_probe"),
    "no-probe": (lambda a: a.token(CHEAP, {}, probe=None), 403, "wrong_probe"),
    "other-args": (lambda a: a.token(CHEAP, {"window_s": 1}), 403, "args_altered"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_forged_token_runs_nothing_and_is_audited_once(agent: LiveAgent, name: str) -> None:
    forge, status, reason = ATTACKS[name]
    before = len(agent.audit())
    answer = agent.post(CHEAP, token=forge(agent))
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    lines = agent.audit()[before:]
    assert [(line["outcome"], line["reason"]) for line in lines] == [("refused", reason)]
    assert agent.post(CHEAP).status_code == 200


def test_missing_token_is_refused(agent: LiveAgent) -> None:
    answer = httpx.post(f"{agent.url}/v1/probes/{CHEAP}", json={"args": {}})
    assert (answer.status_code, answer.json()["reason"]) == (401, "no_token")
    assert httpx.get(f"{agent.url}/v1/probes").status_code == 401


def test_replayed_token_is_refused_the_second_time(agent: LiveAgent) -> None:
    token = agent.token(CHEAP, {})
    assert agent.post(CHEAP, token=token).status_code == 200
    answer = agent.post(CHEAP, token=token)
    assert (answer.status_code, answer.json()["reason"]) == (401, "replayed")


def test_arguments_altered_on_the_way_are_refused(agent: LiveAgent) -> None:
    token = agent.token("host_cpu", {"window_s": 0.2})
    answer = agent.post("host_cpu", {"window_s": 30}, token=token)
    assert (answer.status_code, answer.json()["reason"]) == (403, "args_altered")


def test_token_issued_before_a_restart_is_refused_after_it(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    first = agent_factory()
    unused, used = first.token(CHEAP, {}), first.token(CHEAP, {})
    assert first.post(CHEAP, token=used).status_code == 200
    first.stop()
    second = agent_factory()
    for token in (unused, used):
        answer = second.post(CHEAP, token=token)
        assert (answer.status_code, answer.json()["reason"]) == (401, "issued_before_start")
    assert second.post(CHEAP).status_code == 200


def test_token_from_a_clock_ahead_is_no_replay_over_a_restart(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    """Its time lies after the restart; the audit file still remembers that it was used."""
    first = agent_factory()
    token = first.token(CHEAP, {}, iat=time.time() + 4.5, exp=time.time() + 60)
    assert first.post(CHEAP, token=token).status_code == 200
    first.stop()
    answer = agent_factory().post(CHEAP, token=token)
    assert answer.json()["reason"] in {"replayed", "issued_before_start"}


def test_two_public_keys_at_once_let_a_key_be_rotated(
    agent_factory: Callable[..., LiveAgent],
) -> None:
    old = agent_factory(name="old")
    new = agent_factory(name="new")
    new.stop()
    both = new.folder / "both.pem"
    both.write_bytes(old.public_pem + new.public_pem)
    rotated = agent_factory(name="new", RCA_AGENT_PUBLIC_KEYS=str(both))
    assert rotated.post(CHEAP).status_code == 200
    assert rotated.post(CHEAP, token=old.token(CHEAP, {})).status_code == 200


def test_token_sent_over_two_connections_at_once_runs_once(agent: LiveAgent) -> None:
    for _ in range(5):
        token = agent.token(CHEAP, {})
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(agent.post, CHEAP, token=token) for _ in range(4)]
            codes = sorted(one.result().status_code for one in asked)
        assert codes == [200, 401, 401, 401]


def test_used_token_stays_used_when_the_clock_is_set_back() -> None:
    """Its id is forgotten once it has expired; by a clock set back it is valid again."""
    key = Ed25519PrivateKey.generate()
    check = TokenCheck("gpu-1", (key.public_key(),), started_at=0)

    def token(issued: float, name: str) -> str:
        claims = {"iss": "rca-bot", "aud": "gpu-1", "sub": "U0", "jti": name}
        signed = jwt.encode(claims | {"iat": issued, "exp": issued + 30}, key, algorithm="EdDSA")
        return f"Bearer {signed}"

    used = token(1000, "a")
    check.check(used, 1001)
    check.check(token(1040, "b"), 1041)
    with pytest.raises(TokenRefused) as caught:
        check.check(used, 1002)
    assert caught.value.refusal is Refusal.REPLAYED
    check.check(token(1042, "c"), 1043)


def test_whole_numbers_that_no_float_holds_are_wrong_arguments(agent: LiveAgent) -> None:
    before = len(agent.audit())
    for probe, args in (
        ("host_cpu", {"window_s": 10**400}),
        ("host_cpu", {"window_s": -(10**400)}),
        ("gpu_state", {"gpus": [10**400]}),
        ("process_stacks", {"service": "svc", "samples": 10**400}),
    ):
        assert agent.post(probe, args).status_code == 400, args
    assert [line["reason"] for line in agent.audit()[before:]] == ["bad_args"] * 4


def test_keys_are_read_anew_on_sighup_and_faulty_ones_change_nothing(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    agent = agent_factory()
    private, public = write_key_pair(tmp_path / "next")
    new_key = load_pem_private_key(private.read_bytes(), password=None)
    trusted, old_keys = agent.folder / "rca-agent.pub", agent.public_pem
    log = agent.folder / "agent.log"

    def status(key: Any = None) -> int:
        claims = agent.claims(CHEAP, {})
        token = None if key is None else jwt.encode(claims, key, algorithm="EdDSA")
        return agent.post(CHEAP, token=token).status_code

    def reload(keys: bytes, word: str) -> None:
        before = log.read_text().count(f"event={word}")
        trusted.write_bytes(keys)
        agent.process.send_signal(signal.SIGHUP)
        until(lambda: log.read_text().count(f"event={word}") > before, word)

    assert (status(), status(new_key)) == (200, 401)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(agent.post, "host_cpu", {"window_s": 2})
        until(lambda: agent.audit()[-1]["probe"] == "host_cpu", "the request did not arrive")
        reload(old_keys + public.read_bytes(), "reloaded")
        assert (status(), status(new_key)) == (200, 200)
        reload(public.read_bytes(), "reloaded")
        assert under_way.result().json()["status"] == "ok"
    assert (status(), status(new_key)) == (401, 200)
    reload(b"no key in here", "not_reloaded")
    assert (status(), status(new_key)) == (401, 200)


HOSTILE = (
    "../../etc/passwd",
    "/proc/self/environ",
    "..\\..\\x",
    "a\x00b",
    "$(reboot)",
    "svc;id",
    "x" * 129,
)
STRINGS = [
    (probe, argument)
    for probe in probe_catalogue().values()
    for argument in probe.arguments
    if argument.kind in {ArgumentKind.SERVICE, ArgumentKind.CHOICE}
]


@pytest.mark.parametrize(
    ("probe", "argument"), STRINGS, ids=[f"{probe.name}-{item.name}" for probe, item in STRINGS]
)
def test_hostile_string_in_any_argument_runs_nothing(
    agent: LiveAgent, probe: Probe, argument: Argument
) -> None:
    others = {
        item.name: item.choices[0] if item.choices else item.low or 1
        for item in probe.arguments
        if item.is_required and item is not argument
    }
    for text in HOSTILE[:2] if argument.kind is ArgumentKind.SERVICE else HOSTILE:
        args = others | {argument.name: text}
        before = len(agent.audit())
        answer = agent.post(probe.name, args, approved_by="U0LEAD")
        if answer.status_code == 200:
            # A name is a key of the node's own table and never a path: it is simply not there.
            assert answer.json()["status"] in {"unsupported", "denied"}, answer.text
            assert answer.json()["findings"] == []
        else:
            assert answer.status_code == 400
            assert [line["reason"] for line in agent.audit()[before:]] == ["bad_args"]
        assert "root:" not in answer.text


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "host_cpu/../../x", "host_cpu%00", "%2e%2e"],
    ids=["dots", "encoded", "inside", "null", "encoded-dots"],
)
def test_path_that_climbs_names_no_probe(agent: LiveAgent, path: str) -> None:
    answer = agent.post(path)
    assert answer.status_code in {401, 403, 404}
    assert "root:" not in answer.text
