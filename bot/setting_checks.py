"""What one setting may look like: each check gives the value back, or raises ValueError with what to write instead.

Annotated types made of them stand in the models of `bot.settings`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, SecretStr

_HOST = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?")
_REDIS_SCHEMES = ("redis", "rediss", "redis+sentinel", "unix")
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)")


def web_address(value: str) -> str:
    """The base of an HTTP API: nothing after its path, since paths are put behind it."""
    if not value.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https:// and name a host")
    parts = urlsplit(value)
    if not parts.hostname:
        raise ValueError("must begin with http:// or https:// and name a host")
    if not value.isprintable() or " " in value or not _HOST.fullmatch(parts.hostname):
        raise ValueError("holds a letter that no address has; write it like http://host:9090")
    if parts.query or parts.fragment:
        raise ValueError("must end with its path: take away what follows ? or #")
    _ = parts.port  # raises ValueError, which says what is wrong with it
    return value


def host(value: str) -> str:
    """What is listened on: a name or an address."""
    if not _HOST.fullmatch(value):
        raise ValueError("must be a name or an address without brackets, such as 127.0.0.1 or ::1")
    return value


def redis_address(value: str) -> str:
    """`redis://`, `rediss://`, `unix://` or `redis+sentinel://host[:port][,host…]/master[/db]`."""
    parts = urlsplit(value)
    if "://" not in value or parts.scheme not in _REDIS_SCHEMES or not value.isprintable():
        raise ValueError("must begin with redis://, rediss:// or redis+sentinel://")
    names = [name for name in parts.path.split("/") if name]
    if parts.scheme == "unix":
        return value
    if parts.scheme == "redis+sentinel":
        if not names:
            raise ValueError("names no master; write redis+sentinel://host:26379/mymaster/0")
        hosts = parts.netloc.rpartition("@")[2].split(",")
        for host in hosts:
            if not _is_port(urlsplit(f"//{host}").port if host else 0):
                raise ValueError(f"{host!r} is no host:port of a Sentinel")
        names = names[1:]
    elif not _is_port(parts.port):
        raise ValueError("must hold a port between 1 and 65535")
    if len(names) > 1 or not all(name.isascii() and name.isdecimal() for name in names):
        raise ValueError("must end in the number of a database, such as /0")
    return value


def _is_port(port: int | None) -> bool:
    return port is None or port > 0


def secret(value: SecretStr) -> SecretStr:
    """A token or a shared secret: what a header can carry, so that it can ever be matched."""
    text = value.get_secret_value()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be printable ASCII without spaces")
    if text[0] == text[-1] and text[0] in "\"'":
        raise ValueError("stands in quotes; take them away")
    return value


def bot_token(value: SecretStr) -> SecretStr:
    """The token that speaks for the bot, not the app's or a person's."""
    return _not(value, {"xapp-": "SLACK_APP_TOKEN", "xoxp-": "no setting: it is a person's token"})


def app_token(value: SecretStr) -> SecretStr:
    """The token that opens sockets."""
    return _not(value, {"xoxb-": "SLACK_BOT_TOKEN", "xoxp-": "no setting: it is a person's token"})


def signing_secret(value: SecretStr) -> SecretStr:
    """What Slack signs requests with."""
    return _not(value, {"xoxb-": "SLACK_BOT_TOKEN", "xapp-": "SLACK_APP_TOKEN"})


def _not(value: SecretStr, others: dict[str, str]) -> SecretStr:
    for mark, place in others.items():
        if value.get_secret_value().startswith(mark):
            raise ValueError(f"a token that begins with {mark} belongs into {place}")
    return value


def channel_id(value: str) -> str:
    """The id of a channel, which stays when its name changes."""
    return _slack_id(
        value, "CGD", "a channel's id, such as C0ALERTS; Slack shows it below its details"
    )


def group_id(value: str) -> str:
    """The id of a user group."""
    return _slack_id(value, "S", "a user group's id, such as S0ONCALL")


def bot_id(value: str) -> str:
    """The id by which an app posts."""
    return _slack_id(value, "B", "a bot's id, such as B0ALERTMGR")


def user_ids(value: Sequence[str]) -> Sequence[str]:
    """Ids of people, or `*` for everybody."""
    for item in value:
        if item != "*":
            _slack_id(item, "UW", f"a user's id, such as U0LEAD, or *, not {item!r}")
    return value


def _slack_id(value: str, first: str, what: str) -> str:
    if not re.fullmatch(rf"[{first}][A-Z0-9]+", value):
        raise ValueError(f"must be {what}")
    return value


def zone_name(value: str) -> str:
    """The name of a time zone."""
    try:
        ZoneInfo(value)
    except (
        KeyError,
        ValueError,
        OSError,
    ) as error:  # a folder of zones and endless names are OSError
        raise ValueError(
            f"{value[:60]!r} is no time zone; use a name like Asia/Shanghai"
        ) from error
    return value


def parse_quiet_hours(text: str) -> tuple[time, time]:
    """Reads `HH:MM-HH:MM` (may run over midnight), in the deployment's time zone.

    Raises:
        ValueError: not of that form, or without length.
    """
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError("must look like 23:00-07:00")
    first_hour, first_minute, last_hour, last_minute = (int(part) for part in found.groups())
    start, end = time(first_hour, first_minute), time(last_hour, last_minute)
    if start == end:
        raise ValueError("begins when it ends; leave it out to have no quiet hours")
    return start, end


def quiet_hours(value: str) -> str:
    """A span that `parse_quiet_hours` reads."""
    parse_quiet_hours(value)
    return value


Host = Annotated[str, AfterValidator(host)]
WebAddress = Annotated[str, AfterValidator(web_address)]
RedisAddress = Annotated[str, AfterValidator(redis_address)]
Secret = Annotated[SecretStr, AfterValidator(secret)]
BotToken = Annotated[Secret, AfterValidator(bot_token)]
AppToken = Annotated[Secret, AfterValidator(app_token)]
SigningSecret = Annotated[Secret, AfterValidator(signing_secret)]
ChannelId = Annotated[str, AfterValidator(channel_id)]
GroupId = Annotated[str, AfterValidator(group_id)]
BotId = Annotated[str, AfterValidator(bot_id)]
UserIds = Annotated[tuple[str, ...], AfterValidator(user_ids)]
ZoneName = Annotated[str, AfterValidator(zone_name)]
QuietHours = Annotated[str, AfterValidator(quiet_hours)]
