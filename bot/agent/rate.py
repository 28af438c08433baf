"""A token bucket: so many requests a minute, and when the next may come."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Bucket:
    """Starts full. Times are monotonic seconds of the caller's clock."""

    per_minute: int
    _level: float = field(init=False)
    _at: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._level = float(self.per_minute)

    def take(self, now: float) -> float:
        """Takes one; 0.0 when it was there, else the seconds until it will be."""
        per_second = self.per_minute / 60
        if self._at is not None:
            self._level = min(self.per_minute, self._level + (now - self._at) * per_second)
        self._at = now
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / per_second
