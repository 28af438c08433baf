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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from bot.domain.text import Locale, Localized
from bot.errors import ConfigError
from bot.locales import templates_root
from bot.marked_yaml import Fault, Reader, Where

SHIPPED = "inference"
MOST_CHARACTERS = 200_000
MOST_PROMPTS = 30
MOST_TEXT = 600
"""Characters of one prompt: more than two sentences is no prompt but a chapter."""
_INCIDENT = re.compile(r"INC-\d{1,9}")


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
    return _good(Reader.open(present[-1], most=MOST_CHARACTERS))


def parse_sop(text: str, path: Path, *, version: int = 0) -> Sop:
    """The SOP of a text; `path` is named in messages, and its stem must be the id.

    Raises:
        ConfigError: it has faults; one line per fault.
    """
    return replace(_good(Reader.of(path, text, most=MOST_CHARACTERS)), version=version)


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
    return [fault for file in files for fault in _faults(Reader.open(file, most=MOST_CHARACTERS))]


def _is_sop(path: Path) -> bool:
    if path.parent.name == "sops":
        return True
    try:
        return any(line.startswith("steps:") for line in path.read_text("utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return False


def _good(reader: Reader) -> Sop:
    sop = _sop(reader)
    if reader.faults:
        raise ConfigError(*map(str, reader.sorted_faults()))
    return sop


def _faults(reader: Reader) -> list[Fault]:
    _sop(reader)
    return reader.sorted_faults()


def _sop(reader: Reader) -> Sop:
    """What the file says; worth something only where the reader has found no fault."""
    nothing = Sop(id="", title=Localized.verbatim(""), steps=())
    if reader.faults:
        return nothing
    if not reader.data:
        reader.fault((), "the file is empty")
        return nothing
    reader.only((), ("id", "title", "steps"))
    name = reader.word(("id",))
    if name and name != reader.path.stem:
        reader.fault(("id",), f"id is {name!r}, but the file is named {reader.path.stem!r}")
    title = reader.localized(("title",))
    steps = tuple(_step(reader, ("steps", at)) for at in reader.items(("steps",)))
    if [step.id for step in steps] != list(StepId):
        reader.fault(("steps",), f"steps must be these six, in this order: {', '.join(StepId)}")
    return Sop(id=name, title=title, steps=steps, source=reader.source)


def _step(reader: Reader, where: Where) -> SopStep:
    reader.only(where, ("id", "title", "purpose", "prompts", "gate"))
    gate = (*where, "gate")
    return SopStep(
        id=reader.choice((*where, "id"), StepId),
        title=reader.localized((*where, "title")),
        purpose=reader.localized((*where, "purpose")),
        prompts=_prompts(reader, (*where, "prompts")),
        gate=tuple(reader.choice((*gate, at), GateRule) for at in reader.items(gate)),
    )


def _prompts(reader: Reader, where: Where) -> tuple[Prompt, ...]:
    found: list[Prompt] = []
    items = reader.items(where)
    if len(items) > MOST_PROMPTS:
        reader.fault((*where, MOST_PROMPTS), f"more than {MOST_PROMPTS} prompts: nobody reads on")
    for at in items:
        prompt = _prompt(reader, (*where, at))
        if any(other.text == prompt.text for other in found):
            reader.fault((*where, at), "the same prompt is given twice")
        found.append(prompt)
    return tuple(found)


def _prompt(reader: Reader, where: Where) -> Prompt:
    languages = (Locale.EN.value, Locale.ZH_CN.value)
    reader.only(where, (*languages, "learned_from", "matches"))
    matches, learned = (*where, "matches"), (*where, "learned_from")
    prompt = Prompt(
        text=Localized(*(reader.word((*where, name)) for name in languages)),
        learned_from=reader.word(learned) if reader.at(learned) is not None else None,
        matches=tuple(reader.word((*matches, at)).lower() for at in reader.items(matches)),
    )
    if prompt.learned_from is not None and not _INCIDENT.fullmatch(prompt.learned_from):
        reader.fault(learned, "learned_from must be an incident such as INC-7")
    if len(prompt.text.en) > MOST_TEXT or len(prompt.text.zh) > MOST_TEXT:
        reader.fault(where, f"a prompt is longer than {MOST_TEXT} characters")
    return prompt
