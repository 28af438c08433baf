"""The knowledge files: causes, signals and findings of the product, and a team's own over them.

A directory holds `<cause id>.yaml`, `signals/*.yaml` and `findings/*.yaml`; the same id in a later directory wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bot.cause import (
    Catalogue,
    Cause,
    KnownFinding,
    Movement,
    Signal,
    SymptomKind,
    Test,
    findings_of,
    signals_of,
)
from bot.diagnosis.read_cause import read_cause
from bot.domain.hypothesis import NOT_ESTABLISHED, Layer
from bot.errors import ConfigError
from bot.locales import templates_root
from bot.marked_yaml import Fault, Reader

_SIGNAL_KEYS = (
    "title", "layer", "unit", "queries", "floor", "ratio", "symptom", "direction", "seasonal", "trend",
    "recorded",
)  # fmt: skip


def shipped_causes() -> Path:
    """The directory of the causes that come with the product."""
    return templates_root() / "causes"


def load_causes(directories: Sequence[Path]) -> Catalogue:
    """All knowledge of the directories, the later over the earlier.

    Raises:
        ConfigError: with one `file:line: message` per fault.
    """
    catalogue, faults = _read(directories)
    if faults:
        raise ConfigError(*(str(fault) for fault in faults))
    return catalogue


def with_cause(catalogue: Catalogue, path: Path, text: str) -> Catalogue:
    """The catalogue with one more cause, judged as `lint` judges its file.

    Raises:
        ConfigError: with one `file:line: message` per fault.
    """
    reader = Reader.of(path, text)
    if not reader.faults:
        cause = read_cause(reader)
        causes = {**catalogue.causes, cause.id: cause}
        _cross_check(cause, reader, causes, dict(catalogue.signals), dict(catalogue.findings))
        if not reader.faults:
            return replace(catalogue, causes=dict(sorted(causes.items())))
    raise ConfigError(*map(str, reader.faults))


def lint(paths: Iterable[Path]) -> list[Fault]:
    """The faults of cause files or directories of them, judged together with the shipped knowledge."""
    directories = [shipped_causes()]
    wanted: list[Path] = []
    asked = list(paths)
    for path in asked:
        inside = path / "causes" if (path / "causes").is_dir() else path
        if _is_of_another_kind(inside):
            continue
        wanted.append(inside)
        directories.append(inside if inside.is_dir() else inside.parent)
    if asked and not wanted:
        return []
    _, faults = _read(directories, only=[path for path in wanted if path.is_file()])
    return [
        fault
        for fault in faults
        if not wanted or any(fault.path == path or path in fault.path.parents for path in wanted)
    ]


def _is_of_another_kind(path: Path) -> bool:
    """Whether a file or folder holds SOPs or checklists, which have a lint of their own."""
    if (path if path.is_dir() else path.parent).name in ("sops", "checklists"):
        return True
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    except (OSError, UnicodeDecodeError):
        return False
    return any(line.startswith(("steps:", "items:")) for line in lines)


def _read(
    directories: Sequence[Path], *, only: Sequence[Path] = ()
) -> tuple[Catalogue, list[Fault]]:
    causes: dict[str, Cause] = {}
    signals: dict[str, Signal] = {}
    findings: dict[str, KnownFinding] = {}
    readers: dict[str, Reader] = {}
    faults: list[Fault] = []
    seen: set[Path] = set()
    for directory in directories:
        if directory in seen:
            continue
        seen.add(directory)
        for path in sorted((directory / "signals").glob("*.yaml")):
            reader = Reader.open(path)
            found = [_signal(reader, name) for name in reader.data or ()]
            faults.extend(reader.faults)
            signals.update((signal.name, signal) for signal in found)
        for path in sorted((directory / "findings").glob("*.yaml")):
            reader = Reader.open(path)
            known = [_finding(reader, name) for name in reader.data or ()]
            faults.extend(reader.faults)
            findings.update((finding.id, finding) for finding in known)
        files = sorted(directory.glob("*.yaml"))
        restricted = [path for path in only if path.parent == directory]
        for path in restricted or files:
            reader = Reader.open(path)
            if reader.faults:
                faults.extend(reader.faults)
                continue
            cause = read_cause(reader)
            causes[cause.id] = cause
            readers[cause.id] = reader
    for name, cause in causes.items():
        _cross_check(cause, readers[name], causes, signals, findings)
        faults.extend(readers[name].faults)
    ordered = Catalogue(
        causes=dict(sorted(causes.items())),
        signals=dict(sorted(signals.items())),
        findings=dict(sorted(findings.items())),
    )
    return ordered, sorted(faults, key=lambda fault: (str(fault.path), fault.line, fault.message))


def _cross_check(
    cause: Cause,
    reader: Reader,
    causes: dict[str, Cause],
    signals: dict[str, Signal],
    findings: dict[str, KnownFinding],
) -> None:
    if cause.id == NOT_ESTABLISHED:
        reader.fault(("id",), f"{NOT_ESTABLISHED} is the engine's own answer; choose another id")
    tests: list[tuple[tuple[str | int, ...], Test]] = [
        *((("evidence", at), rule.test) for at, rule in enumerate(cause.evidence)),
        *((("refuters", at), item.test) for at, item in enumerate(cause.refuters)),
        *((("deeper", at), link.test) for at, link in enumerate(cause.deeper) if link.test),
    ]
    for where, test in tests:
        for name in signals_of(test):
            if name not in signals:
                reader.fault((*where, "when"), f"unknown signal {name!r}; add it under signals/")
        for name in findings_of(test):
            if name not in findings:
                reader.fault((*where, "when"), f"unknown finding {name!r}; add it under findings/")
    for at, link in enumerate(cause.deeper):
        if link.cause not in causes:
            reader.fault(("deeper", at), f"unknown cause {link.cause!r}")
    probes = {finding.probe for finding in findings.values()} | {"profile"}
    for at, experiment in enumerate(cause.experiments):
        if experiment.probe is not None and experiment.probe not in probes:
            reader.fault(("experiments", at, "probe"), f"unknown probe {experiment.probe!r}")
        for name in (*experiment.predicts, *experiment.contradicts):
            if name not in findings:
                reader.fault(("experiments", at), f"unknown finding {name!r}")


def _signal(reader: Reader, name: str) -> Signal:
    where = (name,)
    reader.only(where, _SIGNAL_KEYS)
    symptom = reader.at((name, "symptom"))
    signal = Signal(
        name=name,
        title=reader.localized((name, "title")),
        layer=reader.choice((name, "layer"), Layer),
        unit=reader.text((name, "unit")),
        queries=tuple(reader.text((name, "queries", at)) for at in reader.items((name, "queries"))),
        floor=reader.number((name, "floor"), default=0.0),
        ratio=reader.number((name, "ratio"), default=1.5),
        direction=reader.choice((name, "direction"), Movement, default=Movement.UP),
        seasonal=reader.flag((name, "seasonal"), default=False),
        trend=reader.flag((name, "trend"), default=False),
    )
    if reader.at((name, "recorded")) is not None:
        pattern = reader.text((name, "recorded"))
        try:
            re.compile(pattern)
        except re.error as error:
            reader.fault((name, "recorded"), f"recorded is no regular expression: {error}")
        signal = replace(signal, recorded=pattern)
    if symptom is not None:
        signal = replace(signal, symptom=reader.choice((name, "symptom"), SymptomKind))
    return signal


def _finding(reader: Reader, name: str) -> KnownFinding:
    reader.only((name,), ["probe", "layer", "title", "clean"])
    return KnownFinding(
        id=name,
        probe=reader.text((name, "probe")),
        layer=reader.choice((name, "layer"), Layer),
        title=reader.localized((name, "title")),
        clean=reader.flag((name, "clean"), default=False),
    )
