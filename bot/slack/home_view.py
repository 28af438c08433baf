"""Builds the Home tab from its template: within Slack's limits, and plain where the schema refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from bot.blockkit import limits
from bot.blockkit.validate import validate_view
from bot.domain.text import Locale
from bot.locales import say
from bot.message import Button
from bot.slack.buttons import element
from bot.slack.render import Renderer, TemplateFaultError
from bot.slack.split import plain_texts
from bot.slack.text import escape
from bot.slack.views import Json, read

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the template is filled with, and by group name the incident and the buttons of each row."""

    context: Mapping[str, Any]
    buttons: Mapping[str, tuple[str | None, tuple[Button, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownHome:
    """A view to publish, the same words without buttons, and what the buttons mean."""

    body: Json
    plain: Json
    meanings: Mapping[str, Json]


class HomeView:
    """Builds Home tabs of one deployment."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def build(
        self, named: Named, names: Mapping[str, str], locale: Locale, now: datetime
    ) -> ShownHome:
        """The view in `locale`; never raises: a template that fails gives one sentence that says so."""
        meanings: dict[str, Json] = {}
        groups: dict[str, list[Json]] = {}
        for name, (incident_id, buttons) in named.buttons.items():
            for button in buttons:
                body, opaque, meaning = element(button, incident_id, locale)
                groups.setdefault(name, []).append(body)
                meanings[opaque] = meaning
        try:
            output = self._renderer.render(
                "home", {**named.context, "names": names, "now": now}, locale
            )
        except TemplateFaultError as error:
            log.error("slack.template", view="home", error=str(error))
            plain = _plain(escape(say("slack.home_broken").in_locale(locale)))
            return ShownHome(body=plain, plain=plain, meanings={})
        shown = read(output, groups)
        view: Json = {"type": "home", "blocks": list(shown.blocks[: limits.VIEW_BLOCKS])}
        plain = _plain(shown.text)
        if faults := validate_view(view):
            # Never silence: what the schema refuses is said in plain words, and the fault is logged.
            log.error("slack.refused_by_schema", view="home", fault=str(faults[0]))
            return ShownHome(body=plain, plain=plain, meanings={})
        return ShownHome(body=view, plain=plain, meanings=meanings)


def _plain(text: str) -> Json:
    pieces = plain_texts(text, limits.SECTION_TEXT) or ["–"]
    return {
        "type": "home",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": piece, "verbatim": True}}
            for piece in pieces[: limits.VIEW_BLOCKS]
        ],
    }
