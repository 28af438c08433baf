"""The agent's settings: environment, then the TOML file of `RCA_AGENT_CONFIG`, then the default.

The bot's settings use pydantic, which a node does not have; so the agent checks its own, one line per fault.
"""

from __future__ import annotations

import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.agent.service_settings import read_services, words
from bot.device.service import ServiceTarget
from bot.errors import ConfigError

_SECTIONS = {
    "services": None,
    "probes": {"allow", "heavy"},
    "paths": {
        "proc_root",
        "sys_root",
        "nvml_library",
        "kernel_log",
        "package_log",
        "cuda_library",
        "artefacts",
    },
    "limits": {
        "requests_per_minute",
        "moderate_per_minute",
        "result_bytes",
        "parallel",
        "connections",
        "refused_lines_per_minute",
        "grace_seconds",
        "sigkill",
        "artefact_bytes",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the agent. `sigkill` false: an NVML child that hangs is never killed, only asked to end."""

    requests_per_minute: int = 120
    moderate_per_minute: int = 30
    result_bytes: int = 65536
    parallel: int = 12
    connections: int = 2048
    refused_lines_per_minute: int = 6000
    grace_seconds: float = 3.0
    sigkill: bool = True
    artefact_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Everything that the agent is told. `allow` and `heavy` are shell-style patterns of probe names."""

    node: str
    host: str = "127.0.0.1"
    port: int = 9477
    public_keys: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    audit: Path | None = None
    services: Mapping[str, ServiceTarget] = field(default_factory=dict)
    allow: tuple[str, ...] = ("*",)
    heavy: tuple[str, ...] = ()
    proc_root: Path = Path("/proc")
    sys_root: Path = Path("/sys")
    nvml_library: str = ""
    cuda_library: str = ""
    artefacts: Path | None = None
    kernel_log: Path = Path("/dev/kmsg")
    package_log: Path = Path("/var/log/apt/history.log")
    limits: Limits = field(default_factory=Limits)


def load_settings(environment: Mapping[str, str] | None = None) -> AgentSettings:
    """Reads and checks everything at once.

    Raises:
        ConfigError: one line per fault.
    """
    env = os.environ if environment is None else environment
    faults: list[str] = []
    content = _read_config(env.get("RCA_AGENT_CONFIG"), faults)
    _refuse_unknown(content, faults)
    services = read_services(_table(content, "services", faults), faults)
    probes, paths = _table(content, "probes", faults), _table(content, "paths", faults)
    settings = AgentSettings(
        node=env.get("RCA_AGENT_NODE") or socket.gethostname(),
        host=env.get("RCA_AGENT_HOST") or "127.0.0.1",
        port=_port(env.get("RCA_AGENT_PORT"), faults),
        public_keys=_readable(env, "RCA_AGENT_PUBLIC_KEYS", faults),
        tls_cert=_readable(env, "RCA_AGENT_TLS_CERT", faults),
        tls_key=_readable(env, "RCA_AGENT_TLS_KEY", faults),
        client_ca=_readable(env, "RCA_AGENT_CLIENT_CA", faults),
        audit=Path(env["RCA_AGENT_AUDIT"]).absolute() if env.get("RCA_AGENT_AUDIT") else None,
        services=services,
        allow=words(probes.get("allow", ["*"]), "probes.allow", faults),
        heavy=words(probes.get("heavy", []), "probes.heavy", faults),
        proc_root=_path(paths, "proc_root", "/proc", faults),
        sys_root=_path(paths, "sys_root", "/sys", faults),
        nvml_library=_library(paths.get("nvml_library", ""), "nvml_library", faults),
        cuda_library=_library(paths.get("cuda_library", ""), "cuda_library", faults),
        artefacts=_path(paths, "artefacts", "", faults) if paths.get("artefacts") else None,
        kernel_log=_path(paths, "kernel_log", "/dev/kmsg", faults),
        package_log=_path(paths, "package_log", "/var/log/apt/history.log", faults),
        limits=_limits(_table(content, "limits", faults), faults),
    )
    if (settings.tls_cert is None) != (settings.tls_key is None):
        faults.append("RCA_AGENT_TLS_CERT, RCA_AGENT_TLS_KEY: one without the other; set both")
    if settings.client_ca is not None and settings.tls_cert is None:
        faults.append("RCA_AGENT_CLIENT_CA: set without a certificate; set RCA_AGENT_TLS_CERT too")
    if faults:
        raise ConfigError(*faults)
    return settings


def require_server_settings(settings: AgentSettings, environment: Mapping[str, str] | None) -> None:
    """What the server needs beyond a local run.

    Raises:
        ConfigError: no name or no public key.
    """
    env = os.environ if environment is None else environment
    faults = []
    if not env.get("RCA_AGENT_NODE"):
        faults.append(
            "RCA_AGENT_NODE: not set; give the node's name as the inventory has it, tokens name it"
        )
    if settings.public_keys is None:
        faults.append(
            "RCA_AGENT_PUBLIC_KEYS: not set; give the PEM file that `rca-bot agent keygen` wrote"
        )
    if faults:
        raise ConfigError(*faults)


def _read_config(name: str | None, faults: list[str]) -> dict[str, Any]:
    if not name:
        return {}
    try:
        return tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        faults.append(f"RCA_AGENT_CONFIG: {name}: {error.strerror}; give a readable TOML file")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        faults.append(f"RCA_AGENT_CONFIG: {name}: {error}; correct the TOML")
    return {}


def _refuse_unknown(content: Mapping[str, Any], faults: list[str]) -> None:
    for section, table in content.items():
        if section not in _SECTIONS:
            faults.append(f"{section}: unknown; known are {', '.join(sorted(_SECTIONS))}")
            continue
        known = _SECTIONS[section]
        if known is not None and isinstance(table, dict):
            faults += [
                f"{section}.{key}: unknown; known are {', '.join(sorted(known))}"
                for key in table
                if key not in known
            ]


def _table(content: Mapping[str, Any], name: str, faults: list[str]) -> dict[str, Any]:
    table = content.get(name, {})
    if isinstance(table, dict):
        return table
    faults.append(f"{name}: must be a table")
    return {}


def _path(table: Mapping[str, Any], name: str, default: str, faults: list[str]) -> Path:
    value = table.get(name, default)
    if isinstance(value, str) and value:
        return Path(value).absolute()
    faults.append(f"paths.{name}: must be a path")
    return Path(default)


def _library(value: object, name: str, faults: list[str]) -> str:
    is_table = name == "nvml_library"
    if not isinstance(value, str):
        words = "a path, standin:FILE, or empty" if is_table else "a path, or empty"
        faults.append(f"paths.{name}: must be {words} for the system's own")
        return ""
    is_standin = is_table and value.startswith("standin:")
    prefix, file = ("standin:", value[8:]) if is_standin else ("", value)
    if not file:
        return ""
    path = Path(file).absolute()
    if not path.exists():
        faults.append(f"paths.{name}: {path} is not there")
    return f"{prefix}{path}"


def _readable(env: Mapping[str, str], name: str, faults: list[str]) -> Path | None:
    if not env.get(name):
        return None
    path = Path(env[name]).absolute()
    if not os.access(path, os.R_OK):
        faults.append(f"{name}: {path} cannot be read; give a readable PEM file")
    return path


def _port(text: str | None, faults: list[str]) -> int:
    if not text:
        return 9477
    if text.isdigit() and 0 < int(text) < 65536:
        return int(text)
    faults.append(f"RCA_AGENT_PORT: {text!r} is no port; give 1 to 65535")
    return 9477


def _limits(table: Mapping[str, Any], faults: list[str]) -> Limits:
    defaults = Limits()
    values: dict[str, Any] = {}
    for name in _SECTIONS["limits"] or ():
        if name not in table:
            continue
        value, default = table[name], getattr(defaults, name)
        if isinstance(default, bool) != isinstance(value, bool) or not isinstance(
            value, (int, float)
        ):
            faults.append(
                f"limits.{name}: must be {'true or false' if isinstance(default, bool) else 'a number'}"
            )
        elif not isinstance(value, bool) and value <= 0:
            faults.append(f"limits.{name}: must be above zero")
        else:
            values[name] = type(default)(value)
    if values.get("result_bytes", 65536) < 1024:
        faults.append("limits.result_bytes: must be at least 1024")
    return Limits(**values)
