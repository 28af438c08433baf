"""Settings of the agent: each fault is one line, and an open door is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.agent.keys import write_key_pair
from bot.agent.serve import refuse_open_door
from bot.agent.settings import AgentSettings, load_settings, require_server_settings
from bot.agent.tokens import load_public_keys
from bot.errors import ConfigError


def test_configuration_of_the_contract_is_read_whole(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    config.write_text(
        """
[services.translate-api]
match = { cgroup = "*translate-api*" }
metrics = "http://127.0.0.1:8000/metrics"
model_dir = "/models/translate"
log_files = ["/var/log/translate/*.log"]
dependencies = ["tcp://10.0.0.9:6379"]
[probes]
allow = ["*"]
heavy = []
[paths]
proc_root = "/proc"
sys_root = "/sys"
nvml_library = ""
[limits]
requests_per_minute = 120
result_bytes = 65536
sigkill = false
"""
    )
    settings = load_settings({"RCA_AGENT_NODE": "gpu-1", "RCA_AGENT_CONFIG": str(config)})
    service = settings.services["translate-api"]
    assert (settings.node, settings.host, settings.port) == ("gpu-1", "127.0.0.1", 9477)
    assert (service.cgroup, service.metrics_url) == (
        "*translate-api*",
        "http://127.0.0.1:8000/metrics",
    )
    assert service.dependencies == ("tcp://10.0.0.9:6379",)
    assert settings.limits.sigkill is False


def test_every_fault_is_one_line_and_all_come_at_once(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    config.write_text(
        """
surprise = {}
[services.a]
match = { cgroup = "x", cmdline = "y" }
[services.b]
match = { cmdline = "y" }
metrics = "file:///etc/passwd"
[services.c]
match = { cmdline = "y" }
shell = "rm"
[probes]
allow = "all"
[paths]
nvml_library = "/not/there.so"
[limits]
requests_per_minute = 0
sigkill = 1
"""
    )
    with pytest.raises(ConfigError) as caught:
        load_settings(
            {
                "RCA_AGENT_CONFIG": str(config),
                "RCA_AGENT_PORT": "70000",
                "RCA_AGENT_PUBLIC_KEYS": "/not/there.pem",
                "RCA_AGENT_CLIENT_CA": str(config),
            }
        )
    faults = caught.value.faults
    assert all("\n" not in fault for fault in faults)
    for start in (
        "surprise", "services.a.match", "services.b.metrics", "services.c.shell", "probes.allow",
        "paths.nvml_library", "limits.requests_per_minute", "limits.sigkill", "RCA_AGENT_PORT",
        "RCA_AGENT_PUBLIC_KEYS", "RCA_AGENT_CLIENT_CA",
    ):  # fmt: skip
        assert any(fault.startswith(start) for fault in faults), (start, faults)


def test_server_without_name_or_key_does_not_start() -> None:
    with pytest.raises(ConfigError) as caught:
        require_server_settings(load_settings({}), {})
    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "RCA_AGENT_NODE",
        "RCA_AGENT_PUBLIC_KEYS",
    ]


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::", "agent.example"])
def test_listening_beyond_loopback_needs_tls_or_a_flag(host: str) -> None:
    settings = AgentSettings(node="n", host=host)
    with pytest.raises(ConfigError, match="no TLS"):
        refuse_open_door(settings, allow_plaintext=False)
    refuse_open_door(settings, allow_plaintext=True)
    refuse_open_door(
        AgentSettings(node="n", host=host, tls_cert=Path("c"), tls_key=Path("k")),
        allow_plaintext=False,
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_may_be_in_the_clear(host: str) -> None:
    refuse_open_door(AgentSettings(node="n", host=host), allow_plaintext=False)


@pytest.mark.parametrize("what", ["private", "cut-off"])
def test_file_with_more_than_whole_public_keys_is_a_fault(tmp_path: Path, what: str) -> None:
    private, public = write_key_pair(tmp_path)
    rest = private.read_text() if what == "private" else public.read_text()[:60]
    path = tmp_path / "keys.pem"
    path.write_text(public.read_text() + rest)
    with pytest.raises(ConfigError, match="2 PEM blocks and 1 are whole public keys"):
        load_public_keys(path)
    path.write_text(f"# of the bot\n{public.read_text()}")
    assert len(load_public_keys(path)) == 1


def test_file_without_an_ed25519_key_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "keys.pem"
    path.write_text("nothing here")
    with pytest.raises(ConfigError, match="Ed25519"):
        load_public_keys(path)
