"""Reads saved cases from their directories."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bot.errors import BotError, Reason
from bot.learning.cases import Case, Truth, case_from, truth_from

_LARGEST_FILE = 64 * 1024 * 1024
_OPENERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def read_case(folder: Path) -> Case:
    """Reads a case from its directory; any file may be stored as itself, `.gz` or `.xz`. It blocks.

    Raises:
        BotError: a file is missing, too large or not in shape; says which.
    """
    return case_from(_read_files(folder, ""), str(folder))


def read_truth(folder: Path) -> Truth | None:
    """Only what a case ended in; None where that was not saved. It blocks.

    Raises:
        BotError: the file is not in shape.
    """
    files = _read_files(folder, "truth")
    if not files:
        return None
    try:
        return truth_from(json.loads(files["truth.json"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BotError(
            f"{folder}/truth.json: is not in the shape of a case: {type(error).__name__}: {error}; save it again",
            reason=Reason.MALFORMED,
        ) from error


def _read_files(folder: Path, begins: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        for path in sorted(folder.iterdir()):
            opener = _OPENERS.get(path.suffix, Path.open)
            name = path.name.removesuffix(path.suffix) if path.suffix in _OPENERS else path.name
            is_part = name.endswith((".json", ".jsonl")) and name.startswith(begins)
            if not path.is_file() or not is_part:
                continue
            with opener(path, "rb") as file:
                content = file.read(_LARGEST_FILE + 1)
            if len(content) > _LARGEST_FILE:
                raise BotError(
                    f"{path}: is larger than 64 MiB; no case is", reason=Reason.MALFORMED
                )
            files[name] = content
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise BotError(
            f"{folder}: cannot be read: {getattr(error, 'strerror', None) or error}; name the directory of a saved case",
            reason=Reason.NOT_FOUND,
        ) from error
    return files
