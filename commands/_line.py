"""Reads the rest of a command line the way people really type it: on phones, in Chinese, with smart punctuation."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.command import Call
from bot.domain.instant import parse_rfc3339
from bot.domain.responder import Severity
from bot.domain.text import Localized
from bot.domain.whole import whole
from bot.errors import CommandError
from bot.incidents.responding import Via
from bot.locales import say
from commands import _typed

# An option as a word processor writes it: `--window 2h`, `—window 2h`, `––window 2h`.
_DASHED = r"(?:^|(?<=\s))(?:-{1,2}|[—–―‒−]{1,2})"
_DURATION = re.compile(
    r"^(\d+(?:\.\d+)?)\s*(?:(s|secs?|秒钟?)|(m|mins?|分钟?)|(h|hrs?|hours?|个?小时)|(d|days?|天)|(w|weeks?|周))$"
)
_SECONDS = (1.0, 60.0, 3600.0, 86400.0, 604800.0)
_LONGEST_SECONDS = 366 * 86400.0
_CLOCK = re.compile(r"^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$")
_USER = re.compile(r"^<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>[,.，。、：:]?$")
# A date with its time is one value, though there is a space in it.
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d \d{1,2}:\d\d(?::\d\d)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?(?=\s|$)"
)
_FIRST_WORD = re.compile(r"^([^\s:：,，、]+)[:：,，、\s]+")
_SEVERITY = re.compile(
    r"^[sｓ][eｅ][vｖ][\u2010-\u2015\u2212\uff0d-]?([1-4１-４])(?:[\s:：,，、]+|$)", re.IGNORECASE
)
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_AGO = re.compile(r"\s*(?:ago|前|之前|以前)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A parsed line: its options, and the free text that is left."""

    text: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """The free text in words."""
        return tuple(self.text.split())

    def head(self) -> tuple[str, str]:
        """The first word in lower case and half width, without the mark behind it, and the rest."""
        found = _FIRST_WORD.match(self.text)
        if found is None:
            return _typed.narrow(self.text).lower(), ""
        return _typed.narrow(found.group(1)).lower(), self.text[found.end() :].strip()


def read(text: str, *, short: Sequence[str] = (), long: Sequence[str] = (), **also: str) -> Line:
    """Takes the options out of a line.

    short: names whose value is one word or a quoted text. long: names whose value runs to the next option.
    also: other spellings of a name, for example `window="range"`.
    """
    rest = _typed.plain_spaces(text)
    spellings = {**{name: name for name in (*short, *long)}, **also}
    if not spellings:
        return Line(text=_typed.unquoted(rest))
    names = "|".join(sorted(map(re.escape, spellings), key=len, reverse=True))
    begins = re.compile(
        # `==` and `=~` belong to a query.
        rf"(?:^|(?<=\s))({names}) ?[=＝](?![=~]) ?|{_DASHED}({names})(?: ?[=＝：:](?![=~]) ?| )",
        re.IGNORECASE,
    )
    options: dict[str, str] = {}
    kept: list[str] = []
    at = 0
    while found := begins.search(rest, at):
        kept.append(rest[at : found.start()])
        name = spellings[(found.group(1) or found.group(2)).lower()]
        following = begins.search(rest, found.end())
        limit = following.start() if following else len(rest)
        value, at = _value(rest, found.end(), limit, is_long=name in long)
        options[name] = value
    kept.append(rest[at:])
    return Line(text=_typed.unquoted(_typed.plain_spaces(" ".join(kept))), options=options)


def first(text: str) -> tuple[str, str]:
    """The first word of a text as it is, without the mark behind it, and the rest."""
    found = _FIRST_WORD.match(text)
    return (found.group(1), text[found.end() :].strip()) if found else (text, "")


def said(text: str) -> str:
    """A person's words for the record: their lines stay, and what is pasted as code; the marks around all of it go."""
    words = _typed.cleaned(text)
    return _typed.unquoted(words if "```" in words else _GAP.sub(" ", words))


