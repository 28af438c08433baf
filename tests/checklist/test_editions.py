"""Accepted changes lie over the file: the text, who brought which line, and what happens when the file moves on."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.checklist import apply_change, load_checklists, parse_checklist, shipped_checklists
from bot.checklist.diffs import diff_of, files_of, parse_diff
from bot.checklist.editing import editable, edited
from bot.checklist.editions import edition
from bot.checklist.writing import NewItem, appended, moved, quoted, without
from bot.domain.checklist import Version, VersionOp
from bot.domain.text import Localized
from bot.errors import CommandError

NAME = "inference-latency"
PATH = f"checklists/{NAME}.yaml"
AT = datetime(2026, 11, 30, tzinfo=UTC)
LIST = load_checklists([shipped_checklists()])[NAME]


def grown(text: str, item_id: str, incident: str = "INC-7", words: str = "Look there.") -> str:
    checklist = parse_checklist(text, Path(PATH))
    item = NewItem(id=item_id, probe="host_memory", text=Localized(words, words))
    return appended(checklist, incident, [item])


def version(number: int, diff: str = "", **more: object) -> Version:
    given = {"by": "U1", "at": AT, "reason": "r", "incident": f"INC-{number}"} | more
    op = VersionOp.ACCEPTED if diff else VersionOp.ROLLED_BACK
    return Version(path=PATH, number=number, op=op, diff=diff, **given)  # type: ignore[arg-type]


def two() -> tuple[Version, Version]:
    first = grown(LIST.source, "one", "INC-1")
    second = grown(first, "two", "INC-2")
    return (
        version(1, diff_of(PATH, LIST.source, first)),
        version(2, diff_of(PATH, first, second), by="U2"),
    )


def test_blame_names_the_incident_and_the_person_of_each_line_that_a_change_brought():
    made = edition(PATH, LIST.source, two())
    brought = [line for line in made.lines if line.version]
    assert {line.version.incident for line in brought} == {"INC-1", "INC-2"}
    line = next(line for line in brought if "id: two" in line.text)
    assert (line.version.by, line.version.number) == ("U2", 2)
    assert all(
        line.version is None for line in made.lines if line.text in LIST.source.splitlines()[:5]
    )


def test_rollback_gives_the_earlier_text_and_a_later_change_goes_over_that():
    first, second = two()
    back = edition(PATH, LIST.source, (first, second, version(3, to=1)))
    assert [item.id for item in parse_checklist(back.text, Path(PATH)).items][-1] == "one"
    third = grown(back.text, "three")
    again = edition(
        PATH,
        LIST.source,
        (first, second, version(3, to=1), version(4, diff_of(PATH, back.text, third))),
    )
    ids = [item.id for item in parse_checklist(again.text, Path(PATH)).items]
    assert ids[-2:] == ["one", "three"] and again.number == 4


def test_change_follows_a_file_that_the_product_has_changed_meanwhile():
    newer = moved(LIST, "disk-waits", "cpu-waits")
    made = edition(PATH, newer, two())
    ids = [item.id for item in parse_checklist(made.text, Path(PATH)).items]
    assert ids[-2:] == ["one", "two"] and made.left_out == ()
    assert made.patch.startswith(f"--- a/{PATH}\n+++ b/{PATH}\n")


def test_what_was_only_added_stays_where_its_neighbours_are_gone():
    fewer = without(LIST, [item.id for item in LIST.items[5:]])
    made = edition(PATH, fewer, two())
    ids = [item.id for item in parse_checklist(made.text, Path(PATH)).items]
    assert ids[-2:] == ["one", "two"] and made.left_out == ()


def test_change_that_no_longer_fits_is_left_out_and_named():
    order = version(1, diff_of(PATH, LIST.source, moved(LIST, "disk-waits", "cpu-waits")))
    fewer = without(LIST, ["disk-waits"])
    made = edition(PATH, fewer, (order,))
    assert made.left_out == (1,) and made.text == fewer


def test_change_that_would_break_the_file_is_left_out():
    twice = grown(LIST.source, "one", "INC-1")
    both = version(1, diff_of(PATH, LIST.source, twice))
    made = edition(PATH, twice, (both,), lambda text: len({*text.split("id: one")}) < 3)
    assert made.left_out == (1,)


def test_patch_of_an_edition_is_taken_by_git(tmp_path: Path):
    import subprocess

    (tmp_path / "checklists").mkdir()
    (tmp_path / PATH).write_text(LIST.source, encoding="utf-8")
    made = edition(PATH, LIST.source, two())
    (tmp_path / "accepted.patch").write_text(made.patch, encoding="utf-8")
    subprocess.run(["git", "apply", "accepted.patch"], cwd=tmp_path, check=True)
    assert (tmp_path / PATH).read_text(encoding="utf-8") == made.text


@given(st.text(max_size=300))
def test_whatever_an_incident_says_stays_one_text_of_the_file(words: str):
    text = grown(LIST.source, "one", words=words)
    checklist = parse_checklist(text, Path(PATH))
    assert [item.id for item in checklist.items][:-1] == [item.id for item in LIST.items]
    loaded = yaml.safe_load(text)
    assert set(loaded) == {"id", "title", "matches", "items"}
    diff = diff_of(PATH, LIST.source, text)
    assert apply_change(LIST.source, diff) == text
    assert len(quoted(words).splitlines()) == 1


@given(st.text(max_size=400))
def test_text_that_is_no_diff_is_refused_and_not_half_applied(text: str):
    try:
        after = apply_change(LIST.source, text)
    except CommandError:
        return
    assert after == LIST.source or parse_diff(text)


def test_line_of_a_file_cannot_pose_as_the_header_of_another():
    inner = "--- /dev/null\n+++ b/etc/passwd\n@@ -0,0 +1,1 @@\n+evil\n"
    diff = diff_of("monitoring/a.yml", "", inner)
    assert list(files_of(diff)) == ["monitoring/a.yml"]
    assert files_of(diff)["monitoring/a.yml"] == inner


@pytest.mark.parametrize("path", ["../x.yml", "/etc/x.yml", "a/../../x.yml", "a b.yml", ""])
def test_path_that_leaves_the_folder_is_refused(path: str):
    with pytest.raises(CommandError):
        files_of(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,1 @@\n+x\n")


def test_person_rewords_the_lines_that_a_change_adds():
    diff = diff_of(PATH, LIST.source, grown(LIST.source, "one"))
    block = editable(diff)
    assert block is not None and "id: one" in block
    # A form takes the blanks off both ends.
    reworded = edited(diff, block.strip().replace("Look there.", "Look | here."))
    item = parse_checklist(apply_change(LIST.source, reworded), Path(PATH)).items[-1]
    assert (item.id, item.text.en) == ("one", "Look | here.")
    with pytest.raises(CommandError, match="Nothing is left"):
        edited(diff, " \n ")


def test_change_in_several_places_is_not_reworded_in_a_form():
    assert editable(diff_of(PATH, LIST.source, moved(LIST, "disk-waits", "cpu-waits"))) is None
    assert editable("no diff") is None
