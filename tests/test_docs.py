"""What the documents say is what the code does."""

import json
import re

import pytest

import bot.probes
import commands
from bot.checkpoint import POINTS
from bot.cli import WORDS, run
from bot.command import Command
from bot.probe import Probe
from bot.registry import collect
from bot.settings import _ENVIRONMENT
from bot.slack.manifest import manifest
from tests.readme_tables import HEADS, rendered


@pytest.mark.parametrize("readme", HEADS)
def test_the_table_of_findings_is_the_probes_own(repository, readme):
    assert (repository / readme).read_text(encoding="utf-8") == rendered(readme), (
        "stale; run: make fix"
    )


@pytest.mark.parametrize("readme", HEADS)
def test_a_readme_names_the_settings_that_people_need(repository, readme):
    text = (repository / readme).read_text(encoding="utf-8")
    named = {name for name in _ENVIRONMENT if name in text}
    left_out = set(_ENVIRONMENT) - named
    assert left_out <= {
        "SLACK_API_URL",
        "RCA_WEBHOOK_OPEN",
        "RCA_PAGERDUTY_SECRET",
        "RCA_GITHUB_SECRET",
    }


def test_both_readmes_have_the_same_commands(repository):
    def commands_of(name):
        text = (repository / name).read_text(encoding="utf-8")
        blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
        return [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]

    assert commands_of("README.md") == commands_of("README.zh-CN.md")


def test_the_shipped_manifest_is_the_generated_one(repository):
    shipped = json.loads((repository / "deploy/slack/manifest.json").read_text())
    assert shipped == manifest("https://rca.example.net")


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_the_shell_has_help(word, capsys):
    assert run(word, ["--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_all_words_of_the_contract_are_commands():
    words = {
        "start", "status", "step", "note", "symptom", "mitigate", "probe", "chart", "hypothesis",
        "changes", "role", "severity", "nodes", "export", "resolve", "checklist", "search", "stats",
        "drill", "help",
    }  # fmt: skip
    assert set(collect(commands, Command)) == words


def test_the_issue_probes_are_there():
    assert {
        "host_cpu", "host_memory", "host_disk", "host_network", "process_threads", "process_stacks",
        "kernel_log", "gpu_allocator", "service_metrics", "log_health", "gpu_state", "gpu_link",
    } <= set(collect(bot.probes, Probe))  # fmt: skip


def test_every_checkpoint_is_reached_somewhere(repository):
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (repository / "bot").rglob("*.py")
        if path.name != "checkpoint.py"
    )
    assert [point for point in POINTS if f'"{point}"' not in sources] == []


def test_no_module_is_longer_than_500_lines(repository):
    long = {
        str(path): len(path.read_text(encoding="utf-8").splitlines())
        for folder in ("bot", "commands")
        for path in (repository / folder).rglob("*.py")
    }
    assert {path: lines for path, lines in long.items() if lines > 500} == {}
