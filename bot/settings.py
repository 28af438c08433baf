"""Every setting of the bot: environment first, then the TOML file of `RCA_CONFIG`, then the default.

The only module that reads the environment.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bot.domain.text import Locale
from bot.errors import ConfigError
from bot.setting_checks import (
    AppToken,
    BotId,
    BotToken,
    ChannelId,
    GroupId,
    Host,
    QuietHours,
    RedisAddress,
    Secret,
    SigningSecret,
    UserIds,
    WebAddress,
    ZoneName,
)
from bot.setting_faults import fault_line, place_of, unreadable
from bot.target_settings import ConfluenceSettings, GithubSettings, GitSettings, with_tokens

_ENVIRONMENT = {
    "SLACK_BOT_TOKEN": "slack_bot_token",
    "SLACK_SIGNING_SECRET": "slack_signing_secret",
    "SLACK_APP_TOKEN": "slack_app_token",
    "SLACK_API_URL": "slack_api_url",
    "REDIS_URL": "redis_url",
    "PROMETHEUS_URL": "prometheus_url",
    "ALERTMANAGER_URL": "alertmanager_url",
    "LOKI_URL": "loki_url",
    "JAEGER_URL": "jaeger_url",
    "TEMPO_URL": "tempo_url",
    "KUBERNETES_URL": "kubernetes_url",
    "KUBERNETES_TOKEN": "kubernetes_token",
    "RCA_DATA_DIR": "data_dir",
    "RCA_NODES": "nodes",
    "RCA_AGENT_KEY": "agent_key",
    "RCA_WEBHOOK_TOKEN": "webhook_token",
    "RCA_WEBHOOK_OPEN": "webhook_open",
    "RCA_PAGERDUTY_SECRET": "pagerduty_secret",
    "RCA_GITHUB_SECRET": "github_secret",
    "RCA_READ_TOKEN": "read_token",
    "RCA_PUBLIC_URL": "public_url",
    "RCA_KNOWLEDGE_DIR": "knowledge_dir",
    "RCA_ALERT_CHANNEL": "alert_channel",
    "RCA_LOCALE": "locale",
    "RCA_TIMEZONE": "timezone",
    "RCA_HOST": "host",
    "RCA_PORT": "port",
}

# Settings that name what must be there when the bot starts, and whether it is a folder.
_FILES = {"nodes": False, "agent_key": False, "knowledge_dir": True}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ChannelSettings(_Strict):
    """One attached channel; `alert_bots` maps a bot id to the intake that reads its messages.

    locale: the language of the incidents there, where it is not the deployment's.
    """

    id: ChannelId
    alert_bots: dict[BotId, Literal["alertmanager", "grafana", "pagerduty"]] = {}
    locale: Locale | None = None
    verbosity: Literal["quiet", "normal", "chatty"] = "normal"


class RouteSettings(_Strict):
    """Where alerts with these labels open their incident; the first match wins."""

    match: dict[str, str]
    channel: ChannelId
    severity: Literal["sev1", "sev2", "sev3", "sev4"] | None = None


class FollowupSettings(_Strict):
    """Seconds until each kind of follow-up; 0 switches a kind off."""

    unacknowledged_s: float = Field(default=300, ge=0)
    step_idle_s: float = Field(default=900, ge=0)
    recurrence_s: float = Field(default=14400, ge=0)
    report_due_s: float = Field(default=172800, ge=0)
    heartbeat_s: float = Field(default=3600, ge=0)
    source_back_s: float = Field(default=300, ge=0)
    symptom_s: float = Field(default=600, ge=0)
    action_due_s: float = Field(default=86400, ge=0)


class RedactionSettings(_Strict):
    """What reports mask beyond secrets and e-mail addresses, and what they leave.

    patterns: regular expressions; the group `secret`, or else the whole match, is masked. names: customers, projects.
    allow: values that are never masked. addresses: `all` IP addresses or only `private` ones. users: ids of people.
    """

    patterns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    addresses: Literal["all", "private"] = "all"
    users: bool = True

    @field_validator("patterns")
    @classmethod
    def _are_expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                compiled = re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
            if compiled.match("") is not None:
                raise ValueError(f"{pattern!r} matches the empty text, so it would mask everything")
        return value


class ExportSettings(_Strict):
    """Ways by which reports of private channels may go out: into their own `thread`, over `http`, by the `shell`."""

    private: tuple[Literal["thread", "http", "shell"], ...] = ("thread", "http", "shell")


class PolicySettings(_Strict):
    """Who may do what: user ids, or `*` for everyone."""

    approve_heavy: UserIds = ("*",)
    confirm_cause: UserIds = ("*",)
    resolve: UserIds = ("*",)
    run_cheap: UserIds = ("*",)
    run_moderate: UserIds = ("*",)
    review: UserIds = ("*",)


class Settings(_Strict):
    """The settings of one deployment."""

    slack_bot_token: BotToken | None = None
    slack_signing_secret: SigningSecret | None = None
    slack_app_token: AppToken | None = None
    slack_api_url: WebAddress = "https://slack.com/api/"
    redis_url: RedisAddress | None = None
    data_dir: Path = Path(".rca")
    prometheus_url: WebAddress | None = None
    alertmanager_url: WebAddress | None = None
    loki_url: WebAddress | None = None
    jaeger_url: WebAddress | None = None
    tempo_url: WebAddress | None = None
    kubernetes_url: WebAddress | None = None
    kubernetes_token: Secret | None = None
    nodes: Path | None = None
    agent_key: Path | None = None
    agent_ca: Path | None = None
    agent_client_cert: Path | None = None
    agent_client_key: Path | None = None
    webhook_token: Secret | None = None
    webhook_open: bool = False
    pagerduty_secret: Secret | None = None
    github_secret: Secret | None = None
    read_token: Secret | None = None
    public_url: WebAddress | None = None
    knowledge_dir: Path | None = None
    alert_channel: ChannelId | None = None
    locale: Locale = Locale.EN
    timezone: ZoneName = "UTC"
    host: Host = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    on_call_group: GroupId | None = None
    training_channel: ChannelId | None = None
    quiet_hours: QuietHours | None = None
    posts_per_channel_per_hour: int = Field(default=20, ge=1)
    channels: tuple[ChannelSettings, ...] = ()
    routes: tuple[RouteSettings, ...] = ()
    followup: FollowupSettings = FollowupSettings()
    policy: PolicySettings = PolicySettings()
    redaction: RedactionSettings = RedactionSettings()
    export: ExportSettings = ExportSettings()
    confluence: ConfluenceSettings | None = None
    git: GitSettings | None = None
    github: GithubSettings | None = None

    @field_validator("channels")
    @classmethod
    def _are_different(cls, value: tuple[ChannelSettings, ...]) -> tuple[ChannelSettings, ...]:
        ids = [entry.id for entry in value]
        if twice := [name for name in ids if ids.count(name) > 1]:
            raise ValueError(f"{twice[0]} is listed twice; put both entries into one")
        return value

    @field_validator("routes")
    @classmethod
    def _can_match(cls, value: tuple[RouteSettings, ...]) -> tuple[RouteSettings, ...]:
        for place, route in enumerate(value):
            for before, earlier in enumerate(value[:place]):
                if earlier.match.items() <= route.match.items():
                    raise ValueError(
                        f"number {place + 1} never matches, since number {before + 1} takes all that it would; "
                        "put it before that one"
                    )
        return value

    @property
    def zone(self) -> ZoneInfo:
        """The zone that reports are written in."""
        return ZoneInfo(self.timezone)

    @property
    def is_loopback(self) -> bool:
        """Whether the bot listens where only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def base_url(self) -> str:
        """Base of the links that the bot writes, without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (self.public_url or f"http://{host}:{self.port}").rstrip("/")

    def channel(self, channel_id: str) -> ChannelSettings | None:
        """The settings of an attached channel that is listed."""
        return next((entry for entry in self.channels if entry.id == channel_id), None)

    def locale_of(self, channel_id: str) -> Locale:
        """The language of a channel's incidents."""
        entry = self.channel(channel_id)
        return entry.locale if entry is not None and entry.locale is not None else self.locale

    def route(self, labels: Mapping[str, str]) -> RouteSettings | None:
        """The first route whose labels all match; else the alert channel, if there is one."""
        for route in self.routes:
            if all(labels.get(key) == value for key, value in route.match.items()):
                return route
        return RouteSettings(match={}, channel=self.alert_channel) if self.alert_channel else None


