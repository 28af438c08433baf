"""What happens to one translation request, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from bot.demo.accelerator import Accelerator
from bot.demo.pinned_pool import PinnedBufferPool
from bot.demo.tokenizer import Tokenizer

_BYTES_PER_TOKEN = 4096  # one embedding of 1,024 values at four bytes


class Stage(StrEnum):
    """A stage of a request; the value is its label in `app_stage_duration_seconds`."""

    READ_INPUT = "read_input"
    PREPROCESS = "preprocess"
    WAIT_SLOT = "wait_slot"
    HOST_TO_DEVICE = "h2d"
    FORWARD = "forward"
    POSTPROCESS = "postprocess"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """When a stage ran, in nanoseconds since the epoch."""

    stage: Stage
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The answer, and where its time went."""

    text: str
    tokens: int
    stages: tuple[StageTime, ...]


class Translator:
    """Tokenize, stage and copy the input to the device, run the model, detokenize."""

    def __init__(
        self,
        pool: PinnedBufferPool,
        accelerator: Accelerator,
        *,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._pool = pool
        self._accelerator = accelerator
        self._tokenizer = Tokenizer()
        self._now_ns = now_ns
        self._activations = bytes(1 << 20)

    def translate(self, text: str) -> Translation:
        """Translates one segment of text."""
        stages: list[StageTime] = []
        with self._timed(Stage.PREPROCESS, stages):
            pieces = self._tokenizer.encode(text)
        with self._timed(Stage.HOST_TO_DEVICE, stages):
            self._copy_to_device(len(pieces))
        with self._timed(Stage.WAIT_SLOT, stages) as waited, self._accelerator.slot():
            waited()
            with self._timed(Stage.FORWARD, stages):
                self._accelerator.forward()
        with self._timed(Stage.POSTPROCESS, stages):
            translated = self._tokenizer.translate(pieces)
        return Translation(text=translated, tokens=len(pieces), stages=tuple(stages))

    def _copy_to_device(self, tokens: int) -> None:
        with self._pool.staging_buffer() as buffer:
            copied = buffer.copy_in(self._activations[: tokens * _BYTES_PER_TOKEN])
        self._accelerator.note_copied(copied)

    @contextmanager
    def _timed(self, stage: Stage, stages: list[StageTime]) -> Iterator[Callable[[], None]]:
        """Notes how long its block took, or the part of it until the yielded function was called."""
        start_ns = self._now_ns()
        ended: list[int] = []
        yield lambda: ended.append(self._now_ns())
        end_ns = ended[0] if ended else self._now_ns()
        stages.append(StageTime(stage=stage, start_ns=start_ns, end_ns=end_ns))
