"""Masks what must not leave: secrets, e-mail and private addresses, the same value by the same mask throughout."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bot.domain.postmortem import Postmortem, ReportChart
from bot.report.rewrite import rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing to mask. The whole match is masked, or its group `secret` when the pattern has one.

    kind: `secret`, `email`, `address` or `custom`: what the mask says and what the count is under.
    accepts: a last look at the matched text; None masks every match.
    """

    kind: str
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] | None = None


def _is_private(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in _PRIVATE if network.version == address.version)


# Source: RFC 1918, RFC 6598 (carrier NAT), RFC 3927 and RFC 4291 (link local), RFC 4193 (unique local).
_PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    )
)

_SECRETS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\bxox[a-z]-[A-Za-z0-9-]{6,}|\bxapp-[A-Za-z0-9-]{6,}",
    r"\bgh[pousr]_[A-Za-z0-9]{16,}\b|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{16,}|\bnpm_[A-Za-z0-9]{30,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"(?<=hooks\.slack\.com/services/)[\w/]+",
    r"(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/-]{6,}=*)",
    r"(?i)://[^\s/:@]*:(?P<secret>[^\s/@]+)@",
    r"(?i)(?:\b|(?<=_))(?:pass(?:word|wd|phrase)?|pwd|secret|credential)s?[\"']?\s*[=:]\s*[\"']?"
    r"(?P<secret>[^\s\"',;&<>]{3,})",
    r"(?i)(?:\b|(?<=_))(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?token|"
    r"access[_-]?token|token)[\"']?\s*[=:]\s*[\"']?(?P<secret>[^\s\"',;&<>]{6,})",
    r"(?:密码|口令|密钥|令牌)\s*(?:是|为)?\s*[=:：]\s*(?P<secret>[^\s，。；、\"']{3,})",
)

DEFAULT_RULES: tuple[Rule, ...] = (
    *(Rule(kind="secret", pattern=re.compile(text, re.DOTALL)) for text in _SECRETS),
    Rule(
        kind="email",
        pattern=re.compile(
            r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*\.[A-Za-z]{2,}\b"
        ),
    ),
    Rule(
        kind="address",
        pattern=re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)"),
        accepts=_is_private,
    ),
    Rule(
        kind="address",
        pattern=re.compile(r"(?<![\w:])(?:[Ff][CcDd][0-9A-Fa-f]{2}|[Ff][Ee]80):[0-9A-Fa-f:]{2,}"),
        accepts=_is_private,
    ),
)

_MASKED = re.compile(r"\[masked-(?:secret|email|address|custom)-\d+\]?")


@dataclass(slots=True)
class Masker:
    """Replaces what the rules find. Masks are numbered in order of first appearance within one report."""

    rules: Sequence[Rule] = DEFAULT_RULES
    _masks: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, int]:
        """Kind to number of different values masked so far."""
        return dict(sorted(self._counts.items()))

    def mask(self, text: str) -> str:
        """`text` with every secret in it replaced."""
        if len(text) < 5:
            return text
        for rule in self.rules:
            text = rule.pattern.sub(partial(self._replace, rule), text)
        return text

    def mask_everywhere(self, text: str) -> str:
        """`mask`, and in addition every value that was masked before, wherever it stands without its context."""
        masked = self.mask(text)
        for secret, mask in self._masks.items():
            if secret in masked and not _is_word(secret):
                masked = masked.replace(secret, mask)
        return masked

    def _replace(self, rule: Rule, match: re.Match[str]) -> str:
        whole = match[0]
        secret = match["secret"] if "secret" in rule.pattern.groupindex else whole
        if _MASKED.search(secret) or (rule.accepts and not rule.accepts(secret)):
            return whole
        if secret not in self._masks:
            self._counts[rule.kind] = self._counts.get(rule.kind, 0) + 1
            self._masks[secret] = f"[masked-{rule.kind}-{self._counts[rule.kind]}]"
        start = match.start("secret") - match.start() if secret is not whole else 0
        return whole[:start] + self._masks[secret] + whole[start + len(secret) :]


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
    again = rewrite(replace(once, charts=tuple(charts)), masker.mask_everywhere)
    last = tuple(_redact_chart(chart, masker.mask_everywhere) for chart in again.charts)
    return replace(again, charts=last, is_redacted=True, masked=masker.counts)


# Text between tags, and lines of a CSV that hold more than numbers and times: the rest of a drawing cannot hold a
# secret, and there is a lot of it.
_SVG_TEXT = re.compile(r"(?<=>)[^<>]*\S[^<>]*(?=<)")
_CSV_WORDS = re.compile(r"^.*[^0-9eETZ+.,:\-\n\r].*$", re.MULTILINE)


def _redact_chart(chart: ReportChart, mask: Callable[[str], str]) -> ReportChart:
    return replace(
        chart,
        svg=_redact_bytes(chart.svg, _SVG_TEXT, mask),
        csv=_redact_bytes(chart.csv, _CSV_WORDS, mask),
    )


def _redact_bytes(
    content: bytes | None, part: re.Pattern[str], mask: Callable[[str], str]
) -> bytes | None:
    if content is None:
        return None
    text = content.decode("utf-8", "replace")
    return part.sub(lambda match: mask(match[0]), text).encode()
