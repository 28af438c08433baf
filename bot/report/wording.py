"""What every section needs to put the postmortem into words: one language, one clock, links to evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.evidence import EvidenceSource
from bot.domain.incident import Experiment
from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale, Localized
from bot.locales import translate
from bot.report.blocks import Inline, Span, Tone
from bot.report.clock import Clock

_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_ENTRY = re.compile(r"entry-(\d+)")
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\^{}|\x00-\x20\x7f]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wording:
    """The voice of one report in one language."""

    report: Postmortem
    locale: Locale
    clock: Clock
    known: frozenset[str] = field(default=frozenset())

    @classmethod
    def of(cls, report: Postmortem, locale: Locale) -> Wording:
        """The wording of a report; it knows which evidence ids have a row that a link can point at."""
        known = frozenset(item.id for item in report.evidence)
        changes = frozenset(item.change.id for item in report.changes)
        entries = frozenset(f"entry-{line.seq}" for line in report.timeline)
        tests = frozenset(item.id for item in report.experiments)
        return cls(report, locale, Clock.named(report.zone), known | changes | entries | tests)

    def t(self, key: str, /, **fields: object) -> str:
        """A sentence of the report's catalogue."""
        return translate(self.locale, f"report.{key}", **fields)

    def listed(self, parts: Iterable[str]) -> str:
        """`a, b`, with the comma of this language."""
        return self.t("list_comma").join(parts)

    def labelled(self, key: str, text: str) -> str:
        """`label: text`, with the colon of this language."""
        return self.t("labelled", label=self.t(key), text=text)

    def say(self, text: Localized | None) -> str:
        """The text in this language; an empty string when there is none.

        Sentences of ours tell times in UTC, and the report in its own zone; what a person wrote stays as it is.
        """
        if text is None:
            return ""
        said = text.in_locale(self.locale)
        if text.en == text.zh:
            return said
        return self.clock.local(said, self.report.header.opened_at)

    def symptom_name(self, name: str) -> str:
        """What a symptom that the engine saw by itself is called; one that people declared keeps its id."""
        try:
            return self.t(f"symptom_kind.{name}")
        except KeyError:
            return name

    @staticmethod
    def percent(ratio: float) -> str:
        """`79%`; what is not nothing is never shown as nothing, nor what is not certain as certain."""
        if 0 < ratio < 0.005:
            return "<1%"
        return ">99%" if 0.995 <= ratio < 1 else f"{ratio:.0%}"

    def stamp(self, at: datetime | None, otherwise: str = "") -> str:
        """The time in the report's zone."""
        return self.clock.stamp(at) if at else otherwise

    def since(self, at: datetime | None) -> str:
        """The time that somebody named, and which one it is where the clocks showed it twice."""
        if at is None:
            return ""
        which = self.clock.occurrence(at)
        note = self.t(f"repeated_hour_{which}") if which else ""
        return f"{self.stamp(at)} {note}".strip()

    def refs(self, ids: Iterable[str]) -> Inline:
        """Links to what is cited, or the mark that nothing is."""
        cited = list(dict.fromkeys(ref for ref in ids if ref))
        if not cited:
            return (Span(self.t("unsupported"), Tone.WARN),)
        spans: list[Span] = []
        for position, ref in enumerate(cited):
            if position:
                spans.append(Span(" "))
            spans.append(Span(ref, Tone.CODE, self.anchor(ref) if ref in self.known else None))
        return tuple(spans)

    @staticmethod
    def anchor(ref: str) -> str:
        """The link to the row of an evidence or change id."""
        return f"#{anchor_of(ref)}"

    def test_name(self, item: Experiment) -> str:
        """`gpu_allocator on gpu-1`, or the query."""
        if item.probe:
            return f"{item.probe} @ {item.node}" if item.node else item.probe
        return item.query or item.id

    def source_name(self, source: EvidenceSource | str) -> str:
        """A source's name for people; one that the catalogue does not know keeps its own."""
        try:
            return self.t(f"source.{source}")
        except KeyError:
            return str(source)


def plain(text: str, tone: Tone = Tone.PLAIN) -> Inline:
    """One run of text, or nothing."""
    return (Span(text, tone),) if text else ()


def safe_name(text: str) -> str:
    """A file name that cannot leave its folder: letters, digits, `.`, `_` and `-`, at most 64."""
    cleaned = _UNSAFE_IN_NAME.sub("-", text).strip("-.")[:64]
    return cleaned or "unnamed"


def anchor_of(ref: str) -> str:
    """The id of the row that a reference points at."""
    if entry := _ENTRY.fullmatch(ref):
        return f"t-{entry[1]}"
    return f"r-{safe_name(ref)}"


def web_address(url: str | None) -> str | None:
    """`url` when it is a plain http(s) address, else None: nothing else becomes a link."""
    return url if url and len(url) <= 2000 and _WEB_ADDRESS.fullmatch(url) else None
