"""The settings of a local workspace."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from bot.blockkit import limits
from bot.errors import ConfigError
from bot.workspace.events import SUBSCRIPTIONS

# What the app may do; a missing one is answered as Slack answers it. `chat:write.public` is left out, so that
# posting in a channel that the app is not in fails here as it may fail there.
SCOPES = frozenset(
    {
        "app_mentions:read",
        "channels:history",
        "channels:join",
        "channels:read",
        "chat:write",
        "commands",
        "files:read",
        "files:write",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "reactions:read",
        "reactions:write",
        "team:read",
        "usergroups:read",
        "users:read",
        "users:read.email",
    }
)

# Fixed strings of a server that only this machine reaches; they open nothing elsewhere.
BOT_TOKEN = "xoxb-local-rca-bot"  # noqa: S105
APP_TOKEN = "xapp-local-rca-bot"  # noqa: S105
SIGNING_SECRET = "local-signing-secret"  # noqa: S105


class Transport(StrEnum):
    """How events, commands and actions reach the app."""

    HTTP = "http"
    SOCKET = "socket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcut:
    """A message shortcut of the app, as its manifest would list it."""

    callback_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceConfig:
    """How to run the workspace.

    bot_url: where the app listens; without a path, `/slack/events` is meant. None until the app is up.
    share_delay_seconds: how long after files.completeUploadExternal a file appears in its channel.
    events_per_hour, failure_floor: Slack's limits on event delivery, smaller in tests.
    ack_seconds, trigger_seconds: how long an answer may take and a trigger lives; longer in tests of something else.
    """

    host: str = "127.0.0.1"
    port: int = 8800
    bot_url: str | None = None
    transport: Transport = Transport.HTTP
    bot_token: str = BOT_TOKEN
    app_token: str = APP_TOKEN
    signing_secret: str = SIGNING_SECRET
    webhook_token: str | None = None
    scopes: frozenset[str] = SCOPES
    subscriptions: frozenset[str] = SUBSCRIPTIONS
    commands: tuple[str, ...] = ("/rca",)
    shortcuts: tuple[Shortcut, ...] = field(
        default_factory=lambda: (Shortcut(callback_id="rca_start_here", name="Start RCA here"),)
    )
    is_rate_limited: bool = False
    share_delay_seconds: float = 0.05
    events_per_hour: int = limits.EVENTS_PER_HOUR
    failure_floor: int = limits.FAILURE_FLOOR
    ack_seconds: float = limits.ACK_SECONDS
    trigger_seconds: float = limits.TRIGGER_SECONDS

    def __post_init__(self) -> None:
        if not is_loopback(self.host):
            raise ConfigError(
                f"--host {self.host}: not a loopback address, and the workspace has no accounts and serves this "
                "machine only; use 127.0.0.1"
            )
        if self.bot_url is not None and urlsplit(self.bot_url).scheme not in ("http", "https"):
            raise ConfigError(
                "--bot-url: must begin with http:// or https://; for example http://127.0.0.1:8080"
            )


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def events_url(bot_url: str) -> str:
    """Where events, commands and interactivity are posted."""
    parts = urlsplit(bot_url)
    return bot_url if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/slack/events"


def webhook_url(bot_url: str, name: str) -> str:
    """Where an alert sender posts."""
    parts = urlsplit(bot_url)
    return f"{parts.scheme}://{parts.netloc}/webhooks/{name}"
