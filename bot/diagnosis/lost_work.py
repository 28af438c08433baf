"""Work that was lost by the service's own account: somebody noticed it, even where no metric of callers tells."""

from __future__ import annotations

from bot.cause import Catalogue, LogPlace, LogTest, SymptomKind
from bot.diagnosis.facts import Facts
from bot.diagnosis.judge import Bench, Verdict
from bot.domain.evidence import Evidence
from bot.domain.hypothesis import Symptom

_LOST = LogTest(
    pattern=(
        r"out of memory|OutOfMemoryError|bad_alloc|segmentation fault|\bSIG(SEGV|ABRT|BUS|KILL)\b|core dumped"
        r"|\bpanic: |illegal memory access|device-side assert|\bfatal (python )?error\b"
    ),
    place=LogPlace.SERVICE,
)
"""What allocators, runtimes and kernels say when a request or a process has just been lost.

Source: PyTorch, CUDA, glibc, CPython and Go. An `ERROR` alone is no loss: most are handled.
"""


def lost_work(facts: Facts, catalogue: Catalogue) -> Evidence | None:
    """The lines that tell of it, if they are new in the incident and nothing else shows a symptom; else None."""
    if facts.incident.is_seen:
        return None
    judgement = Bench(facts, catalogue, None).judge(_LOST)
    return judgement.evidence[0] if judgement.verdict is Verdict.TRUE else None


def symptom_of(lost: Evidence) -> Symptom:
    """The same as a symptom."""
    return Symptom(id=SymptomKind.ERRORS.value, summary=lost.summary, since=lost.window.start)
