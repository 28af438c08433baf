"""Reads one cause file."""

from __future__ import annotations

from bot.cause import (
    Advice,
    Category,
    Cause,
    Cost,
    DeeperLink,
    EvidenceRule,
    Experiment,
    Guilt,
    Refuter,
    SymptomKind,
)
from bot.diagnosis.read_predicate import read_kinds, read_test
from bot.domain.hypothesis import Layer
from bot.domain.text import Localized
from bot.marked_yaml import Reader, Where

_KEYS = (
    "id", "title", "summary", "layer", "category", "prior", "local", "families", "symptoms",
    "evidence", "refuters", "experiments", "guilt", "commands", "fixes", "prevention", "checklist",
    "deeper",
)  # fmt: skip
_STRONGEST = 6.0
"""Largest weight that a file may give: odds of four hundred, more than any single observation carries."""


def read_cause(reader: Reader) -> Cause:
    """The cause of a file; faults are booked with the reader, and what has faults must not be used."""
    reader.only((), _KEYS)
    if reader.at(("id",)) != reader.path.stem:
        reader.fault(("id",), f"id must be the file's name, {reader.path.stem!r}")
    cause = Cause(
        id=reader.text(("id",)),
        title=reader.localized(("title",)),
        summary=reader.localized(("summary",)),
        layer=reader.choice(("layer",), Layer),
        category=reader.choice(("category",), Category),
        prior=_share(reader, ("prior",)),
        local=reader.flag(("local",), default=True),
        families=int(reader.number(("families",), default=2)),
        symptoms=tuple(
            reader.choice(("symptoms", at), SymptomKind) for at in reader.items(("symptoms",))
        ),
        evidence=tuple(_rule(reader, ("evidence", at)) for at in reader.items(("evidence",))),
        refuters=tuple(_refuter(reader, ("refuters", at)) for at in reader.items(("refuters",))),
        experiments=tuple(
            _experiment(reader, ("experiments", at)) for at in reader.items(("experiments",))
        ),
        guilt=_guilt(reader, ("guilt",)),
        commands=_advice(reader, ("commands",)),
        fixes=_advice(reader, ("fixes",)),
        prevention=_texts(reader, ("prevention",)),
        checklist=_texts(reader, ("checklist",)),
        deeper=tuple(_deeper(reader, ("deeper", at)) for at in reader.items(("deeper",))),
    )
    for key in ("symptoms", "evidence", "experiments", "fixes", "prevention", "checklist"):
        if not reader.items((key,)):
            reader.fault((key,), f"{key} must list at least one entry")
    ids = [rule.id for rule in cause.evidence] + [item.id for item in cause.refuters]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        reader.fault(("evidence",), f"{name!r} is used twice in evidence and refuters")
    return cause


def _share(reader: Reader, where: Where) -> float:
    share = reader.number(where)
    if not 0 < share < 1:
        reader.fault(where, "prior must be between 0 and 1")
        return 0.5
    return share


def _rule(reader: Reader, where: Where) -> EvidenceRule:
    reader.only(where, ["id", "family", "when", "weight", "absent", "text", "basis"])
    weight = reader.number((*where, "weight"))
    absent = reader.number((*where, "absent"), default=0.0)
    if weight == 0 or abs(weight) > _STRONGEST:
        reader.fault(
            (*where, "weight"), f"weight must be between -{_STRONGEST:g} and {_STRONGEST:g}, not 0"
        )
    if absent > 0 or (weight < 0 and absent):
        reader.fault(
            (*where, "absent"), "absent must not be positive, and goes only with a weight for"
        )
    return EvidenceRule(
        id=reader.text((*where, "id")),
        family=reader.text((*where, "family")),
        test=read_test(reader, (*where, "when")),
        weight=weight,
        absent=absent,
        text=reader.localized((*where, "text")),
        basis=reader.text((*where, "basis")),
    )


def _refuter(reader: Reader, where: Where) -> Refuter:
    reader.only(where, ["id", "when", "text", "basis"])
    return Refuter(
        id=reader.text((*where, "id")),
        test=read_test(reader, (*where, "when")),
        text=reader.localized((*where, "text")),
        basis=reader.text((*where, "basis")),
    )


def _experiment(reader: Reader, where: Where) -> Experiment:
    reader.only(
        where,
        ["probe", "query", "args", "cost", "expects", "would_refute", "predicts", "contradicts", "command"],
    )  # fmt: skip
    probe = reader.at((*where, "probe"))
    query = reader.at((*where, "query"))
    if (probe is None) == (query is None):
        reader.fault(where, "an experiment has either probe or query")
    args = reader.at((*where, "args")) or {}
    if not isinstance(args, dict):
        reader.fault((*where, "args"), "args must be a mapping")
        args = {}
    return Experiment(
        probe=reader.text((*where, "probe")) if probe is not None else None,
        query=reader.text((*where, "query")) if query is not None else None,
        args=args,
        cost=reader.choice((*where, "cost"), Cost, default=Cost.CHEAP),
        expects=reader.localized((*where, "expects")),
        would_refute=reader.localized((*where, "would_refute")),
        predicts=tuple(
            reader.text((*where, "predicts", at)) for at in reader.items((*where, "predicts"))
        ),
        contradicts=tuple(
            reader.text((*where, "contradicts", at)) for at in reader.items((*where, "contradicts"))
        ),
        command=reader.text((*where, "command")) if reader.at((*where, "command")) else None,
    )


def _guilt(reader: Reader, where: Where) -> Guilt | None:
    if reader.at(where) is None:
        return None
    reader.only(where, ["kinds", "says"])
    says = reader.text((*where, "says")) if reader.at((*where, "says")) else None
    return Guilt(kinds=read_kinds(reader, (*where, "kinds")), pattern=says)


def _deeper(reader: Reader, where: Where) -> DeeperLink:
    reader.only(where, ["cause", "when"])
    test = read_test(reader, (*where, "when")) if reader.at((*where, "when")) is not None else None
    return DeeperLink(cause=reader.text((*where, "cause")), test=test)


def _advice(reader: Reader, where: Where) -> tuple[Advice, ...]:
    found = []
    for at in reader.items(where):
        spot = (*where, at)
        reader.only(spot, ["text", "command"])
        command = reader.text((*spot, "command")) if reader.at((*spot, "command")) else None
        found.append(Advice(text=reader.localized((*spot, "text")), command=command))
    return tuple(found)


def _texts(reader: Reader, where: Where) -> tuple[Localized, ...]:
    return tuple(reader.localized((*where, at)) for at in reader.items(where))
