"""Collects plug-ins: one named call, no import side effects, no global table."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Protocol, TypeVar

from bot.errors import ConfigError


class Named(Protocol):
    """What every plug-in value has: the name that its file has too."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def collect(package: ModuleType, kind: type[T]) -> dict[str, T]:
    """All values of type `kind` defined at the top of the modules of `package`, keyed and sorted by name.

    A module whose file name starts with an underscore is not a plug-in. A value that a module only imported from
    a sibling is found in the sibling, so the file's name must equal the value's name.

    Raises:
        ConfigError: a module holds no such value, or one under another name.
    """
    found: dict[str, T] = {}
    faults: list[str] = []
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
        if info.name.startswith("_") or info.ispkg:
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        values = [value for value in vars(module).values() if isinstance(value, kind)]
        own = [value for value in values if value.name == info.name]
        if len(own) != 1:
            names = ", ".join(sorted(value.name for value in values)) or "none"
            faults.append(
                f"{package.__name__}/{info.name}.py: must define exactly one {kind.__name__} "
                f"named {info.name!r}, found {names}"
            )
            continue
        found[info.name] = own[0]
    if faults:
        raise ConfigError(*faults)
    return found
