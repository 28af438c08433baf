"""What is shipped for a node keeps to the least that the probes need, and the agent accepts its own configuration."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.agent.settings import load_settings
from bot.agent.tokens import load_public_keys
from bot.errors import ConfigError

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CAPABILITIES = {"SYS_PTRACE", "SYSLOG"}


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    text = (DEPLOY / "kubernetes" / "agent.yaml").read_text()
    return {item["kind"]: item for item in yaml.safe_load_all(text)}


def test_pod_has_two_capabilities_and_writes_to_its_own_folders_only(
    objects: dict[str, dict[str, Any]],
) -> None:
    pod = objects["DaemonSet"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    security = container["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert set(security["capabilities"]["add"]) == CAPABILITIES
    assert security["readOnlyRootFilesystem"] is True
    assert security["privileged"] is False
    assert security["allowPrivilegeEscalation"] is False
    assert pod["automountServiceAccountToken"] is False
    writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"/var/lib/rca-agent", "/tmp"}
    assert "tcpSocket" in container["livenessProbe"]  # a probe that times out restarts nothing


def test_pod_listens_beyond_loopback_with_tls_only(objects: dict[str, dict[str, Any]]) -> None:
    [container] = objects["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    names = {item["name"] for item in container["env"]}
    assert {"RCA_AGENT_HOST", "RCA_AGENT_TLS_CERT", "RCA_AGENT_TLS_KEY", "RCA_AGENT_AUDIT"} <= names
    assert "--allow-plaintext" not in container.get("args", [])


def test_configuration_of_the_pod_is_accepted_and_its_placeholder_key_is_not(
    objects: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    for name, text in objects["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text)
    settings = load_settings({"RCA_AGENT_CONFIG": str(tmp_path / "agent.toml")})
    assert settings.heavy == ()
    assert settings.limits.sigkill is False
    with pytest.raises(ConfigError):
        load_public_keys(tmp_path / "rca-agent.pub")


def test_unit_has_two_capabilities_and_may_read_what_probes_read() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd" / "rca-agent.service")
    service = unit["Service"]
    wanted = {f"CAP_{name}" for name in CAPABILITIES}
    assert set(service["CapabilityBoundingSet"].split()) == wanted
    assert set(service["AmbientCapabilities"].split()) == wanted
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert "AF_NETLINK" in service["RestrictAddressFamilies"]
    assert "ProtectClock" not in service
    assert "ProtectKernelLogs" not in service
