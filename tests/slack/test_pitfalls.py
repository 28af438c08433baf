"""What went wrong in other Slack bots, one row each: the tests that keep it from happening here, or why it cannot.

A row that can only happen by calling a method names the method: nothing in this program calls it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from bot.slack.web import METHODS

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Row:
    """One pitfall. tests: `file::test` below `tests/`; never_called: Web API methods that would be needed for it."""

    what: str
    tests: tuple[str, ...] = ()
    never_called: tuple[str, ...] = ()


RETRY = "slack/test_capture.py::test_retries_and_repeats_enter_the_timeline_once"
DURABLE = "slack/test_acknowledging.py::test_what_cannot_be_kept_is_not_acknowledged_and_is_there_once_it_can"
OUTLIVES = "slack/test_acknowledging.py::test_an_acknowledged_event_outlives_the_bot"
PROMPT = "slack/test_acknowledging.py::test_nothing_of_slack_is_asked_before_an_acknowledgement"
SLOW = "slack/test_interactions.py::test_what_is_asked_while_slack_is_slow_is_done_all_the_same"
LIMIT = "slack/test_delivery.py::test_rate_limit_delays_and_loses_nothing"
TWICE = "slack/test_interactions.py::test_form_that_is_delivered_twice_is_worked_once"
PRESS_AGAIN = "slack/test_interactions.py::test_trigger_that_is_too_old_asks_to_press_again"
FORMS = (
    "slack/test_interactions.py::test_form_is_valid_and_its_complaints_stand_below_its_own_inputs"
)
OUTDATED = "slack/test_delivery.py::test_old_or_foreign_button_says_that_it_is_out_of_date"
OLD_FORM = "slack/test_interactions.py::test_form_of_an_older_version_is_answered_politely"
UNASKED = "slack/test_receiver.py::test_payload_that_nobody_asked_for_is_acknowledged"
INVITE = (
    "slack/test_flow.py::test_bot_that_is_not_in_the_channel_says_so_and_catches_up_once_invited"
)
BAD_SIGNATURE = "slack/test_receiver.py::test_badly_signed_request_is_401_and_its_body_is_in_no_log"
SELECT = "slack/test_receiver.py::test_external_select_is_answered_from_memory"
SUGGESTED = "slack/test_interactions.py::test_long_catalogue_gives_a_select_that_opens"
FILES = "slack/test_delivery.py::test_files_are_shared_in_the_thread_once"
SPLIT = "slack/test_delivery.py::test_long_code_is_split_and_every_line_arrives_in_its_own_fence"
ANY_TEXT = "slack/test_text.py::test_any_text_in_any_view_is_taken_by_the_schema_and_inert"

PITFALLS = {
    1: Row("slow work makes the sender deliver the same event again", (RETRY, TWICE, DURABLE)),
    2: Row("deliveries with a retry number are thrown away and events are lost", (RETRY,)),
    3: Row("retries are ignored instead of told apart by what they carry", (RETRY,)),
    4: Row("the acknowledgement waits behind work that blocks the loop", (PROMPT, SLOW)),
    5: Row("a form is opened with a trigger that has run out", (PRESS_AGAIN,)),
    6: Row("calls stand before the acknowledgement; a sent form counts twice", (PROMPT, TWICE)),
    7: Row(
        "a slow word times out, a failing one says nothing",
        (SLOW, "slack/test_words.py::test_words_without_an_incident_answer_or_say_what_to_do"),
    ),
    8: Row(
        "a form is acknowledged with something that forms do not take",
        (
            FORMS,
            OLD_FORM,
            "slack/test_receiver.py::test_wrong_answer_in_a_form_is_said_below_its_field",
        ),
    ),
    9: Row("a payload that no listener matches is answered 404", (UNASKED, OUTDATED)),
    10: Row(
        "after an upgrade old buttons and forms have no handler",
        (
            OUTDATED,
            OLD_FORM,
            "slack/test_manifest.py::test_every_button_has_a_meaning_and_the_contracts_ids_are_all_there",
        ),
    ),
    11: Row(
        "subtypes are missed, edits are taken for news",
        (
            "slack/test_capture.py::test_only_what_is_new_is_kept_and_a_broadcast_reply_is",
            "slack/test_capture.py::test_message_edit_and_delete_follow_the_author",
        ),
    ),
    12: Row(
        "the bot answers itself, or one mention twice",
        (
            "slack/test_receiver.py::test_own_messages_never_come_back_as_somebody_elses",
            "slack/test_capture.py::test_app_mention_and_message_of_one_message_act_once",
        ),
    ),
    13: Row(
        "a socket counts as connected and hears nothing",
        (
            "slack/test_socket.py::test_connection_that_is_up_and_deaf_is_given_up",
            "slack/test_socket.py::test_deaf_connection_is_replaced_and_words_come_through",
            "slack/test_socket.py::test_socket_mode_carries_commands_and_survives_a_lost_connection",
        ),
    ),
    14: Row(
        "closing a dead connection never ends",
        ("slack/test_socket.py::test_close_that_hangs_holds_nothing_up",),
    ),
    15: Row(
        "work in hand is lost when the process stops",
        (
            "scenarios/test_bad_input.py::test_a_stop_in_the_middle_finishes_what_is_in_hand",
            "scenarios/test_crash.py::test_a_bot_killed_anywhere_loses_nothing_and_says_nothing_twice",
        ),
    ),
    16: Row(
        "a rate limit loses messages",
        (LIMIT,),
    ),
    17: Row(
        "needless updates and lookups use up the quota",
        (
            "slack/test_delivery.py::test_card_is_updated_in_place_and_only_when_it_changed",
            "slack/test_home.py::test_home_speaks_the_persons_language_and_not_the_channels",
            "slack/test_capture.py::test_name_is_asked_for_once_however_often_it_is_said",
        ),
    ),
    18: Row(
        "a message counts as sent that was not, or is sent twice",
        (
            "slack/test_delivery.py::test_answer_that_is_lost_is_looked_for_and_not_sent_again",
            LIMIT,
        ),
    ),
    19: Row("names are resolved by listing every channel", (), ("conversations.list",)),
    20: Row(
        "a listing is read without its further pages", (), ("conversations.list", "users.list")
    ),
    21: Row("a channel that the bot is not in stops the whole incident", (INVITE,)),
    22: Row("a channel that was not made leaves half an incident", (), ("conversations.create",)),
    23: Row(
        "a channel's name is taken",
        (),
        ("conversations.create", "conversations.rename"),
    ),
    24: Row(
        "a person who is not there breaks the flow",
        ("slack/test_languages.py::test_slack_that_does_not_say_leaves_the_deployments_language",),
        ("conversations.invite", "users.lookupByEmail"),
    ),
    25: Row("one bad id and nobody is invited", (), ("conversations.invite",)),
    26: Row(
        "a group of people is invited as if it were a person",
        (),
        ("conversations.invite", "usergroups.users.list"),
    ),
    27: Row(
        "messages are sent into an archived channel for ever",
        (
            "slack/test_delivery.py::test_archived_channel_is_left_alone_until_it_is_open_again",
            UNASKED,
        ),
    ),
    28: Row(
        "what the bot archived it cannot open again",
        (),
        ("conversations.archive", "conversations.unarchive"),
    ),
    29: Row("blocks are refused far below the documented sizes", (SPLIT, ANY_TEXT)),
    30: Row("a list that is too long keeps a form from opening", (SUGGESTED, SELECT, FORMS)),
    31: Row("an uploaded file has no message, no thread, or comes twice", (FILES,)),
    32: Row("files go up in the way that is switched off", (FILES,), ("files.upload",)),
    33: Row(
        "the answer of a word is replaced, which does nothing",
        ("slack/test_interactions.py::test_answer_of_a_command_is_a_message_of_its_own",),
    ),
    34: Row(
        "tokens are refreshed twice at once",
        ("slack/test_interactions.py::test_one_workspace_without_token_rotation",),
        ("oauth.v2.access", "tooling.tokens.rotate"),
    ),
    35: Row(
        "people of another workspace steer the incident, or their payload breaks it",
        (
            "slack/test_interactions.py::test_press_from_another_workspace_is_answered_and_changes_nothing",
            "slack/test_policy.py::test_words_of_another_workspace_are_recorded_and_steer_nothing",
        ),
    ),
    36: Row(
        "words of an alert become live links and mentions",
        ("slack/test_delivery.py::test_hostile_words_are_inert_everywhere", ANY_TEXT),
    ),
    37: Row(
        "words are escaped twice",
        (
            "slack/test_text.py::test_escaping_is_undone_exactly",
            "slack/test_text.py::test_recorded_alert_text_is_escaped_as_expected",
        ),
    ),
    38: Row(
        "something before the bot refuses its requests, and nobody knows",
        (
            BAD_SIGNATURE,
            "slack/test_doctor.py::test_public_address_is_tried_with_a_signed_request",
        ),
    ),
    39: Row(
        "whoever pressed a button is paged for it",
        (
            "slack/test_words.py::test_role_names_the_person_without_paging_them",
            "slack/test_transports.py::test_incident_is_worked_from_its_start_to_its_end",
        ),
    ),
    40: Row("a form takes so long to build that it cannot open", (SELECT, PROMPT)),
    41: Row("the acknowledgement is left to another process", (DURABLE, OUTLIVES)),
    42: Row("the body of a badly signed request is logged", (BAD_SIGNATURE,)),
}


@cache
def _tests_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


@cache
def _named_in_the_program() -> frozenset[str]:
    """Every attribute and every text constant of the program; the local workspace plays Slack and is left out."""
    found: set[str] = set()
    program = [*(ROOT.parent / "bot").rglob("*.py"), *(ROOT.parent / "commands").rglob("*.py")]
    for path in program:
        if {"workspace", "blockkit"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


def test_table_has_every_row() -> None:
    assert sorted(PITFALLS) == list(range(1, 43))


@pytest.mark.parametrize("number", PITFALLS)
def test_row_is_covered_by_tests_that_exist_or_by_a_method_that_nobody_calls(number: int) -> None:
    row = PITFALLS[number]
    assert row.tests or row.never_called, row.what
    for reference in row.tests:
        path, _, name = reference.partition("::")
        assert name in _tests_of(path), reference
    for method in row.never_called:
        assert method not in METHODS
        assert not {method, method.replace(".", "_")} & _named_in_the_program(), method
