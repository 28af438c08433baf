"""One delivery target per file; this door collects them, and makes ready what is delivered."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache

from bot.domain.postmortem import Postmortem
from bot.exporter import ExportOptions
from bot.registry import collect
from bot.report.redact import redact
from bot.target import Parcel, Target


@cache
def targets() -> Mapping[str, Target]:
    """All targets by the word that people type."""
    return collect(sys.modules[__name__], Target)


def packed(name: str, report: Postmortem, options: ExportOptions, key: str) -> Parcel:
    """What target `name` is to be given of a report, which is redacted here unless it was before.

    It blocks, for seconds where the report is long: run it in a worker process, never on the event loop. All arguments
    and the result can be pickled.
    """
    safe = redact(report)
    write = targets()[name].write
    return Parcel(
        incident=safe.header.id,
        key=key,
        title=f"{safe.header.id} · {safe.header.title}",
        locale=options.locale,
        export=write(safe, options) if write is not None else None,
        action_items=safe.action_items,
    )