def load_settings(
    environment: Mapping[str, str] | None = None, *, with_files: bool = False
) -> Settings:
    """Reads and checks all settings. What stands around a value of the environment, a line's end for one, is left away.

    environment: stands in for the process environment in tests. with_files: what they name has to be there, too.

    Raises:
        ConfigError: with one line per fault.
    """
    source = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    if path := source.get("RCA_CONFIG"):
        values.update(_read_toml(Path(path)))
    given: dict[str, str] = {}
    for variable, field in _ENVIRONMENT.items():
        if text := source.get(variable, "").strip():
            values[field], given[field] = text, variable
    faults: list[str] = []
    settings: Settings | None = None
    try:
        settings = Settings.model_validate(with_tokens(values, source))
    except ValidationError as error:
        known = list(Settings.model_fields)
        faults.extend(fault_line(fault, given, known) for fault in error.errors())
    for field, is_folder in _FILES.items() if with_files else ():
        name = values.get(field)
        if isinstance(name, str) and (why := unreadable(name, is_folder=is_folder)):
            faults.append(f"{place_of(field, given)}: {why}")
    if settings is None or faults:
        raise ConfigError(*faults)
    return settings


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"RCA_CONFIG: {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"RCA_CONFIG: {path} is no TOML: {error}") from error
