"""Three answers to every test: it holds, it was looked at and does not hold, nobody could look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from bot.cause import (
    AllOf,
    AnyOf,
    Catalogue,
    ChangeOwner,
    ChangeTest,
    FindingTest,
    LogPlace,
    LogTest,
    Movement,
    Not,
    SignalTest,
    SymptomTest,
    Test,
)
from bot.diagnosis.cited_lines import compiled, evidence_of_lines
from bot.diagnosis.facts import Facts
from bot.diagnosis.observation import Observation
from bot.diagnosis.signal_test import holds
from bot.diagnosis.wording import (
    change_text,
    evidence_of,
    evidence_of_change,
    evidence_of_finding,
    is_unchanged,
)
from bot.domain.evidence import Evidence
from bot.domain.instant import Window
from bot.source import LogLine

_TOGETHER_SECONDS = 120.0
"""Two moves that one thing brought about begin within this time and one scrape. Basis: judgement; both are rates."""

_NEIGHBOUR_SIGNALS = ("writes.others", "host.cpu_neighbour")


class Verdict(Enum):
    """`UNKNOWN` is neither of the others, and moves nothing."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on a test, what it rests on, and since when that is so."""

    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    onset: Window | None = None


_UNKNOWN = Judgement(verdict=Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Bench:
    """Judges tests for one node, or for the whole service when `node` is None.

    strict: a clean finding of one node holds for the service only when every node was looked at; asked of what is to
        exclude a cause.
    """

    facts: Facts
    catalogue: Catalogue
    node: str | None
    strict: bool = False

    def judge(self, test: Test) -> Judgement:
        """The verdict on a test."""
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
                if not self.facts.incident.is_seen:
                    return _UNKNOWN
                return Judgement(
                    verdict=_verdict(test.symptom in self.facts.incident.kinds),
                    evidence=tuple(
                        cited
                        for sighting in self.facts.incident.sightings
                        if sighting.kind is test.symptom
                        and (cited := sighting.evidence) is not None
                    ),
                )
            case Not(part=part):
                inner = self.judge(part)
                turned = {Verdict.TRUE: Verdict.FALSE, Verdict.FALSE: Verdict.TRUE}
                return Judgement(
                    verdict=turned.get(inner.verdict, Verdict.UNKNOWN), evidence=inner.evidence
                )
            case AllOf(parts=parts):
                return _combined([self.judge(part) for part in parts], Verdict.FALSE, Verdict.TRUE)
            case AnyOf(parts=parts):
                return _combined([self.judge(part) for part in parts], Verdict.TRUE, Verdict.FALSE)

    def _signal(self, test: SignalTest) -> Judgement:
        seen = [
            item
            for item in self.facts.observations.get(test.signal, ())
            if self.node is None or item.entity.node in ("", self.node)
        ]
        judged = [(item, self._holds(test, item)) for item in seen]
        known = [(item, holds) for item, holds in judged if holds is not None]
        if not known:
            return _UNKNOWN
        calm = test.movement in (Movement.FLAT, Movement.NOT_UP, Movement.NOT_DOWN)
        held = [item for item, holds in known if holds]
        # "Flat" must hold for every part: one odd disk among calm ones is not calm.
        is_true = len(held) == len(known) if calm or test.every else bool(held)
        chosen = held if is_true and not calm else [item for item, _ in known]
        chosen = sorted(chosen, key=lambda item: (-abs(item.deviation), item.entity))[:1]
        onsets = [item.onset for item in held if item.onset is not None]
        return Judgement(
            verdict=_verdict(is_true),
            evidence=tuple(self._cited(test, item, odd=is_true and not calm) for item in chosen),
            onset=min(onsets, key=lambda window: window.end) if is_true and onsets else None,
        )

    def _cited(self, test: SignalTest, item: Observation, *, odd: bool) -> Evidence:
        """The citation of a reading; what is told "as before" is no oddity, whatever bound it lies beyond.

        A level that has been wrong for longer than the window is told as it stands: there is no sound time before it.
        """
        if not odd:
            return evidence_of(item, abnormal=False)
        if test.movement not in (Movement.ABOVE, Movement.BELOW):
            return evidence_of(item, abnormal=True, told=test.movement)
        standing = self.facts.incident.is_standing
        return evidence_of(
            item,
            abnormal=standing or not is_unchanged(item),
            told=test.movement if standing else None,
        )

    def _holds(self, test: SignalTest, item: Observation) -> bool | None:
        verdict = holds(test, item)
        if verdict and test.along is not None:
            return self._goes_along(item, test.along)
        return verdict

    def _goes_along(self, item: Observation, other: str) -> bool:
        """Whether `other` rose on the same node when this moved; where nobody looked, nothing speaks against it."""
        beside = [
            found
            for found in self.facts.observations.get(other, ())
            if found.entity.node == item.entity.node and found.is_known
        ]
        rising = [found.onset for found in beside if found.moved() is Movement.UP]
        if not beside or (rising and item.onset is None):
            return True
        slack = timedelta(seconds=_TOGETHER_SECONDS + self.facts.resolution_seconds)
        return any(
            onset is None
            or (
                item.onset is not None
                and item.onset.start <= onset.end + slack
                and onset.start <= item.onset.end + slack
            )
            for onset in rising
        )

    def _finding(self, test: FindingTest) -> Judgement:
        known = self.catalogue.findings.get(test.finding)
        if known is None:
            return _UNKNOWN
        nodes = (self.node,) if self.node is not None else self.facts.nodes
        results = [
            result
            for node in nodes
            if (result := self.facts.results.get((node, known.probe))) is not None
        ]
        if not results:
            return _UNKNOWN
        is_clean = known.clean and all(
            any(finding.id == test.finding for finding in result.findings) for result in results
        )
        if is_clean and self.strict and len(results) < len(nodes):
            # One clean node says nothing of those that nobody could look at; one sick node is enough.
            return _UNKNOWN
        for result in results if is_clean or not known.clean else ():
            for finding in result.findings:
                if finding.id != test.finding or not _says(test.pattern, finding.summary):
                    continue
                if known.clean and self.facts.is_stale:
                    return _UNKNOWN
                cited = evidence_of_finding(result, finding, known, self.facts.service)
                return Judgement(verdict=Verdict.TRUE, evidence=(cited,))
        if self.facts.is_stale:
            # The fault was over when the probe looked: that it saw nothing clears nothing.
            return _UNKNOWN
        cited = evidence_of_finding(results[0], None, known, self.facts.service)
        return Judgement(verdict=Verdict.FALSE, evidence=(cited,))

    def _log(self, test: LogTest) -> Judgement:
        facts = self.facts
        if not facts.logs_read:
            return _UNKNOWN
        of_service = test.place is not LogPlace.NODE
        of_node = test.place is not LogPlace.SERVICE
        if not (of_service and facts.service_lines) and not (
            of_node and any(self._is_of_node(line) for line in facts.node_lines)
        ):
            return _UNKNOWN
        matching: list[LogLine] = []
        if of_service:
            matching += facts.search["service"].matching(test.pattern)
        if of_node:
            matching += filter(self._is_of_node, facts.search["node"].matching(test.pattern))
        if test.since_start:
            once = facts.search["old"].matching(test.pattern)
            if every := sorted({_key(line): line for line in (*once, *matching)}.items()):
                return self._found(test, [line for _, line in every])
        start = facts.log_lead.timestamp() * 1e9
        end = facts.incident.window.end.timestamp() * 1e9
        during = [line for line in matching if start <= line.at_ns <= end]
        before = [line for line in matching if line.at_ns < start]
        since = facts.log_window.start if facts.log_window else facts.log_lead
        quiet = max((facts.log_lead - since).total_seconds(), 1.0)
        busy = max((facts.incident.window.end - facts.log_lead).total_seconds(), 1.0)
        # Twice as often as before: a line that was always there tells nothing of the incident.
        if len(during) >= test.minimum and len(during) / busy >= 2 * len(before) / quiet:
            return self._found(test, during)
        return Judgement(verdict=Verdict.FALSE)

    def _found(self, test: LogTest, lines: Sequence[LogLine]) -> Judgement:
        cited = evidence_of_lines(test.pattern, lines, self.facts.service)
        at = cited.window.start
        return Judgement(verdict=Verdict.TRUE, onset=Window(at, at), evidence=(cited,))

    def _is_of_node(self, line: LogLine) -> bool:
        return self.node is None or line.labels.get("node") in (None, self.node)

    def _change(self, test: ChangeTest) -> Judgement:
        if not self.facts.changes_read:
            return _UNKNOWN
        incident = self.facts.incident
        # Without an onset nothing that was changed so far is too late.
        latest = incident.window.start if incident.is_seen else incident.window.end
        owners = self._owners(test.owner)
        for change in reversed(self.facts.changes):
            if change.kind not in test.kinds or change.at > latest:
                continue
            if change.service not in owners:
                continue
            age = latest - change.at
            if test.within_seconds is not None and age > timedelta(seconds=test.within_seconds):
                continue
            if _says(test.pattern, change_text(change)):
                return Judgement(verdict=Verdict.TRUE, evidence=(evidence_of_change(change),))
        return Judgement(verdict=Verdict.FALSE)

    def _owners(self, owner: ChangeOwner) -> frozenset[str | None]:
        match owner:
            case ChangeOwner.SERVICE:
                return frozenset({self.facts.service, None})
            case ChangeOwner.NEIGHBOUR:
                return frozenset(
                    item.entity.part
                    for name in _NEIGHBOUR_SIGNALS
                    for item in self.facts.observations.get(name, ())
                    if self.node in (None, item.entity.node) and item.moved() is Movement.UP
                )


def _combined(parts: Sequence[Judgement], decisive: Verdict, other: Verdict) -> Judgement:
    """`FALSE` decides an all, `TRUE` an any; without a decision one unknown part leaves it unknown."""
    deciding = [part for part in parts if part.verdict is decisive]
    if deciding:
        chosen = deciding[:1] if decisive is Verdict.FALSE else deciding
        verdict = decisive
    elif any(part.verdict is Verdict.UNKNOWN for part in parts):
        return _UNKNOWN
    else:
        chosen, verdict = list(parts), other
    unique = {item.id: item for part in chosen for item in part.evidence}
    onsets = [part.onset for part in chosen if part.onset is not None]
    return Judgement(
        verdict=verdict,
        evidence=tuple(unique.values()),
        onset=min(onsets, key=lambda window: window.end) if onsets else None,
    )


def _says(pattern: str | None, text: str) -> bool:
    return pattern is None or compiled(pattern).search(text) is not None


def _verdict(holds: bool) -> Verdict:
    return Verdict.TRUE if holds else Verdict.FALSE


def _key(line: LogLine) -> tuple[int, str]:
    return line.at_ns, line.text