def shortened(text: str, most: int) -> str:
    """At most `most` characters; where something is left out, it ends in an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _value(text: str, start: int, limit: int, *, is_long: bool) -> tuple[str, int]:
    part = text[start:limit]
    if is_long:
        return _typed.unquoted(part.strip()), limit
    if end := _typed.value_end(part):
        return part[1 : end - 1].strip(), start + end
    narrow = _typed.narrow(part)
    if len(narrow) == len(part) and (found := _DATE_TIME.match(narrow)):
        return found.group().strip(), start + found.end()
    word = part.split(" ", 1)[0]
    return word, start + len(word)


def duration(text: str, usage: str) -> float:
    """Seconds of `90s`, `15m`, `2h`, `7d`, `2w`.

    Raises:
        CommandError: not of that form, zero, or longer than a year.
    """
    found = _DURATION.match(_typed.narrow(text).strip().lower())
    seconds = float(found.group(1)) * _SECONDS[(found.lastindex or 2) - 2] if found else 0.0
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise CommandError(say("commands.bad_duration", text=text[:40], usage=usage))
    return seconds


def moment(text: str, now: datetime, zone: ZoneInfo, usage: str) -> datetime:
    """A point in time: RFC 3339, `HH:MM` in the deployment's zone (the last time it was that late), or `30m` ago.

    Raises:
        CommandError: none of these, or in the future.
    """
    words = _AGO.sub("", _typed.narrow(text).strip())
    at: datetime | None = None
    if clock := _CLOCK.match(words):
        local = now.astimezone(zone)
        hour, minute, second = (int(part or 0) for part in clock.groups())
        at = local.replace(hour=hour, minute=minute, second=second, microsecond=0)
        if at > local:
            at -= timedelta(days=1)
    elif _DURATION.match(words.lstrip("-").lower()):
        at = now - timedelta(seconds=duration(words.lstrip("-"), usage))
    else:
        try:
            at = parse_rfc3339(words)
        except ValueError:
            at = _without_zone(words, zone)
    if at is None or at > now + timedelta(minutes=5):
        raise CommandError(say("commands.bad_time", text=words[:40], usage=usage))
    return at.astimezone(UTC)


def _without_zone(text: str, zone: ZoneInfo) -> datetime | None:
    """A date and time without an offset is the deployment's own."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone)
    except ValueError:
        return None


def severity(text: str) -> tuple[Severity | None, str]:
    """The severity that a text begins with (`sev2`, `SEV-2：`, `Ｓｅｖ２`), and the rest."""
    found = _SEVERITY.match(text)
    if found is None:
        return None, text
    return Severity(f"sev{int(found.group(1))}"), text[found.end() :]


def user(text: str, usage: str) -> str:
    """The id in `<@U…|name>`.

    Raises:
        CommandError: no mention.
    """
    found = _USER.match(text.strip())
    if found is None:
        raise CommandError(say("commands.bad_user", text=text[:40], usage=usage))
    return found.group(1)


def number(text: str, usage: str) -> int:
    """A place in a list, from 1.

    Raises:
        CommandError: no whole number above 0.
    """
    found = whole(_typed.narrow(text).strip().lstrip("#").rstrip(".,:、"))
    if not found:
        raise CommandError(say("commands.bad_number", text=text[:40], usage=usage))
    return found


def wrong(usage: str) -> CommandError:
    """The error that shows how a word is used."""
    return CommandError(say("commands.usage", usage=usage))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    typed, candidates = word.lower(), list(known)
    # Two letters in the wrong order: the likeliest slip, which a similarity ratio underrates.
    swapped = [name for name in candidates if sorted(name) == sorted(typed)]
    found = swapped or difflib.get_close_matches(typed, candidates, n=1, cutoff=0.55)
    return found[0] if found else None


def via(call: Call) -> Via:
    """Who acts, when, and under which name each step happens once."""
    return Via(
        by=call.user,
        at=call.at,
        key=call.key,
        source=call.source,
        permalink=call.permalink,
        message_ts=call.message_ts,
    )


def verbatim(text: str) -> Localized:
    """A person's words."""
    return Localized.verbatim(text)


def incident_id(call: Call) -> str:
    """The incident of a call whose word needs one; the dispatcher has made sure of it.

    Raises:
        CommandError: there is none.
    """
    if call.incident is None:
        raise CommandError(say("commands.no_incident"))
    return call.incident
