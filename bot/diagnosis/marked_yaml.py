"""YAML that remembers on which line each value stands, and a reader that collects faults instead of raising."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from bot.domain.text import Locale, Localized
from bot.yaml_loader import LOADER

E = TypeVar("E", bound=StrEnum)
Where = tuple[str | int, ...]

MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a knowledge file; prints as `file:line: message`."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(slots=True)
class Reader:
    """One file: its data, the line of each value, and the faults found so far."""

    path: Path
    data: Any = None
    lines: dict[Where, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> Reader:
        """Reads a file; one that cannot be read has its fault and no data."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reader = cls(path)
            reader.faults.append(Fault(path=path, line=1, message=f"cannot be read: {error}"))
            return reader
        return cls.of(path, text)

    @classmethod
    def of(cls, path: Path, text: str) -> Reader:
        """Reads a text in a file's place; `path` is named in its faults."""
        reader = cls(path)
        try:
            if len(text) > MOST_BYTES:
                raise ValueError(f"longer than {MOST_BYTES} characters")
            node = yaml.compose(text, Loader=LOADER)
        except ValueError as error:
            reader.faults.append(Fault(path=path, line=1, message=f"cannot be read: {error}"))
            return reader
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or "is no YAML"
            line = mark.line + 1 if mark else 1
            reader.faults.append(Fault(path=path, line=line, message=f"no YAML: {problem}"))
            return reader
        reader.data = reader._plain(node, ()) if node is not None else {}
        return reader

    def _plain(self, node: yaml.Node, where: Where) -> Any:
        self.lines[where] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            plain: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                if key in plain:
                    self.fault((*where, key), f"{key!r} is given twice")
                plain[key] = self._plain(value_node, (*where, key))
                self.lines[(*where, key)] = key_node.start_mark.line + 1
            return plain
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, (*where, at)) for at, item in enumerate(node.value)]
        return yaml.constructor.SafeConstructor().construct_object(node, deep=True)

    def fault(self, where: Where, message: str) -> None:
        """Books a fault at the nearest line that is known."""
        spot = where
        while spot and spot not in self.lines:
            spot = spot[:-1]
        self.faults.append(Fault(path=self.path, line=self.lines.get(spot, 1), message=message))

    def at(self, where: Where) -> Any:
        """The value at a path, None where there is none."""
        value = self.data
        for key in where:
            if not isinstance(value, Mapping | list):
                return None
            inside: Any = value
            try:
                value = inside[key]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def only(self, where: Where, known: Sequence[str]) -> None:
        """Every key at `where` must be known."""
        value = self.at(where)
        if not isinstance(value, Mapping):
            self.fault(where, "must be a mapping")
            return
        for key in value:
            if key not in known:
                self.fault((*where, key), f"unknown key {key!r}; known: {', '.join(known)}")

    def text(self, where: Where, *, default: str | None = None) -> str:
        """A string."""
        value = self.at(where)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            self.fault(where, f"{_name(where)} must be a text")
            return ""
        return value

    def number(self, where: Where, *, default: float | None = None) -> float:
        """A finite number."""
        value = self.at(where)
        if value is None and default is not None:
            return default
        if isinstance(value, str):
            # YAML 1.1 reads 2e8 as a text.
            try:
                value = float(value)
            except ValueError:
                value = None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or value != value
            or abs(value) > 1e18
        ):
            self.fault(where, f"{_name(where)} must be a number")
            return 0.0
        return float(value)

    def optional_number(self, where: Where) -> float | None:
        """A finite number, or None where the key is absent."""
        return None if self.at(where) is None else self.number(where)

    def flag(self, where: Where, *, default: bool) -> bool:
        """True or false."""
        value = self.at(where)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fault(where, f"{_name(where)} must be true or false")
            return default
        return value

    def choice(self, where: Where, kind: type[E], *, default: E | None = None) -> E:
        """A member of a closed set."""
        value = self.at(where)
        if value is None and default is not None:
            return default
        try:
            return kind(str(value))
        except ValueError:
            self.fault(
                where, f"{_name(where)} must be one of {', '.join(item.value for item in kind)}"
            )
            return next(iter(kind))

    def localized(self, where: Where) -> Localized:
        """A text in both languages; neither may be missing."""
        value = self.at(where)
        if not isinstance(value, Mapping):
            self.fault(where, f"{_name(where)} must have en and zh-CN")
            return Localized.verbatim("")
        self.only(where, [Locale.EN.value, Locale.ZH_CN.value])
        return Localized(
            self.text((*where, Locale.EN.value)), self.text((*where, Locale.ZH_CN.value))
        )

    def items(self, where: Where) -> range:
        """The indices of a list, none where the key is absent."""
        value = self.at(where)
        if value is None:
            return range(0)
        if not isinstance(value, list):
            self.fault(where, f"{_name(where)} must be a list")
            return range(0)
        return range(len(value))


def _name(where: Where) -> str:
    return ".".join(str(part) for part in where if not isinstance(part, int)) or "the file"
