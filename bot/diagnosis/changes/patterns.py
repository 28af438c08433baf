"""Patterns of changed text and what each is able to bring about, across languages and formats.

Each is an ability that engineers know from incidents, with nothing of a project, a file or a commit in it. How far the
text alone carries is the strength: what takes something away for certain is strong, what may be harmless is weak.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.diagnosis.changes.trouble import Trouble

Side = Literal["came", "gone", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A kind of line that came, went or changed.

    side: `came` and `gone` count when the other side has none of the kind, `changed` when lines of the kind differ.
    """

    kind: str
    found: re.Pattern[str]
    side: Side
    troubles: frozenset[Trouble]
    strength: float
    detail: str

    def is_in(self, gone: Sequence[str], came: Sequence[str]) -> bool:
        """Whether the lines that went and came show it."""
        before = {line.strip() for line in gone if self.found.search(line)}
        after = {line.strip() for line in came if self.found.search(line)}
        match self.side:
            case "came":
                return bool(after) and not before
            case "gone":
                return bool(before) and not after
            case "changed":
                return bool(after - before)


def _pattern(
    kind: str, words: str, side: Side, troubles: set[Trouble], strength: float, detail: str
) -> Pattern:
    return Pattern(
        kind=kind, found=re.compile(words, re.IGNORECASE), side=side, troubles=frozenset(troubles), strength=strength, detail=detail,
    )  # fmt: skip


PATTERNS: tuple[Pattern, ...] = (
    _pattern(
        "uncached", r"@?(lru_)?cache[sd]?\b|memoi[sz]e|\bttl_cache|\.setex\(|cacheable", "gone",
        {Trouble.LOAD, Trouble.TIMEOUT}, 0.7, "no longer keeps what it computed",
    ),
    _pattern(
        "unlocked", r"\.Lock\(\)|mutex|synchronized|\bwith [\w.]*lock\b|for update|atomic", "gone",
        {Trouble.RESULT, Trouble.START}, 0.6, "no longer guards what is shared",
    ),
    _pattern(
        "unbounded", r"\bgo func\b|asyncio\.gather|create_task\(|Promise\.all|\.parallelStream\(|new Thread\(|newCachedThreadPool|tokio::spawn", "came",
        {Trouble.CAPACITY, Trouble.MEMORY, Trouble.LOAD}, 0.5, "starts as many tasks as there is work",
    ),
    _pattern(
        "retries", r"\bretry|retries|for attempt|@retryable|backoff", "came",
        {Trouble.LOAD, Trouble.RETRIES, Trouble.CAPACITY}, 0.5, "tries again where it gave up",
    ),
    _pattern(
        "tls", r"min_?version|ssl_protocols|ciphers?\b|insecure_?skip|verify(_|=)?(peer|mode|ssl|hostname)?\s*[:=]|ca_?(file|cert|bundle)|tls_?(cert|key)|truststore|keystore", "changed",
        {Trouble.ACCESS, Trouble.START}, 0.7, "changes how a connection is secured",
    ),
    _pattern(
        "names", r"\bnameserver|resolv\.conf|\bndots\b|dns_?(policy|config|server)|clusterfirst|search_?domain", "changed",
        {Trouble.NAMES, Trouble.TIMEOUT}, 0.7, "changes how names are resolved",
    ),
    _pattern(
        "rights", r"\b(revoke|grant)\b|rolebinding|\brbac\b|\bchmod\b|\bUSER \w+|run_?as_?(user|nonroot)|read_?only_?root|cap_?drop|networkpolicy|securitycontext", "changed",
        {Trouble.ACCESS, Trouble.STORAGE, Trouble.START}, 0.6, "changes what it is allowed to do",
    ),
    _pattern(
        "base_image", r"^\s*FROM\s+[\w./-]+:[\w.-]+|^\s*image:\s*\S+", "changed",
        {Trouble.START, Trouble.FORMAT, Trouble.MISSING}, 0.4, "runs on another image",
    ),
    _pattern(
        "entry", r"^\s*(CMD|ENTRYPOINT)\b|\bcommand:|\bargs:|livenessProbe|readinessProbe|startupProbe|terminationGrace", "changed",
        {Trouble.START, Trouble.TIMEOUT}, 0.5, "starts or is watched in another way",
    ),
    _pattern(
        "table_lock", r"\bCREATE\s+(UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)|\bLOCK\s+TABLE|\bVACUUM\s+FULL|\bREINDEX\b", "came",
        {Trouble.CAPACITY, Trouble.TIMEOUT}, 0.8, "holds a table while it works",
    ),
    _pattern(
        "constraint", r"\bNOT NULL\b|ADD CONSTRAINT|\bUNIQUE\b|\bFOREIGN KEY\b|required:\s*true|additionalProperties:\s*false", "came",
        {Trouble.FORMAT, Trouble.MISSING}, 0.7, "refuses what was accepted",
    ),
    _pattern(
        "whole_table", r"\bWHERE\b|\bLIMIT\s+\d|\.limit\(|\.filter\(|pageSize|page_size", "gone",
        {Trouble.LOAD, Trouble.TIMEOUT, Trouble.MEMORY}, 0.6, "reads far more rows than before",
    ),
    _pattern(
        "environment", r"os\.environ|getenv\(|process\.env|System\.getenv|std::env|ENV\[", "came",
        {Trouble.MISSING, Trouble.START}, 0.4, "needs a setting that may not be there",
    ),
    _pattern(
        "required", r"\.(unwrap|expect)\(|must\w*\(|os\.environ\[|!!\.|\bas!\s|requireNonNull", "came",
        {Trouble.START, Trouble.MISSING}, 0.5, "ends where something is missing",
    ),
    _pattern(
        "logs_more", r"\b(log|logger|logging|console|slog|zap)\.\w+\(|\bprint(ln|f)?\(|System\.out", "came",
        {Trouble.STORAGE}, 0.5, "writes more lines",
    ),
    _pattern(
        "numbers", r"\bdtype\b|quanti[sz]|float16|bfloat16|fp8|int8|temperature\b|threshold\b|tokeni[sz]er|normali[sz]e|scaler", "changed",
        {Trouble.RESULT, Trouble.MEMORY}, 0.6, "computes with other numbers",
    ),
    _pattern(
        "deadline_gone", r"with_?timeout|\btimeout\s*[=:(]|context\.WithDeadline|asyncio\.wait_for|setTimeout|AbortSignal", "gone",
        {Trouble.TIMEOUT, Trouble.CAPACITY}, 0.8, "waits without an end",
    ),
    _pattern(
        "swallowed", r"except( Exception)?:\s*$|catch\s*\(\s*\w*\s*\)?\s*\{\s*\}|\bpass\s*$|_ = err", "came",
        {Trouble.RESULT, Trouble.MISSING}, 0.4, "hides what went wrong",
    ),
)  # fmt: skip
