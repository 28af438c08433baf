"""The manifest is what the code does: its form, its scopes, its events."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bot.blockkit.contract import methods, subscription_scopes
from bot.errors import ConfigError
from bot.slack.buttons import ACTION_IDS
from bot.slack.manifest import EVENTS, manifest, scopes
from bot.slack.presses import MEANINGS
from bot.slack.web import METHODS
from bot.workspace.config import SCOPES

CONTRACT_IDS = [
    "rca.step.next",
    "rca.step.back",
    "rca.gate.pass",
    "rca.hypothesis.confirm",
    "rca.hypothesis.reject",
    "rca.probe.run",
    "rca.probe.approve",
    "rca.mitigate",
    "rca.checklist.accept",
    "rca.checklist.decline",
    "rca.followup.snooze",
    "rca.followup.stop",
    "rca.export",
]


def test_scopes_are_those_of_the_called_methods_and_events() -> None:
    granted = set(scopes())
    for name in METHODS:
        needed = methods()[name].scopes
        assert not needed or needed & granted, name
    for event in EVENTS:
        kinds = {"mpim:read", "mpim:history"}
        assert set(subscription_scopes()[event]) - kinds <= granted, event
    assert granted <= SCOPES
    assert not granted & {"channels:manage", "groups:write", "chat:write.public"}


def test_no_other_method_is_called_anywhere_in_the_package() -> None:
    called: set[str] = set()
    known = set(methods())
    for path in Path("bot/slack").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in known:
                called.add(str(node.value))
    assert called == set(METHODS)
    assert not {
        name
        for name in called
        if name.startswith(("conversations.create", "conversations.archive"))
    }


def test_every_button_has_a_meaning_and_the_contracts_ids_are_all_there() -> None:
    assert set(ACTION_IDS) == set(MEANINGS)
    assert set(CONTRACT_IDS) <= set(MEANINGS)


def test_url_is_taken_apart_and_nonsense_is_refused() -> None:
    made = manifest("https://rca.example.net/base/")
    target = "https://rca.example.net/base/slack/events"
    assert made["settings"]["event_subscriptions"]["request_url"] == target
    assert made["features"]["slash_commands"][0]["url"] == target
    assert made["features"]["slash_commands"][0]["should_escape"] is True
    with pytest.raises(ConfigError):
        manifest("ftp://x")
