"""Addresses of the threads of incidents that a message lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.message import Message
from bot.slack.directory import Identity


def with_links(message: Message, identity: Identity) -> Message:
    """The message with `links` (incident id to permalink) where its context lists `incidents` with their threads."""
    listed = message.context.get("incidents")
    if not isinstance(listed, list):
        return message
    links = {
        str(item["id"]): identity.permalink(str(item["channel"]), str(item["thread_ts"]), None)
        for item in listed
        if isinstance(item, Mapping) and item.get("channel") and item.get("thread_ts")
    }
    return replace(message, context={**message.context, "links": links})
