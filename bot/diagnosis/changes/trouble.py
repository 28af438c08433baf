"""What goes wrong, read from the words of errors, alerts and metric names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Trouble(StrEnum):
    """Kinds of failure that a change can bring about."""

    TIMEOUT = "timeout"
    RETRIES = "retries"
    STORAGE = "storage"
    MEMORY = "memory"
    MISSING = "missing"
    FORMAT = "format"
    START = "start"
    LOAD = "load"
    CAPACITY = "capacity"
    ACCESS = "access"
    NAMES = "names"
    RESULT = "result"


_WORDS: dict[Trouble, str] = {
    Trouble.TIMEOUT: r"deadline|time(d)?[ _-]?out|cancel(l)?ed by client|context cancel(l)?ed",
    Trouble.RETRIES: r"retr(y|ies)|attempts|backoff|exhausted",
    Trouble.STORAGE: r"no space left|disk|inode|volume .*full|log.*(throughput|bytes|volume)|read-only file system",
    Trouble.MEMORY: r"\boom|out[ _]of[ _]memory|oomkill|memory|heap|\brss\b|garbage|gc pause",
    Trouble.MISSING: r"not[ _]found|does not exist|no such (table|column|key|file)|undefined|unknown (column|field|agent|key|name)|missing|unregistered|\b404\b",
    Trouble.FORMAT: r"deseriali|unmarshal|decod|pars(e|ing)|schema|required field|malformed|invalid (json|field|format)",
    Trouble.START: r"panic|crash|restart|segfault|import ?error|incompatible|duplicate registration|version (conflict|mismatch)|linkage|symbol",
    Trouble.LOAD: r"cpu|quer(y|ies)[ _](per|rate)|qps|slow query|cache[ _](miss|hit)|stampede|hot ?key",
    Trouble.CAPACITY: r"pool|connections?[ _](exhaust|limit|refus)|too many|queue|backlog|saturat|semaphore|lock",
    Trouble.ACCESS: r"unauthori[sz]|forbidden|permission|denied|\b401\b|\b403\b|certificate|x509|tls|credential|token expired",
    Trouble.NAMES: r"no such host|enotfound|resolv|servfail|dns|getaddrinfo",
    Trouble.RESULT: r"accuracy|drift|mismatch|wrong|incorrect|nan\b|overflow|score",
}  # fmt: skip


def troubles_of(texts: Iterable[str]) -> frozenset[Trouble]:
    """The kinds that any of the texts speaks of.

    >>> sorted(troubles_of(["write /var/log: no space left on device"]))
    [<Trouble.STORAGE: 'storage'>]
    """
    joined = "\n".join(texts)
    return frozenset(
        trouble for trouble, words in _WORDS.items() if re.search(words, joined, re.IGNORECASE)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One ability: the troubles it can cause, and how strongly, 0..1."""

    kind: str
    troubles: frozenset[Trouble]
    strength: float
    detail: str
