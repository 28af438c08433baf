"""The section that says what kept the ranking honest: every guard that stepped in, and how far changes were searched."""

from __future__ import annotations

from bot.locales import say
from bot.report.blocks import Row, Section, Table
from bot.report.wording import Wording, plain


def guard_sections(words: Wording) -> tuple[Section, ...]:
    """One section; none where no pass of the engine has said anything."""
    guards = words.report.guards
    if not guards:
        return ()
    rows = tuple(
        Row(
            cells=(
                plain(words.say(say(f"guards.kind.{note.kind.value}"))),
                plain(words.say(note.text)),
            )
        )
        for note in guards
    )
    title = words.say(say("guards.section"))
    columns = tuple(words.say(say(f"guards.column.{name}")) for name in ("guard", "text"))
    table = Table(caption=title, columns=columns, rows=rows, widths=(28, 72))
    return (Section(id="guards", title=title, blocks=(table,)),)
