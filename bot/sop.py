"""What an SOP is: named steps with a purpose, prompts and a gate; written as YAML, walked by `bot.steps`.

A team's own file in `RCA_KNOWLEDGE_DIR/sops/` with the same id takes the shipped one's place; accepted changes lie over
either. A prompt may say for which incidents it is, and which one taught it:

    - en: …
      zh-CN: …
      learned_from: INC-7
      matches: [latency, 延迟]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from bot.domain.text import Locale, Localized
from bot.errors import ConfigError
from bot.locales import templates_root
from bot.yaml_loader import LOADER

SHIPPED = "inference"
MOST_BYTES = 200_000
MOST_PROMPTS = 30
MOST_TEXT = 600
"""Characters of one prompt: more than two sentences is no prompt but a chapter."""
_INCIDENT = re.compile(r"INC-\d{1,9}")

E = TypeVar("E", bound=StrEnum)


class StepId(StrEnum):
    """The six steps. Their order and ids are fixed; what they ask of people is the file's."""

    SYMPTOM = "symptom"
    INFORMATION = "information"
    HYPOTHESES = "hypotheses"
    VERIFICATION = "verification"
    ROOT_CAUSE = "root_cause"
    REVIEW = "review"


class GateRule(StrEnum):
    """What can be asked for before a step is left; `bot.steps.gates` says how each is checked."""

    STATED = "stated"
    EXACT = "exact"
    SCOPE_CONFIRMED = "scope_confirmed"
    SINCE_KNOWN = "since_known"
    SOURCES_ANSWERED = "sources_answered"
    RANKED = "ranked"
    TESTED = "tested"
    CONTRARY_WEIGHED = "contrary_weighed"
    CAUSE_CONFIRMED = "cause_confirmed"
    FIX_RECORDED = "fix_recorded"
    SYMPTOM_GONE = "symptom_gone"
    REPORT_COMPILED = "report_compiled"
    CHECKLIST_DECIDED = "checklist_decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One thing that a step asks of people.

    learned_from: the incident that taught it, None for one of the file's own.
    matches: words of the symptoms that it is for, in lower case; none: for any incident.
    """

    text: Localized
    learned_from: str | None = None
    matches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SopStep:
    """One step: why it is there, what to do in it, and what must hold before it is left."""

    id: StepId
    title: Localized
    purpose: Localized
    prompts: tuple[Prompt, ...]
    gate: tuple[GateRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sop:
    """A procedure; `steps` holds all six, in order.

    source: the file's own text, which changes are diffs of. version: of the accepted changes over it, 0 without any.
    """

    id: str
    title: Localized
    steps: tuple[SopStep, ...]
    source: str = ""
    version: int = 0

    def step(self, step_id: str) -> SopStep | None:
        """The step of this id."""
        return next((step for step in self.steps if step.id == step_id), None)

    def place(self, step_id: str) -> int:
        """Its place, from 1; 0 for none of the six."""
        return next((n for n, step in enumerate(self.steps, 1) if step.id == step_id), 0)

    def after(self, step_id: str) -> SopStep | None:
        """The step that follows; None after the last."""
        place = self.place(step_id)
        return self.steps[place] if 0 < place < len(self.steps) else None

    def before(self, step_id: str) -> SopStep | None:
        """The step before; None before the first."""
        place = self.place(step_id)
        return self.steps[place - 2] if place > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of an SOP file; prints as `file:line: message`."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def shipped_sops() -> Path:
    """Where the shipped SOPs lie."""
    return templates_root() / "sops"


def load_sop(folders: Sequence[Path], sop_id: str = SHIPPED) -> Sop:
    """The SOP `sop_id`; the last folder that has it wins (shipped first, the team's own after it).

    Raises:
        ConfigError: none has it, or its file has faults; one line per fault.
    """
    found = [folder / f"{sop_id}.yaml" for folder in folders]
    present = [path for path in found if path.is_file()]
    if not present:
        raise ConfigError(
            f"SOP {sop_id}: no {sop_id}.yaml in {', '.join(map(str, folders))}; add the file"
        )
    return _good(_File(present[-1]))


def parse_sop(text: str, path: Path, *, version: int = 0) -> Sop:
    """The SOP of a text; `path` is named in messages, and its stem must be the id.

    Raises:
        ConfigError: it has faults; one line per fault.
    """
    return replace(_good(_File(path, text)), version=version)


def lint(paths: Sequence[Path]) -> list[Fault]:
    """All faults of the SOP files among `paths`, in order of file and line.

    A file counts when it lies in a folder named `sops` or has steps; a folder is searched.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            folder = path / "sops" if (path / "sops").is_dir() else path
            for file in sorted(folder.rglob("*.yaml")):
                if _is_sop(file):
                    files[file] = None
        elif _is_sop(path):
            files[path] = None
    return [fault for file in files for fault in _faults(_File(file))]


def _is_sop(path: Path) -> bool:
    if path.parent.name == "sops":
        return True
    try:
        return any(line.startswith("steps:") for line in path.read_text("utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return False


def _good(file: _File) -> Sop:
    sop = file.sop()
    if sop is None:
        raise ConfigError(*map(str, sorted(file.faults, key=lambda fault: fault.line)))
    return sop


def _faults(file: _File) -> list[Fault]:
    file.sop()
    return sorted(file.faults, key=lambda fault: fault.line)


class _File:
    """One file, read node by node so that every fault has its line."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        """text: in place of what lies at `path`."""
        self.path = path
        self.text = text
        self.faults: list[Fault] = []

    def sop(self) -> Sop | None:
        root = self._compose()
        if root is None:
            return None
        top = self._mapping(root, ("id", "title", "steps"))
        name = self._text(top.get("id"), root, "id")
        if name and name != self.path.stem:
            self._fault(top["id"], f"id is {name!r}, but the file is named {self.path.stem!r}")
        title = self._localized(top.get("title"), root, "title")
        steps = tuple(self._step(node) for node in self._items(top.get("steps"), root, "steps"))
        order = [step.id for step in steps]
        if order != list(StepId):
            self._fault(
                top.get("steps") or root,
                f"steps must be these six, in this order: {', '.join(StepId)}",
            )
        if self.faults:
            return None
        return Sop(id=name, title=title, steps=steps, source=self.text or "")

    def _compose(self) -> yaml.Node | None:
        try:
            if self.text is None:
                self.text = self.path.read_text(encoding="utf-8")
            if len(self.text) > MOST_BYTES:
                raise ValueError(f"is longer than {MOST_BYTES} characters")
            root = yaml.compose(self.text, Loader=LOADER)
        except (OSError, ValueError) as error:
            self.faults.append(Fault(path=self.path, line=1, message=f"cannot be read: {error}"))
            return None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            problem = getattr(error, "problem", None) or "cannot be parsed"
            self.faults.append(Fault(path=self.path, line=line, message=f"no YAML: {problem}"))
            return None
        if root is None:
            self.faults.append(Fault(path=self.path, line=1, message="the file is empty"))
        return root

    def _step(self, node: yaml.Node) -> SopStep:
        parts = self._mapping(node, ("id", "title", "purpose", "prompts", "gate"))
        return SopStep(
            id=self._choice(parts.get("id"), node, StepId),
            title=self._localized(parts.get("title"), node, "title"),
            purpose=self._localized(parts.get("purpose"), node, "purpose"),
            prompts=self._prompts(parts.get("prompts"), node),
            gate=tuple(
                self._choice(item, node, GateRule)
                for item in self._items(parts.get("gate"), node, "gate")
            ),
        )

    def _prompts(self, node: yaml.Node | None, owner: yaml.Node) -> tuple[Prompt, ...]:
        found: list[Prompt] = []
        items = self._items(node, owner, "prompts")
        if len(items) > MOST_PROMPTS:
            self._fault(items[MOST_PROMPTS], f"more than {MOST_PROMPTS} prompts: nobody reads on")
        for item in items:
            languages = (Locale.EN.value, Locale.ZH_CN.value)
            parts = self._mapping(item, (*languages, "learned_from", "matches"))
            words = self._items(parts["matches"], item, "matches") if "matches" in parts else []
            learned = parts.get("learned_from")
            prompt = Prompt(
                text=Localized(*(self._text(parts.get(name), item, name) for name in languages)),
                learned_from=self._text(learned, item, "learned_from") if learned else None,
                matches=tuple(self._text(word, item, "word").lower() for word in words),
            )
            if learned is not None and not _INCIDENT.fullmatch(prompt.learned_from or ""):
                self._fault(learned, "learned_from must be an incident such as INC-7")
            if len(prompt.text.en) > MOST_TEXT or len(prompt.text.zh) > MOST_TEXT:
                self._fault(item, f"a prompt is longer than {MOST_TEXT} characters")
            if any(other.text == prompt.text for other in found):
                self._fault(item, "the same prompt is given twice")
            found.append(prompt)
        return tuple(found)

    def _fault(self, node: yaml.Node, message: str) -> None:
        line = node.start_mark.line + 1
        self.faults.append(Fault(path=self.path, line=line, message=message))

    def _mapping(self, node: yaml.Node, known: Sequence[str]) -> Mapping[str, yaml.Node]:
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

    def _items(self, node: yaml.Node | None, owner: yaml.Node, name: str) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode):
            self._fault(node or owner, f"{name} must be a list")
            return []
        return list(node.value)

    def _text(self, node: yaml.Node | None, owner: yaml.Node, name: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not str(node.value).strip():
            self._fault(node or owner, f"{name} must be a text")
            return ""
        return str(node.value)

    def _localized(self, node: yaml.Node | None, owner: yaml.Node, name: str) -> Localized:
        if node is None:
            self._fault(owner, f"{name} is missing; give en and zh-CN")
            return Localized.verbatim("")
        parts = self._mapping(node, (Locale.EN.value, Locale.ZH_CN.value))
        return Localized(
            self._text(parts.get(Locale.EN.value), node, f"{name}.en"),
            self._text(parts.get(Locale.ZH_CN.value), node, f"{name}.zh-CN"),
        )

    def _choice(self, node: yaml.Node | None, owner: yaml.Node, kind: type[E]) -> E:
        word = node.value if isinstance(node, yaml.ScalarNode) else None
        try:
            return kind(str(word))
        except ValueError:
            self._fault(node or owner, f"{word!r} is none of {', '.join(kind)}")
            return next(iter(kind))
