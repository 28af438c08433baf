"""Slack's numeric limits, read from `limits.json`.

Source: docs.slack.dev reference pages and the JSDoc of @slack/types 3.2.0, except where a constant says otherwise.
"""

from __future__ import annotations

from types import MappingProxyType

from bot.blockkit.contract import document

_limits = document("limits.json")

MESSAGE_BLOCKS: int = _limits["message"]["blocks"]
MESSAGE_ATTACHMENTS: int = _limits["message"]["attachments_hard"]
# chat.postMessage cuts here and warns.
POST_TEXT: int = _limits["message"]["text_truncated_at_postMessage"]
# chat.update refuses above this, so nothing longer is ever posted either.
UPDATE_TEXT: int = _limits["message"]["text_max_chat_update"]
# Slack states no sum. Refusals (msg_blocks_too_long) are on record from 11,300 characters up, so a
# sender keeps to 10,000. Source: slackapi/bolt-js#2509 and #2867.
BLOCKS_TEXT_SAFE = 10_000
BLOCKS_TEXT_REFUSED = 11_300

VIEW_BLOCKS: int = _limits["view"]["blocks"]
VIEW_TITLE: int = _limits["view"]["title"]
VIEW_BUTTON: int = _limits["view"]["submit"]
VIEW_PRIVATE_METADATA: int = _limits["view"]["private_metadata"]
VIEW_BYTES: int = _limits["view"]["payload_bytes"]
VIEW_STACK: int = _limits["view"]["stack_depth"]

SECTION_TEXT: int = _limits["section"]["text"]
SECTION_FIELDS: int = _limits["section"]["fields"]
SECTION_FIELD_TEXT: int = _limits["section"]["field_text"]
HEADER_TEXT: int = _limits["header"]["text"]
CONTEXT_ELEMENTS: int = _limits["context"]["elements"]
ACTIONS_ELEMENTS: int = _limits["actions"]["elements"]
IMAGE_ALT_TEXT: int = _limits["image"]["alt_text"]
IMAGE_TITLE: int = _limits["image"]["title"]
BUTTON_TEXT: int = _limits["button"]["text"]
BUTTON_VALUE: int = _limits["button"]["value"]
OPTION_TEXT: int = _limits["option"]["text"]
OPTION_VALUE: int = _limits["option"]["value"]
SELECT_OPTIONS: int = _limits["select"]["options"]
OVERFLOW_OPTIONS: int = _limits["overflow"]["options"]
PLACEHOLDER: int = _limits["select"]["placeholder"]
CONFIRM_TEXT: int = _limits["confirm"]["text"]

ACK_SECONDS: float = float(_limits["timing"]["ack_seconds"])
TRIGGER_SECONDS: float = float(_limits["timing"]["trigger_id_seconds"])
RESPONSE_URL_USES: int = _limits["timing"]["response_url_uses"]
RESPONSE_URL_SECONDS: float = 60.0 * _limits["timing"]["response_url_minutes"]
RETRY_SECONDS: tuple[float, ...] = tuple(
    float(after) for after in _limits["timing"]["event_retry_schedule_seconds"]
)
EVENTS_PER_HOUR: int = _limits["timing"]["events_per_workspace_per_hour"]
FAILURE_RATIO: float = _limits["timing"]["event_failure_ratio_disable"]
# An app that gets fewer is not switched off. Source: docs.slack.dev, Events API, failure limits.
FAILURE_FLOOR = 1_000
SOCKET_CONNECTIONS: int = _limits["timing"]["socket_connections"]

# Calls per minute by tier. "special" methods have rules of their own.
PER_MINUTE = MappingProxyType(
    {tier: calls for tier, calls in _limits["rate_limits_per_minute"].items() if tier != "special"}
)
