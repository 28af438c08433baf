"""What a delivery target is: where a team keeps its reports, and how one gets there once, however often it is tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import httpx

from bot.domain.action_item import ActionItem
from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale, Localized
from bot.exporter import Export, ExportOptions
from bot.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is delivered; every text in it is redacted already.

    incident: its id. key: the same name for the same incident of the same deployment, and for no other; a target marks
    what it makes with it, so that it is found again when everything else was lost.
    export: the files, None for a target that takes none. action_items: with the owners' names in place of ids.
    """

    incident: str
    key: str
    title: str
    locale: Locale
    export: Export | None = None
    action_items: tuple[ActionItem, ...] = ()


class Progress(Protocol):
    """Remembers, durably, how far the delivery of one incident to one target has come."""

    async def get(self, name: str) -> str | None:
        """What was remembered under this name, or None."""
        ...

    async def put(self, name: str, value: str) -> None:
        """Remembers; when it returns, a crash does not undo it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a delivery works with. `http` follows no redirect, so that no token reaches another host."""

    settings: Settings
    http: httpx.AsyncClient
    progress: Progress
    clock: Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """How it ended. `text` says what was done; `links`: number of an action item to the address of its issue.

    is_changed: whether anything there is different now.
    """

    text: Localized
    url: str | None = None
    is_changed: bool = True
    links: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One place. `name` is the module's name and the word that people type.

    is_set_up: whether the settings name such a place.
    may_be_private: whether incidents of private channels may go there.
    write: makes the files from a redacted report; blocks, so callers run it in a worker process. None: takes no files.
    deliver: puts them there and answers only when they are; it may be run again at any point, and then goes on.
    check: says in one line that the place is reachable and lets the bot write, for `rca-bot check`.

    `deliver` and `check` raise DeliveryError: its reason says whether trying again can help.
    """

    name: str
    is_set_up: Callable[[Settings], bool]
    may_be_private: Callable[[Settings], bool]
    write: Callable[[Postmortem, ExportOptions], Export] | None
    deliver: Callable[[Parcel, Means], Awaitable[Delivered]]
    check: Callable[[Settings, httpx.AsyncClient], Awaitable[str]]
