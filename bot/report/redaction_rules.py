"""What is masked in reports: secrets, addresses of mail and machines, ids of people, and what the deployment adds."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.settings import RedactionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing to mask. The whole match is masked, or its group `secret` when the pattern has one.

    kind: `secret`, `email`, `address`, `user`, `name` or `custom`: what the mask says and what the count is under.
    accepts: a last look at the matched text; None masks every match. allowed: values that stay, in lower case.
    is_hinted: only a text in which `SUSPICIOUS` finds something can hold what it means.
    """

    kind: str
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] | None = None
    allowed: frozenset[str] = frozenset()
    is_hinted: bool = False


def is_private(text: str) -> bool:
    """Whether it is an address that only exists inside a network.

    Source: RFC 1918, RFC 6598 (carrier NAT), RFC 3927 and RFC 4291 (link local), RFC 4193 (unique local).
    """
    try:
        address = ipaddress.ip_address(text.replace("-", "."))
    except ValueError:
        return False
    return any(address in network for network in _PRIVATE if network.version == address.version)


def is_address(text: str) -> bool:
    """Whether it is an address of some machine: not of this one, of none or of everybody."""
    try:
        address = ipaddress.ip_address(text.replace("-", "."))
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


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

# Source: the issuers' documented prefixes (Slack, GitHub, GitLab, AWS, Google, Hugging Face, npm, OpenAI, Stripe; Alibaba
# Cloud, Tencent Cloud, Vault, Grafana, Docker, PyPI, DigitalOcean, Databricks, SendGrid; webhooks of Discord and Feishu),
# RFC 7468 (PEM), RFC 7519 (JWT), RFC 6750 and RFC 7617 (bearer, basic), RFC 3986 (userinfo).
_SECRETS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{6,}|\bxapp-[A-Za-z0-9-]{6,}",
    r"\bgh[pousr]_[A-Za-z0-9]{16,}\b|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{16,}|\bnpm_[A-Za-z0-9]{30,}",
    r"\bsk-[A-Za-z0-9_-]{16,}|\b[sprw][kh]_(?:live|test)_[A-Za-z0-9]{10,}|\bya29\.[\w-]{16,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"\bLTAI[A-Za-z0-9]{12,}\b|\bAKID[A-Za-z0-9]{13,}\b|\bhvs\.[\w-]{20,}|\bgl(?:sa|c)_[\w=-]{20,}|"
    r"\bdckr_pat_[\w-]{16,}|\bpypi-[\w-]{16,}|\bdop_v1_[0-9a-f]{32,}|\bdapi[0-9a-f]{32}\b|"
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    r"(?<=hooks\.slack\.com/services/)[\w/]+|(?<=discord\.com/api/webhooks/)[\w/-]+|"
    r"(?<=/open-apis/bot/v2/hook/)[\w-]+",
    r"(?i)\bauthorization[\"']?\s*[=:：]\s*[\"']?(?:[a-z-]+\s+)?"
    r"(?P<secret>(?=[^\s\"',;<>]*\d)[^\s\"',;<>\[]{6,})",
    r"(?i)(?:^|\s)(?:-u|--user)[ =][\"']?[^\s:\"']+:(?P<secret>[^\s\"']{3,})",
    r"(?i)\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\r\n]*?\s-p(?P<secret>[^\s-][^\s]{2,})",
    r"(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/-]{6,}=*)",
    r"(?i)\b(?:set-)?cookie:\s*(?P<secret>[^\r\n]{3,})",
    r"(?i)://[^\s/:@]*:(?P<secret>[^\s/@]+)@",
    r"(?i)[?&](?:x-amz-(?:signature|credential|security-token)|sig|signature|code|key)="
    r"(?P<secret>[^&\s\"'<>]{6,})",
    r"(?i)(?:\b|(?<=_))(?:pass(?:word|wd|phrase)?|pwd|secret|credential|api[_-]?key|token)s?[\"']?\s*[=:：]\s*"
    r"(?P<quote>[\"'])(?P<secret>[^\"'\r\n]{3,})(?P=quote)",
    r"(?i)(?:\b|(?<=_))(?:pass(?:word|wd|phrase)?|pwd|secret|credential)s?[\"']?\s*[=:：]\s*[\"']?"
    r"(?P<secret>[^\s\"',;&<>]{3,})",
    r"(?i)(?:^|(?<=\s))--?(?:password|passwd|token|secret|api-key)[ =](?P<secret>[^\s\"',;&<>-][^\s\"',;&<>]{2,})",
    r"(?i)\b(?:password|passphrase|token|secret|api[ _-]?key|access[ _-]?key) is (?P<secret>(?=[^\s\"',;<>]*\d)[^\s\"',;<>]{6,})",
    r"(?i)(?:\b|(?<=_))(?:api[_-]?key|access[_-]?key|account[_-]?key|secret[_-]?key|private[_-]?key|"
    r"auth[_-]?token|access[_-]?token|token)[\"']?\s*[=:：]\s*[\"']?(?P<secret>[^\s\"',;&<>]{6,})",
    r"(?:密码|口令|密钥|令牌)\s*(?:(?:是|为)\s*[=:：]?|[=:：])\s*(?P<secret>[^\s，。；、\"']{3,})",
)

