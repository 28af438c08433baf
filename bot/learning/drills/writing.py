"""Writes the script of an exercise from a cause's own evidence: what it says would be seen is what will be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from bot.cause import (
    AllOf,
    AnyOf,
    Catalogue,
    Cause,
    ChangeOwner,
    ChangeTest,
    FindingTest,
    LogTest,
    Movement,
    Not,
    Signal,
    SignalTest,
    SymptomKind,
    SymptomTest,
    Test,
)
from bot.domain.change import Change, ChangeKind
from bot.learning.drills.calm import level_of
from bot.learning.drills.sampling import sample
from bot.learning.drills.script import NEIGHBOUR, ONSET, Course, Found, Said, Script, Stage

# Which signals show a symptom to callers; a fault that callers cannot see would be no incident.
_SHOWN: dict[SymptomKind, tuple[tuple[str, float], ...]] = {
    SymptomKind.LATENCY: (
        ("latency.client", 6.0),
        ("latency.server", 6.0),
        ("latency.tail", 5.0),
        ("load.inflight", 5.0),
    ),
    SymptomKind.ERRORS: (("errors.ratio", 90.0),),
    SymptomKind.QUALITY: (("quality.ratio", 0.8),),
    SymptomKind.THROUGHPUT: (("throughput.answers", 0.4),),
    SymptomKind.GPU_IDLE: (("gpu.busy", 0.4),),
    SymptomKind.INSTABILITY: (("host.memory_pressure", 400.0),),
    SymptomKind.LOGS_MISSING: (("logs.lines", 0.0),),
    SymptomKind.TRACES_MISSING: (("spans.received", 0.0),),
}
_UNPLAYED = ("traces.",)
"""Signals that follow from others: no trace arrives where no span does."""

_RATIO_TOP = 0.98


def write_script(cause: Cause, catalogue: Catalogue, stage: Stage) -> Script:
    """The script for a cause; deterministic for the same knowledge and stage."""
    writer = _Writer(catalogue=catalogue, stage=stage)
    symptom = next((kind for kind in cause.symptoms if kind in _SHOWN), SymptomKind.LATENCY)
    for kind in dict.fromkeys((symptom, *_asked_symptoms(cause))):
        for name, factor in _SHOWN[kind]:
            signal = catalogue.signals.get(name)
            if signal is not None:
                writer.move(signal, level_of(signal) * factor)
    for rule in sorted(cause.evidence, key=lambda rule: -rule.weight):
        if rule.weight > 0:
            writer.play(rule.test)
    # What would exclude the cause must not be seen either.
    for refuter in cause.refuters:
        writer.prevent(refuter.test)
    return Script(
        cause=cause.id,
        courses=writer.courses,
        lines=tuple(writer.lines),
        changes=(_bystander(stage), *writer.changes),
        findings={name: tuple(found) for name, found in writer.findings.items()},
        is_local=cause.local,
    )


def _asked_symptoms(cause: Cause) -> list[SymptomKind]:
    """Symptoms that the cause's own evidence names."""
    found = [
        test.symptom
        for rule in cause.evidence
        if rule.weight >= 1
        for test in (rule.test.parts if isinstance(rule.test, AllOf | AnyOf) else (rule.test,))
        if isinstance(test, SymptomTest) and test.symptom in _SHOWN
    ]
    return found[:1]


