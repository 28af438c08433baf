"""What Slack refuses is refused before a send, with the place of the fault."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bot.blockkit import limits
from bot.blockkit.contract import COMMON_ERRORS, document, methods, subscription_scopes
from bot.blockkit.validate import Fault, text_length, validate_message, validate_view

CASES: list[dict[str, Any]] = document("blockkit.cases.json")["cases"]


def section(text: str, **more: object) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


def button(action_id: str) -> dict[str, Any]:
    return {
        "type": "button",
        "action_id": action_id,
        "text": {"type": "plain_text", "text": "Go"},
    }


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_recorded_case_has_its_recorded_verdict(case: dict[str, Any]) -> None:
    document_before = copy.deepcopy(case["doc"])
    if case["entry"] == "MessageBlocks":
        # An empty list of blocks is a plain message to Slack's API, so the recorded refusal is the schema's alone.
        faults = validate_message(case["doc"], "fallback", text_limit=10**9)
        expected_valid = case["valid"] or case["doc"] == []
    else:
        faults = validate_view(case["doc"])
        expected_valid = case["valid"]
    assert (faults == []) == expected_valid, faults
    assert case["doc"] == document_before


def test_button_in_context_block_is_named_by_pointer() -> None:
    blocks = [{"type": "context", "elements": [button("a")]}]
    [fault] = validate_message(blocks, "x")
    assert fault.pointer == "/blocks/0/elements/0/type"
    assert "mrkdwn" in fault.message


def test_repeated_block_id_is_a_fault() -> None:
    faults = validate_message([section("a", block_id="b"), section("c", block_id="b")], "x")
    assert faults == [Fault("/blocks/1/block_id", "'b' is block 0 already")]


def test_repeated_action_id_in_one_block_is_a_fault_and_across_blocks_is_not() -> None:
    twice = [{"type": "actions", "elements": [button("a"), button("a")]}]
    apart = [{"type": "actions", "elements": [button("a")]} for _ in range(2)]
    assert [fault.pointer for fault in validate_message(twice, "x")] == [
        "/blocks/0/elements/1/action_id"
    ]
    assert validate_message(apart, "x") == []


def test_sum_of_text_over_the_safe_limit_is_a_fault() -> None:
    blocks = [section("x" * 2_500) for _ in range(4)]
    assert text_length(blocks) == limits.BLOCKS_TEXT_SAFE
    assert validate_message(blocks, "x") == []
    assert [f.pointer for f in validate_message([*blocks, section("y")], "x")] == ["/blocks"]


def test_message_without_any_content_is_a_fault() -> None:
    assert [fault.pointer for fault in validate_message(None, "  ")] == ["/text"]


def test_text_that_could_never_be_updated_is_a_fault() -> None:
    assert validate_message(None, "x" * limits.UPDATE_TEXT) == []
    assert validate_message(None, "x" * (limits.UPDATE_TEXT + 1)) != []


def test_attachment_with_wrong_field_is_named() -> None:
    faults = validate_message(None, "x", attachments=[{"color": 7}])
    assert faults[0].pointer.startswith("/attachments/0")


def test_view_of_an_unknown_type_is_a_fault() -> None:
    assert [fault.pointer for fault in validate_view({"type": "dialog", "blocks": []})] == ["/type"]


def test_home_view_takes_no_title() -> None:
    home = {"type": "home", "blocks": [section("hello")]}
    assert validate_view(home) == []
    assert validate_view({**home, "title": {"type": "plain_text", "text": "x"}}) != []


def test_method_contract_names_scope_tier_and_errors() -> None:
    post = methods()["chat.postMessage"]
    assert post.scopes == {"chat:write"}
    assert post.arguments["channel"].required
    assert post.knows_error("not_in_channel")
    assert post.knows_error(next(iter(COMMON_ERRORS)))
    assert not post.knows_error("no_such_code")
    assert limits.PER_MINUTE[methods()["chat.update"].tier or ""] == 50


def test_event_subscription_names_its_scopes() -> None:
    assert subscription_scopes()["message.channels"] == ("channels:history",)
