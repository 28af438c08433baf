"""How a service was launched: allow-listed flags only, and which of its files changed since."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.device.proc import ProcRoot
from bot.errors import ProbeError

MAX_FILES = 4096
"""A cap on work: a sharded model has a few hundred files."""
# Everything else on a command line stays on the node: it may hold a token or a prompt.
_FLAGS = re.compile(
    r"^--?(max[-_]num[-_](seqs|batched[-_]tokens)|max[-_]model[-_]len|max[-_]batch[-_]\w+|max[-_]concurrent\w*"
    r"|max[-_]running[-_]requests|max[-_]total[-_]tokens|gpu[-_]memory[-_]utilization|mem[-_]fraction[-_]static"
    r"|tensor[-_]parallel[-_]size|dtype|quantization|quantize|kv[-_]cache[-_]dtype|enforce[-_]eager"
    r"|block[-_]size|swap[-_]space|workers|threads|pinned[-_]memory[-_]pool[-_]byte[-_]size|num[-_]shard)$"
)
_VALUE = re.compile(r"^[A-Za-z0-9._:-]{1,40}$")
_BATCH = re.compile(r"max_num_seqs|max_batch_size|max_concurrent|max_running_requests")
_PRECISION = re.compile(r"^(quantization|quantize|kv_cache_dtype|dtype)$")
_REDUCED = re.compile(
    r"fp8|int8|int4|awq|gptq|w4|w8|nf4|fp4|bitsandbytes|squeezellm|marlin", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file and how long after the process's start it last changed."""

    path: str
    seconds_after_start: float


@dataclass(frozen=True, slots=True)
class FolderState:
    """Files of a folder: how many, the newest change (Unix seconds), and those changed after a moment."""

    files: int
    newest_at: float | None
    changed: tuple[ChangedFile, ...]


def launch_flags(command: Iterable[str]) -> Mapping[str, str]:
    """Allow-listed flags and their values, with underscores; a flag without a value is `true`.

    >>> launch_flags(["python", "--max-num-seqs=7", "--api-key", "secret", "--dtype", "fp8"])
    {'max_num_seqs': '7', 'dtype': 'fp8'}
    """
    words = list(command)
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        flag, has_value, value = word.partition("=")
        if not _FLAGS.match(flag):
            continue
        if not has_value:
            follows = words[index + 1] if index + 1 < len(words) else ""
            value = follows if follows and not follows.startswith("-") else "true"
        found[flag.lstrip("-").replace("-", "_")] = value if _VALUE.match(value) else "not shown"
    return found


def batch_limit(flags: Mapping[str, str]) -> tuple[str, int] | None:
    """The flag that caps concurrent requests, and its number."""
    for name, value in flags.items():
        if _BATCH.search(name) and value.isdigit():
            return name, int(value)
    return None


def reduced_precision(flags: Mapping[str, str]) -> Mapping[str, str]:
    """Flags that choose a lower precision than 16 bits."""
    return {
        name: value
        for name, value in flags.items()
        if _PRECISION.match(name) and _REDUCED.search(value)
    }


def folder_state(folder: Path, started_at: float) -> FolderState:
    """Looks at names and times only; nothing is opened.

    A link counts as changed when it was made: a new revision behind the old name keeps the times of its files.
    """
    newest: float | None = None
    changed: list[ChangedFile] = []
    count = 0
    switched = _link_made_at(folder)
    for path in folder.rglob("*"):
        if count >= MAX_FILES:
            break
        with contextlib.suppress(OSError):
            facts = path.stat()
            if not path.is_file():
                continue
            count += 1
            at = max(facts.st_mtime, switched, _link_made_at(path))
            newest = at if newest is None else max(newest, at)
            if at > started_at:
                changed.append(ChangedFile(str(path.relative_to(folder)), at - started_at))
    changed.sort(key=lambda item: -item.seconds_after_start)
    return FolderState(count, newest, tuple(changed))


def _link_made_at(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.lstat().st_mtime if path.is_symlink() else 0.0
    return 0.0


def deleted_maps(proc: ProcRoot, pid: int, folder: Path) -> tuple[str, ...]:
    """Files of the folder that the process still maps though their names are gone or lead elsewhere by now."""
    found: set[str] = set()
    with contextlib.suppress(ProbeError):
        for line in proc.text(pid, "maps").splitlines():
            path = line.partition("/")[2]
            if path.endswith(" (deleted)") and f"/{path}".startswith(f"{folder}/"):
                found.add("/" + path.removesuffix(" (deleted)"))
    return tuple(sorted(found))
