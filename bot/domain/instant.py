"""Points in time as aware UTC datetimes, and their RFC 3339 form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


def to_rfc3339(at: datetime) -> str:
    """`2026-11-30T08:15:00Z`; fractional seconds appear only when there are any.

    >>> to_rfc3339(datetime(2026, 11, 30, 8, 15, tzinfo=UTC))
    '2026-11-30T08:15:00Z'
    """
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime:
    """Reads an RFC 3339 time with an offset.

    Raises:
        ValueError: the text is no time, carries no offset (a guess at the zone would be wrong for somebody), or
            names a moment that has no date in UTC.

    >>> parse_rfc3339("2026-11-30T16:15:00+08:00").isoformat()
    '2026-11-30T08:15:00+00:00'
    """
    at = datetime.fromisoformat(text.strip())
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} has no date in UTC") from error


@dataclass(frozen=True, slots=True)
class Window:
    """A closed interval of time that evidence was taken from."""

    start: datetime
    end: datetime

    @classmethod
    def before(cls, end: datetime, seconds: float) -> Window:
        """The `seconds` up to `end`."""
        return cls(end - timedelta(seconds=seconds), end)

    @property
    def seconds(self) -> float:
        """Length of the interval."""
        return (self.end - self.start).total_seconds()

    def to_json(self) -> dict[str, str]:
        """`{"start": …, "end": …}` in RFC 3339."""
        return {"start": to_rfc3339(self.start), "end": to_rfc3339(self.end)}

    @classmethod
    def from_json(cls, value: dict[str, str]) -> Window:
        """Reads `to_json`'s shape."""
        return cls(parse_rfc3339(value["start"]), parse_rfc3339(value["end"]))
