"""What the sample incident's report says, to the letter, in both languages."""

from __future__ import annotations

from tests.report import golden


def test_report_reads_as_it_was_last_looked_at():
    for name, content in golden.written().items():
        kept = (golden.FOLDER / name).read_text(encoding="utf-8").splitlines()
        made = content.decode().splitlines()
        changed = [
            f"{number}: {new!r}"
            for number, (old, new) in enumerate(zip(kept, made, strict=False), 1)
            if old != new
        ]
        assert not changed[:5], f"{name}: look at it, then `python -m tests.report.golden`"
        assert len(kept) == len(made), name


def test_both_languages_say_the_same_things():
    """Each section, table and row of one language is in the other."""
    english, chinese = (
        (golden.FOLDER / f"INC-7.{locale}.md").read_text(encoding="utf-8").splitlines()
        for locale in ("en", "zh-CN")
    )
    shape = [line[:2] for line in english if line.startswith(("#", "|", "<a"))]
    assert shape == [line[:2] for line in chinese if line.startswith(("#", "|", "<a"))]
