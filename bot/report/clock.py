"""Times, durations and sizes as a reader wants to see them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.domain.instant import Window
from bot.domain.text import Locale

_UNITS = {
    Locale.EN: (("d", 86400), ("h", 3600), ("min", 60)),
    Locale.ZH_CN: (("天", 86400), ("小时", 3600), ("分钟", 60)),
}
_SECONDS = {Locale.EN: "s", Locale.ZH_CN: "秒"}
_UTC_TIME = re.compile(r"(?<![\w:.+-])(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d):(\d\d)(?::(\d\d))?Z\b")


@dataclass(frozen=True, slots=True)
class Clock:
    """Writes times in one zone. The offset is always shown: one wall-clock hour occurs twice a year."""

    zone: ZoneInfo

    @classmethod
    def named(cls, zone: str) -> Clock:
        """The clock of an IANA zone."""
        return cls(ZoneInfo(zone))

    def stamp(self, at: datetime) -> str:
        """`2026-11-30 16:15:00 +08:00`."""
        local = at.astimezone(self.zone)
        return f"{local:%Y-%m-%d %H:%M:%S} {_offset(local)}"

    def occurrence(self, at: datetime) -> int:
        """1 or 2: which of two equal wall-clock times it is, in the hour that a change of the clocks repeats; else 0."""
        local = at.astimezone(self.zone)
        if local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset():
            return 0
        return local.fold + 1

    def precise(self, at: datetime) -> str:
        """`stamp` with milliseconds where there are any, so that two entries of one second stay apart."""
        return f"{self.bare(at)} {_offset(at.astimezone(self.zone))}"

    def bare(self, at: datetime) -> str:
        """`precise` without the offset, for a list whose heading says it."""
        local = at.astimezone(self.zone)
        milliseconds = local.microsecond // 1000
        fraction = f".{milliseconds:03d}" if milliseconds else ""
        return f"{local:%Y-%m-%d %H:%M:%S}{fraction}"

    def time(self, at: datetime) -> str:
        """`bare` without the day, for a list whose heading says that too."""
        return self.bare(at).partition(" ")[2]

    def shared_offset(self, moments: Iterable[datetime]) -> str | None:
        """The offset that all these times have here; None where the clocks changed between them."""
        local = [at.astimezone(self.zone) for at in moments]
        return _offset(local[0]) if len({at.utcoffset() for at in local}) == 1 else None

    def shared_day(self, moments: Iterable[datetime]) -> str | None:
        """`2026-11-30 +08:00`: the day and offset that all these times have here; None where they differ."""
        local = [at.astimezone(self.zone) for at in moments]
        if len({(at.date(), at.utcoffset()) for at in local}) != 1:
            return None
        return f"{local[0]:%Y-%m-%d} {_offset(local[0])}"

    def local(self, text: str, near: datetime) -> str:
        """`text` with the UTC times in it (`12:05:00Z`, `2026-10-30 12:02Z`) as this clock shows them.

        near: a time without a date is of the day on which it is closest to this.
        """
        return _UTC_TIME.sub(lambda match: self._shown(match, near) or match[0], text)

    def _shown(self, match: re.Match[str], near: datetime) -> str | None:
        day, hour, minute, second = match.groups()
        try:
            given = datetime.fromisoformat(f"{day or near.astimezone(UTC).date()}T00:00:00+00:00")
            at = given.replace(hour=int(hour), minute=int(minute), second=int(second or 0))
        except ValueError:
            return None
        if day is None:
            around = (at + timedelta(days=days) for days in (-1, 0, 1))
            at = min(around, key=lambda moment: abs(moment - near))
        local = at.astimezone(self.zone)
        shown = f"{local:%H:%M:%S}" if second else f"{local:%H:%M}"
        return f"{local:%Y-%m-%d} {shown} {_offset(local)}" if day else f"{shown} {_offset(local)}"

    def span(self, window: Window) -> str:
        """`2026-11-30 16:15:00 – 16:45:00 +08:00`; the day is repeated only when it changes, one moment is told once."""
        if window.start == window.end:
            return self.stamp(window.end)
        start = window.start.astimezone(self.zone)
        end = window.end.astimezone(self.zone)
        if start.date() == end.date() and start.utcoffset() == end.utcoffset():
            return f"{start:%Y-%m-%d %H:%M:%S} – {end:%H:%M:%S} {_offset(end)}"
        return f"{self.stamp(window.start)} – {self.stamp(window.end)}"

    def hours(self, window: Window) -> str:
        """`16:15:00 – 16:45:00`: `span` without the day, for a list whose heading says it."""
        times = (window.start.astimezone(self.zone), window.end.astimezone(self.zone))
        return " – ".join(dict.fromkeys(f"{at:%H:%M:%S}" for at in times))


def _offset(local: datetime) -> str:
    text = f"{local:%z}"
    return f"{text[:3]}:{text[3:5]}"


def duration_text(seconds: float, locale: Locale) -> str:
    """`39 min 50 s`: the two largest units that are not zero; below a minute one decimal.

    >>> duration_text(2390, Locale.EN)
    '39 min 50 s'
    """
    gap = " " if locale is Locale.EN else ""
    if seconds < 60:
        return f"{round(seconds, 1):g} {_SECONDS[locale]}"
    rest = round(seconds)
    parts = []
    for unit, size in _UNITS[locale]:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{gap}{unit}" if gap else f"{count} {unit}")
    if rest:
        parts.append(f"{rest}{gap}{_SECONDS[locale]}" if gap else f"{rest} {_SECONDS[locale]}")
    return " ".join(parts[:2])


def size_text(size_bytes: int) -> str:
    """`12.3 KiB`; bytes below that.

    >>> size_text(12_600), size_text(3 << 20)
    ('12.3 KiB', '3.0 MiB')
    """
    if size_bytes < 1024:
        return f"{size_bytes} B"
    if size_bytes < 1 << 20:
        return f"{size_bytes / 1024:.1f} KiB"
    return f"{size_bytes / (1 << 20):.1f} MiB"
