"""Writes a timeline for tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Entry, EntryKind, Revision
from tests.report.sample_facts import (
    OPENED,
)


class Script:
    """Writes a timeline: each entry some seconds after the opening, numbered in order of writing."""

    def __init__(self, opened_at: datetime = OPENED) -> None:
        self.opened_at = opened_at
        self.entries: list[Entry] = []

    def add(
        self,
        seconds: float,
        kind: EntryKind,
        text: Localized | str | None,
        *,
        author: str = SYSTEM_AUTHOR,
        source: str = SYSTEM_AUTHOR,
        history: tuple[Revision, ...] = (),
        corrects: int | None = None,
        permalink: str | None = None,
        **data: Any,
    ) -> int:
        """Appends one entry and returns its seq."""
        seq = len(self.entries) + 1
        self.entries.append(
            Entry(
                seq=seq,
                kind=kind,
                at=self.opened_at + timedelta(seconds=seconds),
                author=author,
                source=source,
                text=Localized.verbatim(text) if isinstance(text, str) else text,
                permalink=permalink,
                corrects=corrects,
                history=history,
                data=data,
            )
        )
        return seq

    def say(self, seconds: float, author: str, text: str | None, **rest: Any) -> int:
        """A person's message in the thread."""
        return self.add(seconds, EntryKind.MESSAGE, text, author=author, source="slack", **rest)
