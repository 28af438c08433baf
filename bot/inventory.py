"""Which nodes there are, and which service runs where (`RCA_NODES`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from bot.errors import ConfigError
from bot.yaml_loader import load


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node with an agent; `name` is the agent's audience."""

    name: str
    url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service; `selectors` are label matchers of its metrics and logs."""

    name: str
    nodes: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    selectors: Mapping[str, str] = field(default_factory=dict)

    @property
    def matchers(self) -> Mapping[str, str]:
        """`selectors`, else `{"service": name}`."""
        return self.selectors or {"service": self.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All nodes and services that the bot knows."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    services: Mapping[str, Service] = field(default_factory=dict)

    def service_of(self, labels: Mapping[str, str]) -> Service | None:
        """The service that an alert's labels name: its label `service`, else the entry whose selectors all match."""
        named = labels.get("service")
        if named:
            return self.services.get(named) or Service(name=named)
        for service in self.services.values():
            if service.selectors and all(
                labels.get(key) == value for key, value in service.selectors.items()
            ):
                return service
        return None

    def nodes_of(self, service: str) -> tuple[Node, ...]:
        """The nodes that run `service`, in inventory order; empty when it is unknown."""
        entry = self.services.get(service)
        return tuple(self.nodes[name] for name in entry.nodes) if entry else ()


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _NodeEntry(_Strict):
    name: str
    url: str | None = None


class _ServiceEntry(_Strict):
    name: str
    nodes: list[str] = []
    depends_on: list[str] = []
    selectors: dict[str, str] = {}


class _File(_Strict):
    nodes: list[_NodeEntry] = []
    services: list[_ServiceEntry] = []


def load_inventory(path: Path | None) -> Inventory:
    """Reads the inventory file; no path is an empty inventory.

    Raises:
        ConfigError: unreadable, not in shape, or a service names a node that is not listed; one line per fault.
    """
    if path is None:
        return Inventory()
    try:
        content = load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"RCA_NODES: {path} cannot be read: {' '.join(str(error).split())}; give a readable YAML file"
        ) from error
    try:
        entries = _File.model_validate(content or {})
    except ValidationError as error:
        raise ConfigError(
            *(
                f"RCA_NODES: {path}: {'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
                for fault in error.errors()
            )
        ) from error
    nodes = {entry.name: Node(name=entry.name, url=entry.url) for entry in entries.nodes}
    faults = [
        f"RCA_NODES: {path}: services.{entry.name}.nodes: {name!r} is not among the nodes; add it or take it out"
        for entry in entries.services
        for name in entry.nodes
        if name not in nodes
    ]
    if faults:
        raise ConfigError(*faults)
    return Inventory(
        nodes=nodes,
        services={
            entry.name: Service(
                name=entry.name,
                nodes=tuple(entry.nodes),
                depends_on=tuple(entry.depends_on),
                selectors=dict(entry.selectors),
            )
            for entry in entries.services
        },
    )
