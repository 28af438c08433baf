"""Applies one change to every text inside a tree of frozen dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")


def rewrite(value: T, change: Callable[[str], str]) -> T:
    """A copy of `value` in which `change` was applied to every string, mapping keys included.

    Members of enums are names, not texts, and stay. Bytes stay. What nothing changed in is returned as it is.
    """
    result: T = _rewrite(value, change)
    return result


def _rewrite(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_rewrite(key, change): _rewrite(item, change) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [_rewrite(item, change) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else items
    if is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for entry in fields(value):
            old = getattr(value, entry.name)
            new = _rewrite(old, change)
            if new is not old:
                changed[entry.name] = new
        return replace(value, **changed) if changed else value
    return value
