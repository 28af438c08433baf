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

MOST_CHARACTERS = 1_000_000
_DEEPEST = 20
"""Keys on the way to a value; no kind of file has half as many."""


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
    """One file: its text and data, the line of each value, and the faults found so far.

    words: each scalar as it is written, so that a word such as `429` or `off` stays one.
    blocks: the lists that are written one item a line, and not within brackets.
    """

    path: Path
    source: str = ""
    data: Any = None
    lines: dict[Where, int] = field(default_factory=dict)
    words: dict[Where, str] = field(default_factory=dict)
    blocks: set[Where] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    _read: set[int] = field(default_factory=set, repr=False)

    @classmethod
    def open(cls, path: Path, *, most: int = MOST_CHARACTERS) -> Reader:
        """Reads a file of at most `most` characters; one that cannot be read has its fault and no data."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reader = cls(path)
            reader.faults.append(Fault(path=path, line=1, message=f"cannot be read: {error}"))
            return reader
        return cls.of(path, text, most=most)

    @classmethod
    def of(cls, path: Path, text: str, *, most: int = MOST_CHARACTERS) -> Reader:
        """Reads a text in a file's place; `path` is named in its faults."""
        reader = cls(path, text)
        try:
            if len(text) > most:
                raise ValueError(f"longer than {most} characters")
            node = yaml.compose(text, Loader=LOADER)
        except RecursionError:
            reader.faults.append(Fault(path=path, line=1, message="is nested too deeply"))
            return reader
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
        if id(node) in self._read:
            # A few lines of aliases unfold to more than any memory holds, or into themselves.
            self.fault(where, "an alias is not read; write out what it stands for")
            return None
        if len(where) > _DEEPEST:
            self.fault(where, "is nested too deeply")
            return None
        self._read.add(id(node))
        self.lines[where] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            plain: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                inside = (*where, key)
                if key in plain:
                    self.fault(inside, f"{key!r} is given twice")
                self.lines[inside] = key_node.start_mark.line + 1
                plain[key] = self._plain(value_node, inside)
                self.lines[inside] = key_node.start_mark.line + 1
            return plain
        if isinstance(node, yaml.SequenceNode):
            if not node.flow_style:
                self.blocks.add(where)
            return [self._plain(item, (*where, at)) for at, item in enumerate(node.value)]
        self.words[where] = str(node.value)
        return yaml.constructor.SafeConstructor().construct_object(node, deep=True)

    def fault(self, where: Where, message: str) -> None:
        """Books a fault at the nearest line that is known."""
        self.faults.append(Fault(path=self.path, line=self.line(where), message=message))

    def line(self, where: Where) -> int:
        """The nearest line that is known, from 1."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)

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

    def sorted_faults(self) -> list[Fault]:
        """The faults in the order of their lines."""
        return sorted(self.faults, key=lambda fault: fault.line)

    def text(self, where: Where, *, default: str | None = None) -> str:
        """A string."""
        value = self.at(where)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            self.fault(where, f"{_name(where)} must be a text")
            return ""
        return value

    def word(self, where: Where) -> str:
        """A text as it is written, whatever YAML would take it for."""
        word = self.words.get(where, "")
        if not word.strip():
            self.fault(where, f"{_name(where)} must be a text")
        return word

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
                where,
                f"{_name(where)} {str(value)[:60]!r} must be one of "
                f"{', '.join(item.value for item in kind)}",
            )
            return next(iter(kind))

    def localized(self, where: Where) -> Localized:
        """A text in both languages; neither may be missing."""
        value = self.at(where)
        if value is None:
            self.fault(where, f"{_name(where)} is missing; give en and zh-CN")
            return Localized.verbatim("")
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
