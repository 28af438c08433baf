"""When requests arrive: a quiet afternoon, and an evening in which people translate whole pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class LoadPhase(StrEnum):
    """How busy the users are."""

    BASELINE = "baseline"
    PEAK = "peak"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadShape:
    """Documents per second and segments per document.

    Each segment is one request; the segments of a document are sent within `spread_seconds`, as the page that
    is translated asks for them.
    """

    documents_per_second: float
    segments: tuple[int, int]
    spread_seconds: float

    @property
    def requests_per_second(self) -> float:
        """The mean rate."""
        return self.documents_per_second * sum(self.segments) / 2


SHAPES = {
    LoadPhase.IDLE: LoadShape(documents_per_second=0.0, segments=(0, 0), spread_seconds=0.0),
    LoadPhase.BASELINE: LoadShape(documents_per_second=6.0, segments=(1, 1), spread_seconds=0.0),
    LoadPhase.PEAK: LoadShape(documents_per_second=0.7, segments=(36, 40), spread_seconds=0.4),
}


def document_gap(shape: LoadShape, random: Random) -> float:
    """Seconds until the next document: even, with a fifth of jitter, so that short runs look alike."""
    return random.uniform(0.8, 1.2) / shape.documents_per_second


def segment_offsets(shape: LoadShape, random: Random) -> Iterator[float]:
    """Seconds after the document's arrival at which each of its segments is sent."""
    count = random.randint(*shape.segments)
    for index in range(count):
        yield shape.spread_seconds * (index + random.random()) / count


_WORDS = [
    "the",
    "order",
    "has",
    "been",
    "shipped",
    "and",
    "will",
    "arrive",
    "within",
    "three",
    "working",
    "days",
    "please",
    "confirm",
    "your",
    "address",
    "before",
    "the",
    "parcel",
    "leaves",
    "the",
    "warehouse",
    "our",
    "customer",
    "service",
    "answers",
    "every",
    "question",
    "about",
    "delivery",
    "and",
    "payment",
]


def segment_text(random: Random) -> str:
    """One segment: a passage of 400 to 500 words."""
    return " ".join(random.choices(_WORDS, k=random.randint(400, 500)))
