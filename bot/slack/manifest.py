"""The app manifest, generated from what the code really does."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from bot.blockkit.contract import methods, subscription_scopes
from bot.errors import ConfigError
from bot.setting_checks import web_address
from bot.slack.interactions import START_HERE
from bot.slack.web import METHODS

# What the bot listens to.
EVENTS = (
    "app_home_opened",
    "app_mention",
    "member_joined_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "reaction_added",
    "reaction_removed",
)
# Asked for by something that is neither a method nor an event: the command, and the bytes of private files.
_OTHER = ("commands", "files:read")
# A method may be called with the scope of any kind of conversation; these kinds the bot has no business in.
_NOT_USED = (
    "im:read", "mpim:read", "mpim:history", "mpim:write", "channels:manage", "groups:write",
)  # fmt: skip
COMMAND = "/rca"


def scopes() -> list[str]:
    """Every bot scope that the called methods and the subscribed events need, sorted."""
    wanted = set(_OTHER)
    known, subscribed = methods(), subscription_scopes()
    for name in METHODS:
        wanted |= known[name].scopes
    for event in EVENTS:
        wanted |= set(subscribed[event])
    return sorted(wanted.difference(_NOT_USED))


def manifest(url: str) -> dict[str, Any]:
    """The manifest of an app whose bot is reached under `url`; paste it into Slack's app configuration.

    Raises:
        ConfigError: no http(s) address.
    """
    try:
        parts = urlsplit(web_address(url))
    except ValueError as error:
        raise ConfigError(
            f"--url: {url[:80]!r} is no address: {error}; "
            "give the bot's public base URL, for example https://rca.example.net"
        ) from error
    target = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/slack/events"
    return {
        "_metadata": {"major_version": 2},
        "display_information": {
            "name": "rca",
            "description": "Root cause analysis of inference incidents",
            "background_color": "#1f2937",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                # A direct message is a place to type words in.
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "rca", "always_online": True},
            "slash_commands": [
                {
                    "command": COMMAND,
                    "url": target,
                    "description": "Open an incident and find its root cause",
                    "usage_hint": "start | status | step | probe | hypothesis | help",
                    "should_escape": True,
                }
            ],
            "shortcuts": [
                {
                    "name": "Start RCA here",
                    "type": "message",
                    "callback_id": START_HERE,
                    "description": "Open an incident on this message's thread",
                }
            ],
        },
        "oauth_config": {"scopes": {"bot": scopes()}},
        "settings": {
            "event_subscriptions": {"request_url": target, "bot_events": sorted(EVENTS)},
            "interactivity": {
                "is_enabled": True,
                "request_url": target,
                "message_menu_options_url": target,
            },
            "org_deploy_enabled": False,
            "socket_mode_enabled": False,
            "token_rotation_enabled": False,
        },
    }
