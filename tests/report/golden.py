"""The sample incident's report in both languages, as files that a review can read: `python -m tests.report.golden`.

Only run it after looking at what changed; the test beside it compares.
"""

from __future__ import annotations

from pathlib import Path

from bot.domain.postmortem import JudgementTopic
from bot.domain.projection import project
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.exporter import ExportOptions
from bot.exporters import render_report
from tests.report.sample import DIRECTORY, Case, sample_case
from tests.report.sample_script import Script

FOLDER = Path(__file__).resolve().parent / "golden"
FORMATS = ("md", "json")

WRITTEN = {
    JudgementTopic.IMPACT: "All tenants of translate-api waited up to 0.6 s for 13 minutes; 没有请求失败。",
    JudgementTopic.WENT_WELL: "The allocator probe answered within the first minute.",
    JudgementTopic.WENT_BADLY: "The gateway deploy of that afternoon had nothing to do with it.",
    JudgementTopic.LESSONS: "A pool change has to be tested at peak load.",
}


def golden_case() -> Case:
    """The established incident, written up and reviewed, with one file in the thread."""
    script = Script()
    script.entries = list(sample_case().entries)
    held = {"name": "flame graph.svg", "size": 48_200, "mimetype": "image/svg+xml"}
    script.say(765, "U0SAM", "stacks of one worker", files=[held])
    compiled = Localized("Report compiled: md, json", "报告已生成：md、json")
    script.add(
        770, EntryKind.REPORT, compiled, author="U0LIN", formats=["md", "json"], state="draft"
    )
    for topic, text in WRITTEN.items():
        script.add(
            800, EntryKind.REPORT, text, author="U0LIN", source="slack",
            op="edited", topic=topic.value, state="draft",
        )  # fmt: skip
    reviewed = Localized("The report was reviewed", "报告已复核")
    script.add(
        900, EntryKind.REPORT, reviewed, author="U0PRIYA", source="slack",
        op="reviewed", state="reviewed",
    )  # fmt: skip
    entries = tuple(script.entries)
    return Case(entries=entries, incident=project("INC-7", entries), directory=DIRECTORY)


def written() -> dict[str, bytes]:
    """File name to content, in both languages."""
    report = golden_case().compile()
    made = {}
    for locale in Locale:
        exports = render_report(report, FORMATS, ExportOptions(locale=locale))
        for suffix, export in exports.items():
            made[f"INC-7.{locale.value}.{suffix}"] = export.content
    return made


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in written().items():
        (FOLDER / name).write_bytes(content)
