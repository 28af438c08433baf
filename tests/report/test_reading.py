"""What makes a long report readable: one row for what was asked twice, one clock, names for ids, a summary on top."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from bot.domain.instant import Window, to_rfc3339
from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.exporter import ExportOptions
from bot.exporters import render_report
from bot.report.blocks import Facts, Page, Table
from bot.report.clock import Clock
from bot.report.outline import outline
from bot.report.pdf import PAPER_CHARACTERS
from bot.report.redact import redact
from bot.report.wording import Wording
from tests.report.sample import DIRECTORY, sample_case
from tests.report.sample_facts import P99, hypotheses, probe
from tests.report.sample_script import Script

NEAR = datetime(2026, 10, 30, 23, 50, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("620 ms since 12:05:00Z", "620 ms since 20:05:00 +08:00"),
        ("(2026-10-30 12:02Z)", "(2026-10-30 20:02 +08:00)"),
        ("at 2026-10-30T22:00:00Z", "at 2026-10-31 06:00:00 +08:00"),
        ("no time: 99:99Z, 12:05, v1.12:05Z", "no time: 99:99Z, 12:05, v1.12:05Z"),
        ("12:00Z–13:00Z", "20:00 +08:00–21:00 +08:00"),
    ],
)
def test_times_in_sentences_are_told_by_the_clock_of_the_report(said: str, shown: str) -> None:
    assert Clock.named("Asia/Shanghai").local(said, NEAR) == shown


def test_time_without_a_date_is_of_the_nearest_day() -> None:
    """Ten past midnight is after the change of the clocks, ten to midnight before it."""
    clock = Clock.named("Europe/London")
    changed = datetime(2026, 10, 25, 0, 5, tzinfo=UTC)
    assert clock.local("23:50Z", changed) == "00:50 +01:00"
    assert clock.local("01:10Z", changed) == "01:10 +00:00"


def test_words_of_people_keep_the_times_that_they_wrote() -> None:
    words = Wording.of(sample_case().compile(), Locale.EN)
    assert words.say(Localized.verbatim("down since 11:02Z")) == "down since 11:02Z"
    assert words.say(Localized("since 11:02Z", "自 11:02Z 起")) == "since 19:02 +08:00"


def _three_passes() -> Postmortem:
    case = sample_case()
    found = [
        replace(
            P99,
            window=Window(P99.window.start, P99.window.end + timedelta(minutes=n)),
            digest=f"{P99.digest if n == 0 else n}",
        )
        for n in range(3)
    ]
    calm = replace(found[2], is_abnormal=False, digest="after")
    evidence = (*case.incident.evidence, *found[1:], calm)
    return replace(case, incident=replace(case.incident, evidence=evidence)).compile()


def _rows(page: Page, section: str, caption: str) -> Table:
    blocks = next(part.blocks for part in page.sections if part.id == section)
    return next(b for b in blocks if isinstance(b, Table) and b.caption.startswith(caption))


def test_question_that_every_pass_asked_is_one_row_under_all_its_ids() -> None:
    report = _three_passes()
    asked = [item for item in report.evidence if item.evidence.query == P99.query]
    table = _rows(outline(report, Locale.EN), "evidence", "Metrics")
    anchors = [(row.anchor, *row.also) for row in table.rows]
    assert len(asked) == 4
    assert sorted(map(len, anchors)) == [1, 3], "what changed its verdict is a row of its own"
    assert {name for group in anchors for name in group} == {f"r-{item.id}" for item in asked}
    written = render_report(report, ["json", "md", "html"], ExportOptions(locale=Locale.EN))
    ids = [item["id"] for item in json.loads(written["json"].content)["evidence"]]
    assert set(ids) >= {item.id for item in asked}
    for suffix in ("md", "html"):
        text = written[suffix].content.decode()
        assert all(text.count(f'id="r-{item.id}"') == 1 for item in asked), suffix


def test_probe_that_every_pass_ran_is_one_row_with_all_its_answers() -> None:
    script = Script()
    script.entries = list(sample_case().entries)
    for n in range(3):
        result = replace(probe("host_disk"), duration_seconds=0.1 + n, data={"pass": f"p{n}"})
        script.add(
            300 + n, EntryKind.PROBE, "ran", purpose="collection", result=result.to_json()
        )  # fmt: skip
    entries = tuple(script.entries)
    report = replace(sample_case(), entries=entries).compile()
    table = _rows(outline(report, Locale.EN), "appendix", "Probes")
    row = next(r for r in table.rows if r.cells[0][0].text == "host_disk")
    assert row.cells[3][0].text == "0.10–2.10 s"
    text = render_report(report, ["md"], ExportOptions(locale=Locale.EN))["md"].content.decode()
    assert [text.count(f'"p{n}"') for n in range(3)] == [1, 1, 1]


def test_the_same_answer_again_is_told_by_when_it_came() -> None:
    script = Script()
    script.entries = list(sample_case().entries)
    begun = probe("host_disk").started_at + timedelta(hours=7)
    for n in range(3):
        result = replace(
            probe("host_disk"), started_at=begun + timedelta(minutes=n), data={"marker": "zq"}
        )
        script.add(300 + n, EntryKind.PROBE, "ran", purpose="collection", result=result.to_json())
    report = replace(sample_case(), entries=tuple(script.entries)).compile()
    for suffix in ("md", "html"):
        files = render_report(report, [suffix], ExportOptions(locale=Locale.EN))
        text = unescape(files[suffix].content.decode())
        assert text.count('"marker": "zq"') == 1
        for n in range(3):
            at = to_rfc3339(begun + timedelta(minutes=n))
            assert text.count(f'"started_at": "{at}"') == 1, (suffix, n)


def _table(report: Postmortem, section: str, start: str) -> Table:
    return _rows(outline(report, Locale.EN), section, start)


def test_day_that_all_times_of_a_list_share_stands_in_its_heading() -> None:
    report = sample_case().compile(zone="UTC")
    timeline, metrics = _table(report, "timeline", ""), _table(report, "evidence", "Metrics")
    assert timeline.caption.endswith("times of 2026-11-30 +00:00")
    assert all(re.fullmatch(r"[\d:.]{8,12}", row.cells[1][0].text) for row in timeline.rows)
    assert metrics.caption.endswith("times of 2026-11-30 +00:00")
    spans = {row.cells[4][0].text for row in metrics.rows}
    assert all(re.fullmatch(r"[\d:]{8}( – [\d:]{8})?", span) for span in spans)


def test_list_over_midnight_tells_the_day_of_each_time() -> None:
    """Where the day changes within the incident no heading can say it."""
    report = sample_case().compile(zone="Pacific/Kiritimati")
    opened = report.header.opened_at
    late = replace(report.timeline[-1], at=opened + timedelta(days=1))
    table = _table(replace(report, timeline=(*report.timeline[:-1], late)), "timeline", "")
    assert table.caption.endswith("times in +14:00")
    assert all(row.cells[1][0].text.startswith("2026-1") for row in table.rows)


def test_one_moment_is_told_once() -> None:
    clock = Clock.named("Asia/Shanghai")
    moment = Window(P99.window.end, P99.window.end)
    assert clock.span(moment) == clock.stamp(P99.window.end)
    assert clock.hours(moment) == f"{P99.window.end.astimezone(clock.zone):%H:%M:%S}"


@pytest.mark.parametrize(("locale", "comma"), [(Locale.EN, ", "), (Locale.ZH_CN, "、")])
def test_lists_have_the_comma_of_their_language(locale: Locale, comma: str) -> None:
    report = sample_case().compile()
    report = replace(report, header=replace(report.header, services=("a", "b")))
    facts = next(part.blocks[0] for part in outline(report, locale).sections if part.id == "facts")
    assert isinstance(facts, Facts)
    assert f"a{comma}b" in {"".join(span.text for span in value) for _, value in facts.rows}


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(0.0, "0%"), (0.0001, "<1%"), (0.83, "83%"), (0.9999, ">99%"), (1.0, "100%")],
)
def test_the_unlikely_is_not_shown_as_impossible(ratio: float, shown: str) -> None:
    assert Wording.percent(ratio) == shown


def test_ids_of_people_in_our_own_sentences_are_names_and_strangers_stay_masked() -> None:
    script = Script()
    script.entries = list(sample_case().entries)
    script.add(400, EntryKind.ROLE, Localized("Role lead: U0LIN", "角色：U0LIN"), author="U0LIN")
    script.add(401, EntryKind.ROLE, Localized("Role lead: U0GONE", "角色：U0GONE"), author="U0LIN")
    report = redact(replace(sample_case(), entries=tuple(script.entries)).compile())
    said = {line.text.en for line in report.timeline if line.text}
    assert f"Role lead: {DIRECTORY['U0LIN']}" in said
    assert not any("U0GONE" in text for text in said)


def test_reaction_says_what_it_makes_of_the_words() -> None:
    script = Script()
    script.entries = list(sample_case().entries)
    for meaning, removed in (("fix", False), ("fix", True), ("newer", False)):
        script.add(
            500, EntryKind.REACTION, "restarted it", author="U0LIN", source="slack",
            meaning=meaning, removed=removed,
        )  # fmt: skip
    report = replace(sample_case(), entries=tuple(script.entries)).compile()
    said = [line.text.en for line in report.timeline if line.kind is EntryKind.REACTION]
    assert said == ["marked as the fix: restarted it", "restarted it", "restarted it"]


def test_summary_names_cause_fix_and_what_is_left() -> None:
    page = outline(sample_case().compile(), Locale.EN)
    facts = next(block for block in page.sections[0].blocks if isinstance(block, Facts))
    said = {label: "".join(span.text for span in value) for label, value in facts.rows}
    assert hypotheses()[0].title.en in said["Root cause"]
    assert said["Fix"].endswith("the symptom is gone, checked")
    assert said["Action items"].startswith("1 open of 1")
    unknown = outline(sample_case(is_established=False).compile(), Locale.ZH_CN)
    facts = next(block for block in unknown.sections[0].blocks if isinstance(block, Facts))
    assert [value[0].text for label, value in facts.rows if label == "根因"] == ["未确定"]


def test_text_of_a_hundred_kilobytes_is_whole_in_what_is_not_paper() -> None:
    case = sample_case()
    text = "".join(f"{n:07d}\n" for n in range(12_000))
    first, *rest = case.incident.changes
    incident = replace(case.incident, changes=(replace(first, summary=text), *rest))
    report = replace(case, incident=incident).compile()
    written = render_report(report, ["md", "html", "json"], ExportOptions(locale=Locale.EN))
    for suffix in ("md", "html", "json"):
        assert written[suffix].content.count(b"0011999") >= 1, suffix
    assert len(text) > 10 * PAPER_CHARACTERS
