"""What the report of a recorded incident says, to the letter, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

from bot.domain.postmortem import ReportState
from tests.report import golden

ADVICE = "look at it (`make golden OUT=FOLDER` writes every format), then `make golden`"


async def test_recorded_incident_is_reported_as_it_was_last_looked_at(
    redis_url: str, tmp_path: Path
) -> None:
    report = await golden.compiled(redis_url, tmp_path)
    assert report.header.state is ReportState.FINAL
    assert report.root_cause is not None
    assert report.root_cause.chain == (
        "data_loading_blocked",
        "disk_io_saturation",
        "log_write_surge",
    )
    made = golden.written(report)
    assert sorted(made) == sorted(path.name for path in golden.FOLDER.iterdir())
    for name, content in made.items():
        kept = (golden.FOLDER / name).read_bytes()
        old, new = kept.decode().splitlines(), content.decode().splitlines()
        changed = [
            f"{number}: {line[:200]!r}"
            for number, (before, line) in enumerate(zip(old, new, strict=False), 1)
            if before != line
        ]
        assert not changed[:5], f"{name}: {ADVICE}"
        assert kept == content, f"{name}: {ADVICE}"


def test_both_languages_say_the_same_things() -> None:
    """Each section, table and row of one language is in the other."""
    english, chinese = (_lines(locale) for locale in ("en", "zh-CN"))
    shape = [line[:2] for line in english if line.startswith(("#", "|", "<a"))]
    assert shape == [line[:2] for line in chinese if line.startswith(("#", "|", "<a"))]


def test_every_time_is_told_in_the_zone_of_the_report() -> None:
    """Only the raw answers of nodes and the numbers of a chart's name are left as they came."""
    for locale in ("en", "zh-CN"):
        text = "\n".join(_lines(locale)).partition('<a id="appendix"></a>')[0]
        assert re.findall(r"\b\d\d:\d\d(?::\d\d)?Z", text) == []
        assert "20:02:55 +08:00" in text


def test_nothing_that_stands_at_rest_is_called_abnormal() -> None:
    rows = [line for line in _lines("en") if line.startswith('| <a id="r-E-')]
    odd = [line for line in rows if "**abnormal**" in line]
    assert len(odd) > 10
    assert not [line for line in odd if "0 %, as before" in line]


def _lines(locale: str) -> list[str]:
    path = golden.FOLDER / f"INC-1.{locale}.md"
    return path.read_text(encoding="utf-8").splitlines()