@dataclass(slots=True, kw_only=True)
class _Writer:
    """Collects what has to be seen; a later demand never undoes an earlier one."""

    catalogue: Catalogue
    stage: Stage
    courses: dict[str, Course] = field(default_factory=dict)
    lines: list[Said] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    findings: dict[str, list[Found]] = field(default_factory=dict)
    calm: set[str] = field(default_factory=set)
    clean: set[str] = field(default_factory=set)

    def move(self, signal: Signal, sick: float, *, rises: bool = False) -> bool:
        """Lets a signal stand elsewhere since the onset."""
        if signal.name in self.calm or signal.name.startswith(_UNPLAYED):
            return False
        self.courses.setdefault(signal.name, Course(usual=level_of(signal), sick=sick, rises=rises))
        return True

    def play(self, test: Test) -> bool:
        """Makes a test hold; False where an earlier demand or the means of an exercise do not allow it."""
        match test:
            case SignalTest():
                return self._signal(test)
            case FindingTest():
                return self._finding(test)
            case LogTest():
                return self._log(test)
            case ChangeTest():
                return self._change(test)
            case SymptomTest():
                return any(name in self.courses for name, _ in _SHOWN.get(test.symptom, ()))
            case AllOf(parts=parts):
                return all(self.play(part) for part in parts)
            case AnyOf(parts=parts):
                return any(self.play(part) for part in parts)
            case Not(part=part):
                return self.prevent(part)

    def prevent(self, test: Test) -> bool:
        """Makes a test fail, or leaves it open."""
        match test:
            case SignalTest(movement=Movement.NOT_UP | Movement.FLAT):
                return self._signal(_as(test, Movement.UP))
            case SignalTest(movement=Movement.NOT_DOWN):
                return self._signal(_as(test, Movement.DOWN))
            case SignalTest():
                return test.signal not in self.courses
            case FindingTest():
                known = self.catalogue.findings.get(test.finding)
                if known is not None and known.clean:
                    # The probe must not call itself clean: it says nothing unless it found something.
                    self.clean.discard(known.probe)
                    self.findings.setdefault(known.probe, [])
                return True
            case AllOf(parts=parts):
                return any(self.prevent(part) for part in parts)
            case AnyOf(parts=parts):
                return all(self.prevent(part) for part in parts)
            case Not(part=part):
                return self.play(part)
            case LogTest() | ChangeTest() | SymptomTest():
                return True

    def _signal(self, test: SignalTest) -> bool:
        signal = self.catalogue.signals.get(test.signal)
        if signal is None:
            return False
        usual = level_of(signal)
        held = self.courses.get(test.signal)
        match test.movement:
            case Movement.FLAT | Movement.NOT_UP | Movement.NOT_DOWN:
                if held is not None:
                    return (test.movement is Movement.NOT_UP and held.sick <= usual) or (
                        test.movement is Movement.NOT_DOWN and held.sick >= usual
                    )
                self.calm.add(test.signal)
                return True
            case Movement.UP | Movement.CHANGED:
                return self.move(signal, _raised(signal, usual, test))
            case Movement.DOWN:
                return self.move(signal, _lowered(signal, usual, test))
            case Movement.STOPPED:
                return self.move(signal, 0.0)
            case Movement.ABOVE:
                mark = test.value or 0.0
                top = (
                    min(mark * 1.5, max(mark, _RATIO_TOP)) if signal.unit == "ratio" else mark * 1.5
                )
                return self.move(signal, max(top, usual))
            case Movement.BELOW:
                return self.move(signal, min((test.value or 0.0) * 0.5, usual))
            case Movement.RISING:
                grown = 3 * (test.delta or signal.floor)
                return self.move(signal, usual + grown, rises=True)

    def _finding(self, test: FindingTest) -> bool:
        known = self.catalogue.findings.get(test.finding)
        if known is None or known.clean:
            return False
        summary = known.title.en
        if test.pattern is not None:
            written = sample(test.pattern)
            if written is None:
                return False
            summary = f"{summary}: {written}" if written.strip() else summary
        found = self.findings.setdefault(known.probe, [])
        if all(item.id != test.finding for item in found):
            found.append(Found(id=test.finding, summary=summary))
        return True

    def _log(self, test: LogTest) -> bool:
        written = sample(test.pattern)
        if written is None or "logs.lines" in self.courses:
            return False
        self.lines.append(Said(text=written, place=test.place, count=test.minimum + 3))
        return True

    def _change(self, test: ChangeTest) -> bool:
        written = sample(test.pattern) if test.pattern else "new release"
        if written is None:
            return False
        neighbour = test.owner is ChangeOwner.NEIGHBOUR
        if neighbour and not {"writes.others", "host.cpu_neighbour"} & self.courses.keys():
            return False
        within = test.within_seconds or 1_800.0
        self.changes.append(
            Change(
                id=f"drill-{len(self.changes) + 1}",
                kind=test.kinds[0],
                service=NEIGHBOUR if neighbour else self.stage.service,
                summary=f"{test.kinds[0].value}: {written}",
                at=self.stage.began - ONSET - timedelta(seconds=min(within / 2, 240.0)),
            )
        )
        return True


def _bystander(stage: Stage) -> Change:
    """An innocent release shortly before, as there is one before every real incident."""
    return Change(
        id="drill-0",
        kind=ChangeKind.DEPLOY,
        service="help-pages",
        summary="deploy: new wording on the help pages",
        at=stage.began - ONSET - timedelta(minutes=25),
    )


def _as(test: SignalTest, movement: Movement) -> SignalTest:
    return SignalTest(
        signal=test.signal, movement=movement, ratio=test.ratio, delta=test.delta, usual=test.usual
    )


def _raised(signal: Signal, usual: float, test: SignalTest) -> float:
    ratio = test.ratio if test.ratio is not None else signal.ratio
    ratio = ratio if ratio >= 1 else 1 / ratio
    delta = test.delta if test.delta is not None else signal.floor
    raised = max(usual * ratio * 1.6, usual + 3 * delta)
    return min(raised, max(_RATIO_TOP, usual * ratio)) if signal.unit == "ratio" else raised


def _lowered(signal: Signal, usual: float, test: SignalTest) -> float:
    ratio = test.ratio if test.ratio is not None else signal.ratio
    ratio = ratio if ratio <= 1 else 1 / ratio
    delta = test.delta if test.delta is not None else signal.floor
    return max(0.0, min(usual * ratio * 0.7, usual - 1.5 * delta))
