"""TLS and mutual TLS by configuration, with certificates made here."""

from __future__ import annotations

import datetime
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bot.agent.keys import write_key_pair
from bot.app import open_agents
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.errors import ConfigError
from bot.inventory import Inventory, Node
from bot.settings import load_settings
from tests.agent.live_agent import LiveAgent
from tests.agent.raw_wire import reasons, until


def _certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def _ask(agent: LiveAgent, context: ssl.SSLContext) -> int:
    with httpx.Client(verify=context) as client:
        return client.post(
            f"{agent.url}/v1/probes/host_memory",
            json={"args": {}},
            headers={"Authorization": f"Bearer {agent.token('host_memory', {})}"},
        ).status_code


def test_agent_serves_over_tls(agent_factory: Callable[..., LiveAgent], tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path, "server")
    agent = agent_factory(RCA_AGENT_TLS_CERT=str(certificate), RCA_AGENT_TLS_KEY=str(key))
    assert _ask(agent, ssl.create_default_context(cafile=str(certificate))) == 200
    with pytest.raises(httpx.ConnectError):
        _ask(agent, ssl.create_default_context())


def test_certificate_is_read_anew_on_sighup_and_a_faulty_one_changes_nothing(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    certificate, key = _certificate(tmp_path, "server")
    first = ssl.create_default_context(cafile=str(certificate))
    agent = agent_factory(RCA_AGENT_TLS_CERT=str(certificate), RCA_AGENT_TLS_KEY=str(key))
    log = agent.folder / "agent.log"
    other, other_key = _certificate(tmp_path, "other")
    second = ssl.create_default_context(cafile=str(other))
    certificate.write_bytes(other.read_bytes())
    agent.process.send_signal(signal.SIGHUP)
    until(
        lambda: "event=not_reloaded" in log.read_text(), "no word of the pair that does not match"
    )
    assert _ask(agent, first) == 200
    key.write_bytes(other_key.read_bytes())
    agent.process.send_signal(signal.SIGHUP)
    until(lambda: "event=reloaded" in log.read_text(), "no word of the reload")
    assert _ask(agent, second) == 200
    with pytest.raises(httpx.ConnectError):
        _ask(agent, first)


def test_bytes_that_are_no_http_inside_tls_are_one_audit_line_too(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    certificate, key = _certificate(tmp_path, "server")
    agent = agent_factory(RCA_AGENT_TLS_CERT=str(certificate), RCA_AGENT_TLS_KEY=str(key))
    context = ssl.create_default_context(cafile=str(certificate))
    host, port = agent.url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=60) as bare,
        context.wrap_socket(bare, server_hostname=host) as line,
    ):
        line.sendall(b"\x00garbage\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 400 ")
    # Not even a handshake: nothing comes of it, and the agent goes on.
    with socket.create_connection((host, int(port)), timeout=60) as bare:
        bare.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"HTTP/1.1 200" not in bare.recv(4096)
    assert _ask(agent, context) == 200
    assert reasons(agent, 0) == ["bad_http"]


def test_certificate_and_key_that_do_not_match_stop_the_start(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    certificate, _ = _certificate(tmp_path, "server")
    _, other = _certificate(tmp_path, "other")
    with pytest.raises(AssertionError, match="RCA_AGENT_TLS_CERT"):
        agent_factory(RCA_AGENT_TLS_CERT=str(certificate), RCA_AGENT_TLS_KEY=str(other))


def test_mutual_tls_turns_away_who_has_no_certificate(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    server, key = _certificate(tmp_path, "server")
    client, client_key = _certificate(tmp_path, "client")
    agent = agent_factory(
        RCA_AGENT_TLS_CERT=str(server),
        RCA_AGENT_TLS_KEY=str(key),
        RCA_AGENT_CLIENT_CA=str(client),
    )
    known = ssl.create_default_context(cafile=str(server))
    known.load_cert_chain(client, client_key)
    assert _ask(agent, known) == 200
    with pytest.raises(httpx.TransportError):
        _ask(agent, ssl.create_default_context(cafile=str(server)))


async def _run_as_the_bot(agent: LiveAgent, folder: Path, settings: str) -> ProbeResult:
    """One probe through the client that the bot makes of its own settings file."""
    config = folder / "bot.toml"
    config.write_text(settings)
    environment = {
        "RCA_CONFIG": str(config),
        "RCA_AGENT_KEY": str(agent.folder / "rca-agent.key"),
    }
    inventory = Inventory(nodes={agent.node: Node(name=agent.node, url=agent.url)})
    agents = open_agents(load_settings(environment), inventory)
    assert agents is not None
    try:
        return await agents.run(agent.node, "host_memory", {}, subject="U0", timeout_seconds=5)
    finally:
        await agents.aclose()


async def test_bot_shows_its_certificate_where_the_agent_asks_for_one(
    agent_factory: Callable[..., LiveAgent], tmp_path: Path
) -> None:
    server, key = _certificate(tmp_path, "server")
    client, client_key = _certificate(tmp_path, "client")
    agent = agent_factory(
        RCA_AGENT_TLS_CERT=str(server),
        RCA_AGENT_TLS_KEY=str(key),
        RCA_AGENT_CLIENT_CA=str(client),
    )
    known = f'agent_ca = "{server}"\n'
    shown = f'{known}agent_client_cert = "{client}"\nagent_client_key = "{client_key}"\n'
    result = await _run_as_the_bot(agent, tmp_path, shown)
    assert result.status is ProbeStatus.OK, result.error
    for settings in (known, ""):
        result = await _run_as_the_bot(agent, tmp_path, settings)
        assert result.status is ProbeStatus.ERROR
        assert "cannot be reached" in str(result.error)


@pytest.mark.parametrize(
    "settings",
    [
        'agent_client_cert = "{cert}"',
        'agent_client_cert = "{cert}"\nagent_client_key = "{other}"',
        'agent_ca = "{key}"',
        'agent_ca = "/not/there.pem"',
    ],
    ids=["no-key", "other-key", "no-certificate-in-it", "absent"],
)
def test_certificate_of_the_bot_that_cannot_be_used_stops_the_start(
    tmp_path: Path, settings: str
) -> None:
    certificate, key = _certificate(tmp_path, "client")
    _, other = _certificate(tmp_path, "other")
    (tmp_path / "bot.toml").write_text(settings.format(cert=certificate, key=key, other=other))
    write_key_pair(tmp_path / "keys")
    environment = {
        "RCA_CONFIG": str(tmp_path / "bot.toml"),
        "RCA_AGENT_KEY": str(tmp_path / "keys" / "rca-agent.key"),
    }
    with pytest.raises(ConfigError, match="agent_"):
        open_agents(load_settings(environment), Inventory())
