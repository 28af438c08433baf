"""What a change is able to do: limits that shrink or grow, libraries that change, and what its code does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from bot.diagnosis.changes.code_effects import code_effects
from bot.diagnosis.changes.diff import Difference, parts_of
from bot.diagnosis.changes.trouble import Effect, Trouble

_SECONDS = {
    "nanosecond": 1e-9, "microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0, "minute": 60.0,
    "hour": 3600.0, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0,
    "h": 3600.0, "d": 86_400.0, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "kb": 1e3, "mb": 1e6,
    "gb": 1e9, "k": 1e3, "g": 1e9,
}  # fmt: skip
_NUMBER = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:\*\s*(?:time\.|Duration\.)?(?P<long>nanosecond|microsecond|millisecond|second|minute|hour)s?"
    r"|(?P<short>ns|us|ms|sec|min|ki|mi|gi|kb|mb|gb|[smhdkg])b?\b)?(?![\w.])",
    re.IGNORECASE,
)
_CORES = re.compile(r"(?:\w+_)?cpus?", re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z_][\w.]*")

_LESS, _MORE = -1, 1
_LIMITS: tuple[tuple[str, int, frozenset[Trouble]], ...] = (
    (r"time_?out|deadline|budget", _LESS, frozenset({Trouble.TIMEOUT})),
    (r"attempt|retr", _LESS, frozenset({Trouble.RETRIES, Trouble.TIMEOUT})),
    (r"attempt|retr", _MORE, frozenset({Trouble.LOAD, Trouble.CAPACITY})),
    (r"ttl|expir|max_?age|lifetime|refresh|interval", _LESS, frozenset({Trouble.LOAD})),
    (r"ttl|expir|max_?age|retention", _MORE, frozenset({Trouble.STORAGE, Trouble.MEMORY})),
    (r"pool|conn|concurren|worker|thread|slot|permit|replica|parallel", _LESS,
     frozenset({Trouble.CAPACITY, Trouble.TIMEOUT})),
    (r"pool|conn|concurren|worker|thread|batch|parallel", _MORE,
     frozenset({Trouble.CAPACITY, Trouble.MEMORY})),
    (r"memory|heap|\bmem|limit", _LESS, frozenset({Trouble.MEMORY, Trouble.CAPACITY})),
    (r"^(\w+_)?cpus?$|quota|nproc|nofile|ulimit", _LESS,
     frozenset({Trouble.LOAD, Trouble.TIMEOUT, Trouble.CAPACITY})),
    (r"rate_?limit|qps|rps|burst", _LESS, frozenset({Trouble.CAPACITY, Trouble.RETRIES})),
    (r"rate_?limit|qps|rps|burst", _MORE, frozenset({Trouble.LOAD, Trouble.CAPACITY})),
    (r"backoff|delay|wait", _LESS, frozenset({Trouble.LOAD, Trouble.RETRIES})),
    (r"sampl|verbos", _MORE, frozenset({Trouble.STORAGE, Trouble.LOAD})),
    (r"cache|entries|buffer|size", _LESS, frozenset({Trouble.LOAD, Trouble.CAPACITY})),
    (r"cache|entries|buffer|size|queue", _MORE, frozenset({Trouble.MEMORY})),
)  # fmt: skip
_FULL_FACTOR = 3.0
"""Doublings at which a changed limit counts in full. Basis: judgement; below one doubling it counts as tuning."""

_VERSION = re.compile(r"([\w./@-]+?)[\s:=\"'^~>@]+v?(\d+)\.(\d+)(?:\.(\d+))?")
_NAMED, _UNNAMED = 0.9, 0.3
"""How far a version that moved counts: of what an error names, and of anything else. Basis: judgement."""

_HOSTS = frozenset({"github", "com", "google", "golang", "org", "pkg", "lib", "api"})
_MANIFEST = re.compile(r"(go\.(mod|sum)|package(-lock)?\.json|requirements.*\.txt|pom\.xml|Cargo\.(toml|lock)|pyproject\.toml|\.gradle|Gemfile|poetry\.lock|yarn\.lock)", re.IGNORECASE)  # fmt: skip
_TESTS = re.compile(
    r"(^|/)(tests?|testdata|spec|__tests__|fixtures)/|_test\.|\.(test|spec)\.|(^|/)test_",
    re.IGNORECASE,
)
_WORDS_ONLY = re.compile(
    r"\.(md|rst|txt|adoc)$|(^|/)docs?(umentation)?/|CODEOWNERS|LICENSE|(^|/)\.(github|circleci|golangci|gitlab)",
    re.IGNORECASE,
)
_LOOKS = re.compile(r"\.(css|scss|less|svg|png|html)$|theme\.|/styles?/", re.IGNORECASE)


def is_inert(files: Sequence[str]) -> bool:
    """Whether a change touches nothing that runs: tests, documents, pipelines, looks."""
    return bool(files) and all(
        _TESTS.search(name) or _WORDS_ONLY.search(name) or _LOOKS.search(name) for name in files
    )


def effects_of(
    difference: Difference, files: Sequence[str], spoken: frozenset[str] = frozenset()
) -> tuple[Effect, ...]:
    """Everything that the change is able to do, as far as its text shows it.

    spoken: words of the errors; a new version of a library is believed when they name it.
    """
    if is_inert(files):
        return ()
    return (
        *_limits(difference),
        *_versions(difference, files, spoken),
        *code_effects(difference, files, spoken),
    )


def _limits(difference: Difference) -> Iterable[Effect]:
    for hunk in difference.hunks:
        before, after = _numbers(hunk.gone), _numbers(hunk.came)
        for key in sorted(before.keys() & after.keys()):
            old, new = before[key], after[key]
            if old <= 0 or new <= 0 or old == new:
                continue
            doublings = math.log2(new / old)
            if abs(doublings) < 1:
                continue
            direction = _MORE if doublings > 0 else _LESS
            troubles = frozenset(
                trouble
                for words, way, group in _LIMITS
                if way == direction and re.search(words, key, re.IGNORECASE)
                for trouble in group
            )
            if troubles:
                yield Effect(
                    kind="limit", troubles=troubles,
                    strength=min(1.0, abs(doublings) / _FULL_FACTOR),
                    detail=f"{key}: {old:g} to {new:g}",
                )  # fmt: skip


def _numbers(lines: Sequence[str]) -> dict[str, float]:
    """The name before each number, with the number in seconds, bytes or as it stands."""
    found: dict[str, float] = {}
    for line in lines:
        for match in _NUMBER.finditer(line):
            names = [
                name
                for name in _KEY.findall(line[: match.start()])
                if len(name) > 3 or _CORES.fullmatch(name)
            ]
            if not names:
                continue
            unit = (match["long"] or match["short"] or "").lower()
            key = names[-1].rsplit(".", 1)[-1]
            # A thousandth of a core is written like a minute.
            factor = 1e-3 if unit == "m" and _CORES.search(key) else _SECONDS.get(unit, 1.0)
            found.setdefault(key, float(match[1]) * factor)
    return found


def _versions(
    difference: Difference, files: Sequence[str], spoken: frozenset[str]
) -> Iterable[Effect]:
    if files and not any(_MANIFEST.search(name) for name in files):
        return
    before = {m[1]: m for line in difference.lines_gone if (m := _VERSION.search(line))}
    after = {m[1]: m for line in difference.lines_came if (m := _VERSION.search(line))}
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if (old[2], old[3]) == (new[2], new[3]):
            continue
        yield Effect(
            kind="version",
            troubles=frozenset({Trouble.START, Trouble.FORMAT}),
            strength=_NAMED if (parts_of([name]) - _HOSTS) & spoken else _UNNAMED,
            detail=f"{name}: {old[2]}.{old[3]} to {new[2]}.{new[3]}",
        )
