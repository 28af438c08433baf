"""Reads checklist files, each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.domain.text import Locale, Localized
from bot.errors import ConfigError
from bot.locales import templates_root
from bot.marked_yaml import Fault, Reader, Where

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
    checklist, faults = _judged(Reader.of(path, text, most=MOST_CHARACTERS))
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
    return _judged(Reader.open(path, most=MOST_CHARACTERS))


def _judged(reader: Reader) -> tuple[Checklist | None, list[Fault]]:
    if not reader.faults and not reader.data:
        reader.fault((), "the file is empty")
    checklist = None if reader.faults else _checklist(reader)
    return (None if reader.faults else checklist), reader.sorted_faults()


_ITEM_KEYS = ("id", "step", "probe", "query", "above", "below", "learned_from", "text")


def _checklist(reader: Reader) -> Checklist:
    reader.only((), ("id", "title", "matches", "items"))
    name = reader.word(("id",))
    if name and name != reader.path.stem:
        reader.fault(("id",), f"id is {name!r}, but the file is named {reader.path.stem!r}")
    keys = list(reader.data) if isinstance(reader.data, Mapping) else []
    if "items" in keys and keys[-1] != "items":
        reader.fault(("items",), "items must be the last key: accepted changes are appended")
    return Checklist(
        id=name,
        title=reader.localized(("title",)),
        matches=tuple(reader.word(("matches", at)).lower() for at in reader.items(("matches",))),
        items=_items(reader),
        source=reader.source,
    )


def _items(reader: Reader) -> tuple[ChecklistItem, ...]:
    places = reader.items(("items",))
    if not places or ("items",) not in reader.blocks:
        reader.fault(("items",), "items must be a block list with at least one item")
        return ()
    if len(places) > MOST_ITEMS:
        reader.fault(("items", MOST_ITEMS), f"more than {MOST_ITEMS} items: nobody reads on")
    starts = [reader.line(("items", at)) for at in places]
    ends = [start - 1 for start in starts[1:]] + [len(reader.source.splitlines())]
    items: list[ChecklistItem] = []
    for at, start, end in zip(places, starts, ends, strict=True):
        item = _item(reader, ("items", at), start, end)
        if any(other.id == item.id for other in items):
            reader.fault(("items", at, "id"), f"id {item.id!r} is given twice")
        items.append(item)
    return tuple(items)


def _item(reader: Reader, where: Where, first_line: int, last_line: int) -> ChecklistItem:
    reader.only(where, _ITEM_KEYS)
    _matches(reader, (*where, "id"), _ID, "lower-case letters, digits, hyphens")
    _matches(reader, (*where, "probe"), _PROBE, "the name of a probe")
    _matches(reader, (*where, "learned_from"), _INCIDENT, "an incident such as INC-7")
    _question(reader, where)
    step = reader.word((*where, "step"))
    if step and step not in STEPS:
        reader.fault((*where, "step"), f"step {step!r} is none of {', '.join(STEPS)}")
    return ChecklistItem(
        id=reader.word((*where, "id")),
        step=step,
        text=reader.localized((*where, "text")),
        probe=_optional(reader, (*where, "probe")),
        learned_from=_optional(reader, (*where, "learned_from")),
        first_line=first_line,
        last_line=last_line,
        query=_optional(reader, (*where, "query")),
        above=reader.optional_number((*where, "above")),
        below=reader.optional_number((*where, "below")),
    )


def _matches(reader: Reader, where: Where, form: re.Pattern[str], wanted: str) -> None:
    word = reader.words.get(where)
    if word and not form.fullmatch(word):
        reader.fault(where, f"{where[-1]} {word[:60]!r} must be {wanted}")


def _question(reader: Reader, where: Where) -> None:
    """A query needs one bound to be judged by; a probe judges by itself."""
    parts = reader.at(where)
    given = set(parts) if isinstance(parts, Mapping) else set()
    bounds = [name for name in ("above", "below") if name in given]
    if {"query", "probe"} <= given:
        reader.fault((*where, "query"), "a check has a probe or a query, not both")
    if "query" in given and len(bounds) != 1:
        reader.fault((*where, "query"), "a query needs exactly one of above, below")
    if "query" not in given and bounds:
        reader.fault((*where, bounds[0]), f"{bounds[0]} goes with a query")
    if len(reader.words.get((*where, "query"), "")) > MOST_QUERY:
        reader.fault((*where, "query"), f"query is longer than {MOST_QUERY} characters")
    for locale in Locale:
        text = (*where, "text", locale.value)
        if len(reader.words.get(text, "")) > MOST_TEXT:
            reader.fault(text, f"text is longer than {MOST_TEXT} characters")


def _optional(reader: Reader, where: Where) -> str | None:
    return reader.word(where) if where in reader.lines else None
