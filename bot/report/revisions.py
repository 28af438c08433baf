"""Compares two revisions of a report by what they state, line by line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale
from bot.report.markdown import write_markdown
from bot.report.outline import outline

# The timeline and the raw readings only ever grow, and the list of revisions differs in every one.
_LEFT_OUT = frozenset(["timeline", "appendix", "revisions"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What changed between two revisions. text: a unified diff, empty when the statements are the same."""

    text: str
    added: int
    removed: int


def compare(
    before: Postmortem, after: Postmortem, locale: Locale, *, names: tuple[str, str]
) -> Comparison:
    """The difference of two reports of one incident, both redacted before; times, texts and states count."""
    lines = list(
        difflib.unified_diff(
            statements(before, locale),
            statements(after, locale),
            fromfile=names[0],
            tofile=names[1],
            n=1,
            lineterm="",
        )
    )
    return Comparison(
        text="\n".join(lines),
        added=_count(lines, "+"),
        removed=_count(lines, "-"),
    )


def statements(report: Postmortem, locale: Locale) -> Sequence[str]:
    """The report's statements as lines of Markdown, without what grows by itself."""
    page = outline(report, locale)
    kept = tuple(section for section in page.sections if section.id not in _LEFT_OUT)
    text, _ = write_markdown(replace(page, sections=kept), folder=report.header.id)
    return [line for line in text.splitlines() if line.strip()]


def _count(lines: Sequence[str], mark: str) -> int:
    return sum(1 for line in lines[2:] if line.startswith(mark))
