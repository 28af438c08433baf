"""Fills the templates of `templates/slack/` in a reader's language.

Every value is escaped when it is put out, exactly once; only what this module's own functions return is markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import jinja2
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from bot.domain.instant import parse_rfc3339
from bot.domain.text import Locale, Localized
from bot.errors import BotError, ConfigError, Reason
from bot.locales import catalogue, templates_root, translate
from bot.slack import text as slack_text
from bot.sop import Sop

_BAR = 10


class HasSop(Protocol):
    """Whatever knows the SOP that counts now."""

    @property
    def sop(self) -> Sop: ...


class TemplateFaultError(BotError):
    """A template could not be filled; the message names it and the line."""


class Renderer:
    """All templates of one deployment."""

    def __init__(self, knowing: HasSop, zone: ZoneInfo) -> None:
        """knowing: has the SOP as it counts now."""
        self._knowing = knowing
        self._zone = zone
        # Not HTML: `finalize` escapes for Slack and hands Jinja marked text, which it then leaves alone.
        self._jinja = jinja2.Environment(
            loader=jinja2.FileSystemLoader(templates_root() / "slack"),
            autoescape=True,
            finalize=_finalize,
            undefined=jinja2.ChainableUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
        )
        self._jinja.filters |= {
            "join": _no_join,
            "e": _escaped,
            "escape": _escaped,
            "cut": _cut,
            "code": _code,
            "mono": _mono,
            "named": _named,
        }
        self._jinja.globals |= {
            "t": _translated,
            "L": _localized,
            "name": _name,
            "when": self._when,
            "clock": self._clock,
            "reason": _reason,
            "link": _link,
            "pct": _percent,
            "bar": _bar,
            "span": _span,
            "listed": _listed,
        }

    def check(self) -> None:
        """Compiles every template, so that a broken one stops the start and not a message.

        Raises:
            ConfigError: one line per faulty file.
        """
        faults = []
        for name in self._jinja.list_templates():
            try:
                self._jinja.get_template(name)
            except jinja2.TemplateSyntaxError as error:
                faults.append(f"templates/slack/{name}:{error.lineno}: {error.message}")
        if faults:
            raise ConfigError(*faults)

    def render(self, view: str, context: Mapping[str, Any], locale: Locale) -> str:
        """The filled template, in the form that `bot.slack.views` reads.

        Raises:
            TemplateFaultError: there is no such template, or it fails on this context.
        """
        try:
            return self._jinja.get_template(f"{view}.j2").render(
                {"sop": self._knowing.sop, **context, "locale": locale}
            )
        except jinja2.TemplateNotFound as error:
            raise TemplateFaultError(
                f"templates/slack/{view}.j2: is missing; add it", reason=Reason.NOT_FOUND
            ) from error
        except Exception as error:
            # Whatever an expression of a template can raise; the reader gets the plain text instead.
            raise TemplateFaultError(
                f"templates/slack/{view}.j2: {type(error).__name__}: {' '.join(str(error).split())[:200]}; "
                "correct the template"
            ) from error

    def _when(self, value: datetime | str | None) -> Markup:
        """The reader's own time with UTC beside it."""
        at = _datetime(value)
        if at is None:
            return Markup("–")
        utc = f"{at:%Y-%m-%d %H:%M:%S} UTC"
        token = f"<!date^{int(at.timestamp())}^{{date_short_pretty}} {{time}}|{utc}>"
        return Markup(f"{token} ({at:%m-%d %H:%M} UTC)")  # noqa: S704  digits only

    def _clock(self, value: datetime | str | None) -> str:
        """The time of day in the deployment's zone, for places that Slack does not format."""
        at = _datetime(value)
        return f"{at.astimezone(self._zone):%m-%d %H:%M %Z}" if at else "–"


@pass_context
def _finalize(context: Context, value: object) -> Markup:
    return _marked(value, context["locale"])


def _marked(value: object, locale: Locale) -> Markup:
    if isinstance(value, Markup):
        return value
    if value is None or isinstance(value, jinja2.Undefined):
        return Markup("")
    shown = _in_locale(value, locale)
    return Markup(slack_text.escape(slack_text.quiet(shown)))  # noqa: S704  escaped right here


def _in_locale(value: object, locale: Locale) -> str:
    if isinstance(value, Localized):
        return value.in_locale(locale)
    if isinstance(value, Mapping) and Locale.EN.value in value:
        return Localized.from_json(dict(value)).in_locale(locale)
    return str(value)


def _escaped(value: object) -> Markup:
    return _marked(value, Locale.EN)


def _no_join(*_: object) -> str:
    raise TypeError("join() escapes for HTML; use listed()")


@pass_context
def _cut(context: Context, value: object, most: int) -> str:
    return slack_text.cut(_shown(context, value), most)


@pass_context
def _code(context: Context, value: object) -> Markup:
    return Markup(slack_text.code(_shown(context, value)))  # noqa: S704  escaped inside


@pass_context
def _mono(context: Context, value: object) -> Markup:
    return Markup(slack_text.inline_code(_shown(context, value)))  # noqa: S704  escaped inside


def _shown(context: Context, value: object) -> str:
    if value is None or isinstance(value, jinja2.Undefined):
        return ""
    return _in_locale(value, context["locale"])


@pass_context
def _localized(context: Context, value: object) -> str:
    """A text in the reader's language, not escaped yet."""
    return _in_locale(value, context["locale"]) if value is not None else ""


@pass_context
def _translated(context: Context, key: str, **fields: object) -> Markup:
    """A sentence of the catalogue; the sentence may hold markup, its fields are escaped."""
    locale: Locale = context["locale"]
    filled = {name: _marked(value, locale) for name, value in fields.items()}
    return Markup(translate(locale, str(key), **filled))  # noqa: S704  our own catalogue


@pass_context
def _listed(context: Context, values: object, separator: str = ", ") -> Markup:
    """Values side by side, each escaped."""
    locale: Locale = context["locale"]
    items = [] if values is None or isinstance(values, jinja2.Undefined) else list(values)  # type: ignore[call-overload]
    return Markup(separator.join(str(_marked(item, locale)) for item in items))  # noqa: S704


@pass_context
def _name(context: Context, user: object) -> str:
    """A person by name: a mention would page them."""
    names = context.get("names") or {}
    return str(names.get(str(user), user or "–"))


@pass_context
def _named(context: Context, value: object) -> str:
    """A text of our own that mentions people: by name, so that it pages nobody."""
    return slack_text.named(_shown(context, value), context.get("names") or {})


@pass_context
def _reason(context: Context, value: object) -> str:
    """A word of the closed sets of failures in the reader's language; a word that is in none of them as it is."""
    locale: Locale = context["locale"]
    return catalogue(locale).get(f"slack.reason_{value}", str(value))


def _link(url: object, label: object) -> Markup:
    return Markup(slack_text.link(str(url) if url else None, str(label)))  # noqa: S704  escaped inside


def _percent(value: object) -> str:
    ratio = float(str(value))
    if 0 < ratio < 0.01:
        return "<1 %"
    return f"{ratio * 100:.0f} %"


def _bar(value: object) -> str:
    filled = round(min(1.0, max(0.0, float(str(value)))) * _BAR)
    return "█" * filled + "░" * (_BAR - filled)


def _span(seconds: object) -> str:
    """A length of time in its two largest units."""
    if seconds is None or isinstance(seconds, jinja2.Undefined):
        return "–"
    left = round(float(str(seconds)))
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2]) or "0 s"


def _datetime(value: datetime | str | None) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and value:
        try:
            return parse_rfc3339(value)
        except ValueError:
            return None
    return None
