"""The people behind the gateway, few in the afternoon and many in the evening.

Each waits for an answer before asking again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random

_WORDS = (
    "the", "order", "has", "been", "shipped", "and", "will", "arrive", "within", "three", "working", "days",
    "please", "confirm", "your", "address", "before", "the", "parcel", "leaves", "the", "warehouse", "our",
    "customer", "service", "answers", "every", "question", "about", "delivery", "and", "payment",
)  # fmt: skip
_PASSAGE_WORDS = (350, 450)


class LoadPhase(StrEnum):
    """How busy the evening is."""

    IDLE = "idle"
    BASELINE = "baseline"
    PEAK = "peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """So many people, each reading for `think_seconds` on average between an answer and the next request.

    The rate that they want is `people / think_seconds`. A slow service gets fewer requests from them, so that its
    queue stays as long as the crowd makes it and does not grow for ever.
    """

    people: int
    think_seconds: float

    def think(self, random: Random) -> float:
        """Seconds until the next request of one person."""
        return random.uniform(0.7, 1.3) * self.think_seconds


CROWDS = {
    LoadPhase.IDLE: Crowd(people=0, think_seconds=1.2),
    LoadPhase.BASELINE: Crowd(people=4, think_seconds=1.2),
    LoadPhase.PEAK: Crowd(people=64, think_seconds=1.2),
}


def passage(random: Random) -> str:
    """What somebody wants translated: 350 to 450 words."""
    return " ".join(random.choices(_WORDS, k=random.randint(*_PASSAGE_WORDS)))
