"""Masks what must not leave a report, the same value by the same mask throughout."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bot.domain.postmortem import Postmortem, ReportChart
from bot.report.redaction_rules import DEFAULT_RULES, SUSPICIOUS, Rule
from bot.report.rewrite import rewrite

_MASKED = re.compile(r"\[masked-[a-z]+-\d+\]?")


SHORTEST = 3
"""Characters of the shortest text that a rule can mean: a customer's name."""


@dataclass(slots=True)
class Masker:
    """Replaces what the rules find. Masks are numbered in order of first appearance within one report."""

    rules: Sequence[Rule] = DEFAULT_RULES
    _masks: dict[str, str] = field(default_factory=dict)
    # Values that only their surroundings gave away; the others are found wherever they stand.
    _learned: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, int]:
        """Kind to number of different values masked so far."""
        return dict(sorted(self._counts.items()))

    @property
    def has_learned(self) -> bool:
        """Whether some value was found that only its surroundings gave away."""
        return bool(self._learned)

    def mask(self, text: str) -> str:
        """`text` with every secret in it replaced."""
        if len(text) < SHORTEST:
            return text
        is_suspicious = SUSPICIOUS.search(text) is not None
        for rule in self.rules:
            if is_suspicious or not rule.is_hinted:
                text = rule.pattern.sub(partial(self._replace, rule), text)
        return text

    def mask_everywhere(self, text: str) -> str:
        """`mask`, and in addition every value that was masked before, wherever it stands without its context."""
        return self.mask_learned(self.mask(text))

    def mask_learned(self, text: str) -> str:
        """Every value that only its surroundings gave away elsewhere, wherever it stands without them."""
        for secret, mask in self._learned.items():
            if secret in text:
                text = text.replace(secret, mask)
        return text

    def _replace(self, rule: Rule, match: re.Match[str]) -> str:
        whole = match[0]
        secret = match["secret"] if "secret" in rule.pattern.groupindex else whole
        if _MASKED.search(secret) or secret.lower() in rule.allowed:
            return whole
        if rule.accepts is not None and not rule.accepts(secret):
            return whole
        # A name or an address of mail is the same one however it is written.
        value = secret.lower() if rule.kind in ("name", "email") else secret
        if value not in self._masks:
            self._counts[rule.kind] = self._counts.get(rule.kind, 0) + 1
            self._masks[value] = f"[masked-{rule.kind}-{self._counts[rule.kind]}]"
            if secret is not whole and not _is_word(secret):
                self._learned[secret] = self._masks[value]
        start = match.start("secret") - match.start() if secret is not whole else 0
        return whole[:start] + self._masks[value] + whole[start + len(secret) :]


def _is_word(secret: str) -> bool:
    """Whether the value might be an ordinary word (`password: required`), which must not vanish everywhere."""
    return len(secret) < 6 or (len(secret) < 12 and secret.isalpha())


def redact(report: Postmortem, rules: Sequence[Rule] = DEFAULT_RULES) -> Postmortem:
    """The report without what the rules find, the drawn charts included; one that is redacted already stays as it is.

    Two passes: the first learns the secrets by their context (`password=…`), the second finds the same values where
    they stand alone. A chart that exists only as pixels cannot be read and is left as it is.
    """
    if report.is_redacted:
        return report
    masker = Masker(rules)
    once = rewrite(report, masker.mask)
    charts = [_redact_chart(chart, masker.mask) for chart in once.charts]
    again = replace(once, charts=tuple(charts))
    if masker.has_learned:
        again = rewrite(again, masker.mask_learned)
        last = tuple(_redact_chart(chart, masker.mask_learned) for chart in again.charts)
        again = replace(again, charts=last)
    return replace(again, is_redacted=True, masked=masker.counts)


# Text between tags, and lines of a CSV that hold more than numbers and times: the rest of a drawing cannot hold a
# secret, and there is a lot of it.
_SVG_TEXT = re.compile(r"(?<=>)[^<>]*\S[^<>]*(?=<)")
_CSV_WORDS = re.compile(r"^.*[^0-9eETZ+.,:\-\n\r].*$", re.MULTILINE)


def _redact_chart(chart: ReportChart, mask: Callable[[str], str]) -> ReportChart:
    return replace(
        chart,
        svg=chart.svg and _mask_bytes(chart.svg, _SVG_TEXT, mask),
        svgs={name: _mask_bytes(content, _SVG_TEXT, mask) for name, content in chart.svgs.items()},
        csv=chart.csv and _mask_bytes(chart.csv, _CSV_WORDS, mask),
    )


def _mask_bytes(content: bytes, part: re.Pattern[str], mask: Callable[[str], str]) -> bytes:
    text = content.decode("utf-8", "replace")
    return part.sub(lambda match: mask(match[0]), text).encode()
