"""`rca-bot export` takes the words that people type, and says in one line what it cannot do."""

import concurrent.futures

import pytest
from typer.testing import CliRunner

from bot.console.export import app
from tests.web.door import opened, payload


@pytest.fixture
async def stored(redis_url, monkeypatch):
    monkeypatch.setenv("REDIS_URL", redis_url)
    async with opened(redis_url) as door:
        await door.take("alertmanager", payload("firing_and_resolved.json"))


def run(*words):
    # A thread of its own: the command runs a loop of its own.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(CliRunner().invoke, app, [str(word) for word in words]).result()


async def test_words_are_taken_as_people_type_them(stored, tmp_path):
    result = run("inc-1", "--out", tmp_path / "new", "--format", "Markdown, JSON,md")
    assert result.exit_code == 0, result.output
    assert result.output.split() == [
        str(tmp_path / "new" / f"INC-1.{suffix}") for suffix in ("md", "json")
    ]


async def test_unknown_incident_and_folder_that_is_a_file_are_one_line_each(stored, tmp_path):
    missing = run("INC-9", "--out", tmp_path, "--format", "json")
    assert "INC-9: no such incident" in str(missing.exception)
    (tmp_path / "file").write_text("")
    taken = run("INC-1", "--out", tmp_path / "file", "--format", "json")
    assert "choose another folder with --out" in str(taken.exception)


@pytest.mark.parametrize("words", [("--format", "docx"), ("--format", ","), ("--locale", "de")])
async def test_wrong_word_is_a_usage_error_that_lists_the_right_ones(tmp_path, words):
    result = run("INC-1", "--out", tmp_path, *words)
    assert result.exit_code == 2
    assert "choose from" in result.output
