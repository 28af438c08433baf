"""What the timeline says of checks: what was found in full, the rest by name."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.domain.checklist import CheckOutcome, CheckRun
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR
from bot.incidents.check_words import runs_said


def run(item: str, outcome: CheckOutcome, by: str = SYSTEM_AUTHOR, learned: str | None = None):
    return CheckRun(
        checklist="latency", item=item, version=0, text=Localized("?", "？"), outcome=outcome,
        summary=Localized(f"saw-{item}", f"看-{item}"), by=by, at=datetime(2026, 11, 30, tzinfo=UTC),
        learned_from=learned,
    )  # fmt: skip


def test_only_what_somebody_has_to_read_is_told_in_full():
    said = runs_said(
        [
            run("cpu", CheckOutcome.CLEAN),
            run("disk", CheckOutcome.FOUND),
            run("clocks", CheckOutcome.CLEAN),
            run("link", CheckOutcome.UNKNOWN),
            run("pool", CheckOutcome.CLEAN, learned="INC-3"),
            run("tail", CheckOutcome.CLEAN, by="U0SRE"),
        ]
    )
    for text, comma in ((said.en, ", "), (said.zh, "、")):
        assert f"cpu{comma}clocks" in text
        assert [name for name in ("cpu", "clocks", "link") if f"-{name}" in text] == []
        assert [name for name in ("disk", "pool", "tail") if f"-{name}" not in text] == []
        assert all(text.count(name) == 1 for name in ("cpu", "clocks", "link", "INC-3"))
