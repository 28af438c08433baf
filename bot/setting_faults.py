"""How a wrong setting is told: where it was given, what is wrong, in words of those who write TOML or a shell script."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

_WORDS = {
    "extra_forbidden": "there is no such setting",
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "bool_parsing": "must be 1 or 0",
    "bool_type": "must be true or false",
    "string_type": "must be a text in quotes",
    "path_type": "must be a path in quotes",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}


def fault_line(fault: Mapping[str, Any], given: Mapping[str, str], known: Collection[str]) -> str:
    """One of pydantic's faults as one line.

    given: variable by field, of the settings that the environment holds. known: all fields, to guess a misspelt one.
    """
    field = ".".join(str(part) for part in fault["loc"])
    words = _WORDS.get(fault["type"])
    if words is not None:
        said = words.format_map(fault.get("ctx", {}))
    else:
        said = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
        near = difflib.get_close_matches(field, known, n=1)
        said += f"; did you mean {near[0]}" if near else ""
    return " ".join(f"{place_of(field, given)}: {said}".split())


def place_of(field: str, given: Mapping[str, str]) -> str:
    """Where a setting was given: its variable, or its place in the file."""
    return given.get(field.partition(".")[0]) or f"RCA_CONFIG: {field}"


def unreadable(name: str, *, is_folder: bool) -> str | None:
    """Why a file or folder cannot be opened; None where it can."""
    kind = "folder" if is_folder else "file"
    try:
        # Opened, not asked for its permissions: those say nothing of a file system's own refusals.
        os.close(os.open(name, os.O_RDONLY | (os.O_DIRECTORY if is_folder else 0)))
        if not is_folder and Path(name).is_dir():
            return f"{name} is a folder; name a file"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}; name a {kind} that is there"
    except ValueError:
        return f"is no path; name a {kind}"
    return None