_EMAIL = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*\.[A-Za-z]{2,}\b"
# A version of four numbers is no address where a word before it says so.
_IPV4 = (
    r"(?<![\w.])(?<!v)(?<!version )(?<!driver )(?<!release )(?<!firmware )"
    r"(?P<secret>(?:\d{1,3}\.){3}\d{1,3})(?![\d.]*\d)(?![A-Za-z_])"
)
# The names that a cloud gives its machines hold their address.
_IPV4_IN_NAME = r"\bip-(?P<secret>(?:\d{1,3}-){3}\d{1,3})\b"
_IPV6 = r"(?<![\w:])(?:[Ff][CcDd][0-9A-Fa-f]{2}|[Ff][Ee]80|[23][0-9A-Fa-f]{3}):[0-9A-Fa-f:]{2,}(?![\w:])"
# Source: Slack's ids begin with U or W, are upper case and hold a digit; ours of the demo begin with U0.
_USER = r"\b[UW](?:0[A-Z0-9]{3,11}|(?=[A-Z0-9]*\d)[A-Z0-9]{8,11})\b"

SUSPICIOUS = re.compile(
    r"PRIVATE|xox|xapp|gh[pousr]_|github_pat|glpat|AKIA|ASIA|AIza|hf_|npm_|sk-|_live_|_test_|ya29|eyJ|hooks\.slack|"
    r"LTAI|AKID|hvs\.|gls?[ac]+_|dckr_|pypi-|dop_v1|dapi[0-9a-f]|SG\.|webhooks|/hook/|ip-\d|(?:^|\s)--?u|\s-p|"
    r"://[^\s/]*@|[?&][^=\s]*=|密码|口令|密钥|令牌|\w@[\w-]|\d\.\d+\.\d|[0-9A-Fa-f]{4}:[0-9A-Fa-f:]|[UW][A-Z0-9]{4}|"
    r"(?i:bearer|basic|cookie|authorization|pass|pwd|secret|credential|token|key)"
)
"""What every text that a rule of ours means holds: one search instead of twenty for all the others."""

DEFAULT_RULES: tuple[Rule, ...] = (
    *(
        Rule(kind="secret", pattern=re.compile(text, re.DOTALL), is_hinted=True)
        for text in _SECRETS
    ),
    Rule(kind="email", pattern=re.compile(_EMAIL), is_hinted=True),
    Rule(kind="address", pattern=re.compile(_IPV4), accepts=is_address, is_hinted=True),
    Rule(kind="address", pattern=re.compile(_IPV4_IN_NAME), accepts=is_address, is_hinted=True),
    Rule(kind="address", pattern=re.compile(_IPV6), accepts=is_address, is_hinted=True),
    Rule(kind="user", pattern=re.compile(_USER), is_hinted=True),
)


def rules_of(settings: RedactionSettings) -> tuple[Rule, ...]:
    """The rules of a deployment: its own first, then those that always hold, without what it allows."""
    allowed = frozenset(value.lower() for value in settings.allow)
    own = [
        Rule(kind="custom", pattern=re.compile(pattern), allowed=allowed)
        for pattern in settings.patterns
    ]
    names = sorted({name.strip() for name in settings.names if name.strip()}, key=len, reverse=True)
    if names:
        # A name inside a longer word of the same letters is another word; Chinese has no spaces around names.
        alternatives = "|".join(
            (r"\b" if name[0].isascii() and name[0].isalnum() else "")
            + re.escape(name)
            + (r"\b" if name[-1].isascii() and name[-1].isalnum() else "")
            for name in names
        )
        own.append(
            Rule(
                kind="name",
                pattern=re.compile(f"(?:{alternatives})", re.IGNORECASE),
                allowed=allowed,
            )
        )
    kept = [replace(rule, allowed=allowed) for rule in DEFAULT_RULES]
    if settings.addresses == "private":
        kept = [
            replace(rule, accepts=is_private) if rule.kind == "address" else rule for rule in kept
        ]
    if not settings.users:
        kept = [rule for rule in kept if rule.kind != "user"]
    return (*own, *kept)
