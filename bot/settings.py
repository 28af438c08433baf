"""Every setting of the bot: environment first, then the TOML file of `RCA_CONFIG`, then the default.

The only module that reads the environment.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from datetime import time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from bot.domain.text import Locale
from bot.errors import ConfigError
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

_URL = re.compile(r"^https?://[^\s/]+")
_REDIS_URL = re.compile(r"^(rediss?|redis\+sentinel|unix)://")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChannelSettings(_Strict):
    """One attached channel; `alert_bots` maps a bot id to the intake that reads its messages.

    locale: the language of the incidents there, where it is not the deployment's.
    """

    id: str
    alert_bots: dict[str, str] = {}
    locale: Locale | None = None
    verbosity: str = Field(default="normal", pattern="^(quiet|normal|chatty)$")


class RouteSettings(_Strict):
    """Where alerts with these labels open their incident; the first match wins."""

    match: dict[str, str]
    channel: str
    severity: str | None = Field(default=None, pattern="^sev[1-4]$")


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
    addresses: str = Field(default="all", pattern="^(all|private)$")
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

    private: tuple[str, ...] = ("thread", "http", "shell")

    @field_validator("private")
    @classmethod
    def _are_ways(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [way for way in value if way not in ("thread", "http", "shell")]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no way; there are thread, http and shell")
        return value


class PolicySettings(_Strict):
    """Who may do what: user ids, or `*` for everyone."""

    approve_heavy: tuple[str, ...] = ("*",)
    confirm_cause: tuple[str, ...] = ("*",)
    resolve: tuple[str, ...] = ("*",)
    run_cheap: tuple[str, ...] = ("*",)
    run_moderate: tuple[str, ...] = ("*",)
    review: tuple[str, ...] = ("*",)


class Settings(_Strict):
    """The settings of one deployment."""

    slack_bot_token: SecretStr | None = None
    slack_signing_secret: SecretStr | None = None
    slack_app_token: SecretStr | None = None
    slack_api_url: str = "https://slack.com/api/"
    redis_url: str | None = None
    data_dir: Path = Path(".rca")
    prometheus_url: str | None = None
    alertmanager_url: str | None = None
    loki_url: str | None = None
    jaeger_url: str | None = None
    tempo_url: str | None = None
    kubernetes_url: str | None = None
    kubernetes_token: SecretStr | None = None
    nodes: Path | None = None
    agent_key: Path | None = None
    agent_ca: Path | None = None
    agent_client_cert: Path | None = None
    agent_client_key: Path | None = None
    webhook_token: SecretStr | None = None
    webhook_open: bool = False
    pagerduty_secret: SecretStr | None = None
    github_secret: SecretStr | None = None
    read_token: SecretStr | None = None
    public_url: str | None = None
    knowledge_dir: Path | None = None
    alert_channel: str | None = None
    locale: Locale = Locale.EN
    timezone: str = "UTC"
    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    on_call_group: str | None = None
    training_channel: str | None = None
    quiet_hours: str | None = None
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

    @field_validator(
        "slack_api_url", "prometheus_url", "alertmanager_url", "loki_url", "jaeger_url",
        "tempo_url", "kubernetes_url", "public_url",
    )  # fmt: skip
    @classmethod
    def _is_http_url(cls, value: str | None) -> str | None:
        if value is not None and not _URL.match(value):
            raise ValueError("must begin with http:// or https:// and name a host")
        return value

    @field_validator("redis_url")
    @classmethod
    def _is_redis_url(cls, value: str | None) -> str | None:
        if value is not None and not _REDIS_URL.match(value):
            raise ValueError("must begin with redis://, rediss:// or redis+sentinel://")
        return value

    @field_validator("timezone")
    @classmethod
    def _is_known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"{value!r} is no time zone; use a name like Asia/Shanghai") from error
        return value

    @field_validator("quiet_hours")
    @classmethod
    def _is_span(cls, value: str | None) -> str | None:
        if value is not None:
            parse_quiet_hours(value)
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
        return (self.public_url or f"http://{self.host}:{self.port}").rstrip("/")

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


def parse_quiet_hours(text: str) -> tuple[time, time]:
    """Reads `HH:MM-HH:MM` (may run over midnight), in the deployment's time zone.

    Raises:
        ValueError: not of that form.
    """
    start, separator, end = text.partition("-")
    if not separator:
        raise ValueError("must look like 23:00-07:00")
    return time.fromisoformat(start.strip()), time.fromisoformat(end.strip())


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Reads and checks all settings.

    environment: stands in for the process environment in tests.

    Raises:
        ConfigError: with one line per fault.
    """
    source = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    if path := source.get("RCA_CONFIG"):
        values.update(_read_toml(Path(path)))
    names = {field: variable for variable, field in _ENVIRONMENT.items()}
    for variable, field in _ENVIRONMENT.items():
        if text := source.get(variable):
            values[field] = text
    try:
        return Settings.model_validate(with_tokens(values, source))
    except ValidationError as error:
        raise ConfigError(*(_line(fault, names, source) for fault in error.errors())) from error


def _line(fault: Any, names: Mapping[str, str], source: Mapping[str, str]) -> str:
    field = ".".join(str(part) for part in fault["loc"])
    variable = names.get(str(fault["loc"][0]), "")
    where = variable if source.get(variable) else f"RCA_CONFIG: {field}"
    return f"{where}: {fault['msg'].removeprefix('Value error, ')}"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"RCA_CONFIG: {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"RCA_CONFIG: {path} is no TOML: {error}") from error
