"""Reads checklist files, each fault with its line."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bot.domain.text import Locale, Localized
from bot.errors import ConfigError
from bot.locales import templates_root
from bot.yaml_loader import LOADER

STEPS = ("symptom", "information", "hypotheses", "verification", "root_cause", "review")
MOST_CHARACTERS = 200_000
MOST_ITEMS = 200
MOST_TEXT = 600
"""Characters of one check: more than two sentences is no check but a chapter."""
MOST_QUERY = 2_000
_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
_PROBE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_INCIDENT = re.compile(r"INC-\d{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistItem:
    """One thing to look at. first_line / last_line: where it stands in the file, from 1.

    probe: the probe that answers it. query: PromQL that answers it, abnormal above `above` or below `below`.
    learned_from: the incident that taught it.
    """

    id: str
    step: str
    text: Localized
    probe: str | None
    learned_from: str | None
    first_line: int
    last_line: int
    query: str | None = None
    above: float | None = None
    below: float | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether a probe or a query can answer it."""
        return self.probe is not None or self.query is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """A list of items and the file's own text, which changes are diffs of."""

    id: str
    title: Localized
    matches: tuple[str, ...]
    items: tuple[ChecklistItem, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a checklist file; prints as `file:line: message`."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def shipped_checklists() -> Path:
    """Where the shipped checklists lie."""
    return templates_root() / "checklists"


def load_checklists(folders: Sequence[Path]) -> dict[str, Checklist]:
    """All checklists by id; a later folder's file takes the place of an earlier one's.

    Raises:
        ConfigError: with one line per fault.
    """
    found: dict[str, Checklist] = {}
    faults: list[Fault] = []
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            checklist, wrong = _read(path)
            faults += wrong
            if checklist is not None:
                found[checklist.id] = checklist
    if faults:
        raise ConfigError(*map(str, faults))
    return dict(sorted(found.items()))


def lint(paths: Sequence[Path], probes: Collection[str] = ()) -> list[Fault]:
    """All faults of the checklist files among `paths`; a folder is searched.

    A file counts when it lies in a folder named `checklists` or has items. probes: the names that a check may give;
    none to take any.
    """
    files: dict[Path, None] = {}
    for path in paths:
        inside = path / "checklists" if (path / "checklists").is_dir() else path
        for file in sorted(inside.rglob("*.yaml")) if inside.is_dir() else [inside]:
            if _is_checklist(file):
                files[file] = None
    found: list[Fault] = []
    for file in files:
        checklist, faults = _read(file)
        found += faults
        for item in checklist.items if checklist and probes else ():
            if item.probe is not None and item.probe not in probes:
                message = f"there is no probe {item.probe!r}; known: {', '.join(sorted(probes))}"
                found.append(Fault(path=file, line=item.first_line, message=message))
    return found


def parse_checklist(text: str, path: Path) -> Checklist:
    """Reads a checklist's text; `path` names it in faults.

    Raises:
        ConfigError: with one line per fault.
    """
    checklist, faults = _parse(text, path)
    if checklist is None:
        raise ConfigError(*map(str, faults))
    return checklist


def _is_checklist(path: Path) -> bool:
    if path.parent.name == "checklists":
        return True
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return any(line.startswith("items:") for line in lines)


def _read(path: Path) -> tuple[Checklist | None, list[Fault]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return None, [Fault(path=path, line=1, message=f"cannot be read: {error}")]
    return _parse(text, path)


def _parse(text: str, path: Path) -> tuple[Checklist | None, list[Fault]]:
    if len(text) > MOST_CHARACTERS:
        message = f"is longer than {MOST_CHARACTERS} characters"
        return None, [Fault(path=path, line=1, message=message)]
    try:
        root = yaml.compose(text, Loader=LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "cannot be parsed"
        line = mark.line + 1 if mark else 1
        return None, [Fault(path=path, line=line, message=f"no YAML: {problem}")]
    if root is None:
        return None, [Fault(path=path, line=1, message="the file is empty")]
    file = _File(path, text)
    checklist = file.checklist(root)
    faults = sorted(file.faults, key=lambda fault: fault.line)
    return (None if faults else checklist), faults


_ITEM_KEYS = ("id", "step", "probe", "query", "above", "below", "learned_from", "text")


class _File:
    """One file, read node by node so that every fault has its line."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.faults: list[Fault] = []

    def checklist(self, root: yaml.Node) -> Checklist:
        parts = self._mapping(root, ("id", "title", "matches", "items"))
        name = self._text(parts.get("id"), root, "id")
        if name and name != self.path.stem:
            message = f"id is {name!r}, but the file is named {self.path.stem!r}"
            self._fault(parts["id"], message)
        if parts and list(parts)[-1] != "items" and "items" in parts:
            self._fault(parts["items"], "items must be the last key: accepted changes are appended")
        title = self._localized(parts.get("title"), root, "title")
        words = self._list(parts["matches"], root, "matches") if "matches" in parts else []
        items = self._items(parts.get("items"), root)
        return Checklist(
            id=name,
            title=title,
            matches=tuple(self._text(word, root, "word").lower() for word in words),
            items=items,
            source=self.text,
        )

    def _items(self, node: yaml.Node | None, root: yaml.Node) -> tuple[ChecklistItem, ...]:
        nodes = self._list(node, root, "items")
        if isinstance(node, yaml.SequenceNode) and (not nodes or node.flow_style):
            self._fault(node, "items must be a block list with at least one item")
            nodes = []
        if not nodes:
            return ()
        if len(nodes) > MOST_ITEMS:
            self._fault(nodes[MOST_ITEMS], f"more than {MOST_ITEMS} items: nobody reads on")
        starts = [item.start_mark.line + 1 for item in nodes]
        ends = [start - 1 for start in starts[1:]] + [len(self.text.splitlines())]
        items: list[ChecklistItem] = []
        for item, start, end in zip(nodes, starts, ends, strict=True):
            parts = self._mapping(item, _ITEM_KEYS)
            name = self._text(parts.get("id"), item, "id")
            self._matches(parts, "id", _ID, "lower-case letters, digits, hyphens")
            self._matches(parts, "probe", _PROBE, "the name of a probe")
            self._matches(parts, "learned_from", _INCIDENT, "an incident such as INC-7")
            self._question(parts)
            if any(other.id == name for other in items):
                self._fault(parts.get("id") or item, f"id {name!r} is given twice")
            step = self._text(parts.get("step"), item, "step")
            if step and step not in STEPS:
                self._fault(parts["step"], f"step {step!r} is none of {', '.join(STEPS)}")
            items.append(
                ChecklistItem(
                    id=name,
                    step=step,
                    text=self._localized(parts.get("text"), item, "text"),
                    probe=self._optional(parts, "probe"),
                    learned_from=self._optional(parts, "learned_from"),
                    first_line=start,
                    last_line=end,
                    query=self._optional(parts, "query"),
                    above=self._bound(parts, "above"),
                    below=self._bound(parts, "below"),
                )
            )
        return tuple(items)

    def _fault(self, node: yaml.Node, message: str) -> None:
        line = node.start_mark.line + 1
        self.faults.append(Fault(path=self.path, line=line, message=message))

    def _mapping(self, node: yaml.Node, known: Sequence[str]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            self._fault(node, f"must be a mapping with {', '.join(known)}")
            return {}
        parts: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value)
            if name not in known:
                self._fault(key, f"unknown key {name!r}; known: {', '.join(known)}")
            elif name in parts:
                self._fault(key, f"{name!r} is given twice")
            parts[name] = value
        return parts

    def _list(self, node: yaml.Node | None, owner: yaml.Node, name: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            self._fault(node or owner, f"{name} must be a list")
            return []
        return list(node.value)

    def _text(self, node: yaml.Node | None, owner: yaml.Node, name: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not str(node.value).strip():
            self._fault(node or owner, f"{name} must be a text")
            return ""
        return str(node.value)

    def _matches(
        self, parts: dict[str, yaml.Node], name: str, form: re.Pattern[str], wanted: str
    ) -> None:
        node = parts.get(name)
        if isinstance(node, yaml.ScalarNode) and node.value and not form.fullmatch(node.value):
            self._fault(node, f"{name} {node.value[:60]!r} must be {wanted}")

    def _question(self, parts: dict[str, yaml.Node]) -> None:
        """A query needs one bound to be judged by; a probe judges by itself."""
        bounds = [name for name in ("above", "below") if name in parts]
        if "query" in parts and "probe" in parts:
            self._fault(parts["query"], "a check has a probe or a query, not both")
        if "query" in parts and len(bounds) != 1:
            self._fault(parts["query"], "a query needs exactly one of above, below")
        if "query" not in parts and bounds:
            self._fault(parts[bounds[0]], f"{bounds[0]} goes with a query")
        query = parts.get("query")
        if isinstance(query, yaml.ScalarNode) and len(str(query.value)) > MOST_QUERY:
            self._fault(query, f"query is longer than {MOST_QUERY} characters")
        text = parts.get("text")
        for _, value in text.value if isinstance(text, yaml.MappingNode) else ():
            if len(str(value.value)) > MOST_TEXT:
                self._fault(value, f"text is longer than {MOST_TEXT} characters")

    def _bound(self, parts: dict[str, yaml.Node], name: str) -> float | None:
        node = parts.get(name)
        if node is None:
            return None
        try:
            value = float(str(node.value))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self._fault(node, f"{name} must be a number")
            return None
        return value

    def _optional(self, parts: dict[str, yaml.Node], name: str) -> str | None:
        node = parts.get(name)
        return None if node is None else self._text(node, node, name)

    def _localized(self, node: yaml.Node | None, owner: yaml.Node, name: str) -> Localized:
        if node is None:
            self._fault(owner, f"{name} is missing; give en and zh-CN")
            return Localized.verbatim("")
        parts = self._mapping(node, (Locale.EN.value, Locale.ZH_CN.value))
        return Localized(
            self._text(parts.get(Locale.EN.value), node, f"{name}.en"),
            self._text(parts.get(Locale.ZH_CN.value), node, f"{name}.zh-CN"),
        )
