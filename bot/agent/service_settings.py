"""The services of a node, as `[services.<name>]` of the agent's configuration describes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.device.service import ServiceTarget

_MATCH = {"cgroup", "cmdline", "unit", "pidfile"}
_SERVICE = {
    "match",
    "metrics",
    "model_dir",
    "log_files",
    "dependencies",
    "golden_url",
    "golden_file",
    "profile_url",
    "profile_dir",
}


def read_services(table: Mapping[str, Any], faults: list[str]) -> dict[str, ServiceTarget]:
    """All services that are described without fault; the faults are added to the list."""
    found: dict[str, ServiceTarget] = {}
    for name, entry in table.items():
        where = f"services.{name}"
        if not isinstance(entry, dict):
            faults.append(f"{where}: must be a table")
            continue
        faults += [
            f"{where}.{key}: unknown; known are {', '.join(sorted(_SERVICE))}"
            for key in entry
            if key not in _SERVICE
        ]
        match = entry.get("match")
        if (
            not isinstance(match, dict)
            or len(match) != 1
            or not match.keys() <= _MATCH
            or not all(isinstance(value, str) and value for value in match.values())
        ):
            faults.append(
                f"{where}.match: give exactly one of {', '.join(sorted(_MATCH))} with a text"
            )
            continue
        addresses = {key: entry.get(key) for key in ("metrics", "golden_url", "profile_url")}
        wrong = [key for key, value in addresses.items() if not _is_address(value)]
        if wrong:
            faults += [f"{where}.{key}: must be an http:// or https:// address" for key in wrong]
            continue
        found[name] = ServiceTarget(
            name=name,
            cgroup=match.get("cgroup"),
            cmdline=match.get("cmdline"),
            unit=match.get("unit"),
            pidfile=Path(match["pidfile"]).absolute() if "pidfile" in match else None,
            metrics_url=addresses["metrics"],
            model_dir=_optional_path(entry, "model_dir"),
            log_files=tuple(
                str(Path(item).absolute())
                for item in words(entry.get("log_files", []), f"{where}.log_files", faults)
            ),
            dependencies=words(entry.get("dependencies", []), f"{where}.dependencies", faults),
            golden_url=addresses["golden_url"],
            golden_file=_optional_path(entry, "golden_file"),
            profile_url=addresses["profile_url"],
            profile_dir=_optional_path(entry, "profile_dir"),
        )
    return found


def _is_address(value: object) -> bool:
    return value is None or str(value).startswith(("http://", "https://"))


def _optional_path(entry: Mapping[str, Any], name: str) -> Path | None:
    return Path(str(entry[name])).absolute() if entry.get(name) else None


def words(value: object, where: str, faults: list[str]) -> tuple[str, ...]:
    """A list of texts; anything else is a fault and empty."""
    if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
        return tuple(value)
    faults.append(f"{where}: must be a list of texts")
    return ()
