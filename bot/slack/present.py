"""From what is to be said to what Slack takes: template, buttons, limits, and plain text where all else fails."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from bot.blockkit.validate import validate_message
from bot.cause import Advice, Catalogue
from bot.domain.alert import AlertStatus
from bot.domain.incident import Incident
from bot.domain.text import Locale, Localized
from bot.incidents.scope_words import scope_words
from bot.incidents.silencing import silences_on, silent_until
from bot.inventory import Inventory
from bot.message import Message
from bot.slack.buttons import Groups, element, groups_for
from bot.slack.checks import checks_of
from bot.slack.probe_table import table
from bot.slack.render import HasSop, Renderer, TemplateFaultError
from bot.slack.split import messages, plain_texts
from bot.slack.text import cut, escape
from bot.slack.views import Json, Shown, read, spoken
from bot.steps.confirming import unchecked_layers
from bot.steps.gates import leading, missing
from bot.steps.prompts import prompts_for

log = structlog.get_logger(__name__)

MOST_TEXT = 3900


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message to be sent: blocks (none: text alone) and the text for notifications."""

    blocks: tuple[Json, ...]
    text: str

    @property
    def digest(self) -> str:
        """Changes exactly when what is shown changes."""
        body = json.dumps([self.blocks, self.text], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(body.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """A message ready to be sent, in as many parts as it needs; `meanings`: what its buttons mean, by opaque id."""

    parts: tuple[Part, ...]
    meanings: Mapping[str, Json]

    @property
    def plain(self) -> tuple[Part, ...]:
        """The same words without blocks, for when Slack refuses them."""
        text = "\n".join(part.text for part in self.parts)
        return tuple(Part(blocks=(), text=piece) for piece in plain_texts(text))


class Knowing(HasSop, Protocol):
    """Whatever knows the causes that count now too."""

    @property
    def catalogue(self) -> Catalogue: ...


class Presenter:
    """Presents messages of one deployment."""

    def __init__(self, renderer: Renderer, knowing: Knowing, inventory: Inventory) -> None:
        """knowing: has the SOP and the causes as they count now."""
        self._renderer = renderer
        self._knowing = knowing
        self._inventory = inventory

    @property
    def _catalogue(self) -> Catalogue:
        return self._knowing.catalogue

    def present(
        self,
        message: Message,
        incident: Incident | None,
        locale: Locale,
        names: Mapping[str, str],
        *,
        thread_link: str | None = None,
    ) -> Presented:
        """The message in `locale`; never raises: a template that fails gives its words as plain text."""
        context = self._context(message, incident, names, thread_link)
        groups: Groups = dict(groups_for(message.view, incident, context))
        groups[""] = (*groups.get("", ()), *message.buttons)
        meanings: dict[str, Json] = {}
        elements: dict[str, list[Json]] = {}
        for name, buttons in groups.items():
            for button in buttons:
                body, opaque, meaning = element(button, incident.id if incident else None, locale)
                elements.setdefault(name, []).append(body)
                meanings[opaque] = meaning
        try:
            output = self._renderer.render(message.view, context, locale)
        except TemplateFaultError as error:
            log.error("slack.template", view=message.view, error=str(error))
            return Presented(parts=_bare(message, incident, locale), meanings={})
        shown = read(output, elements)
        return Presented(parts=_parts(message.view, shown), meanings=meanings)

    def _context(
        self,
        message: Message,
        incident: Incident | None,
        names: Mapping[str, str],
        thread_link: str | None,
    ) -> dict[str, Any]:
        context: dict[str, Any] = {
            "incident": incident,
            "names": names,
            "thread_link": thread_link,
            "titles": self._titles,
            "services": list(self._inventory.services),
            **message.context,
        }
        if "results" in context:
            context["table"] = table(context["results"], self._catalogue.findings)
        if incident is not None:
            context |= self._of(incident, context)
            context |= checks_of(incident, str(context["step"]))
        return context

    def _of(self, incident: Incident, context: Mapping[str, Any]) -> dict[str, Any]:
        cause = incident.root_cause.cause if incident.root_cause else None
        first = leading(incident)
        chosen = incident.hypothesis(cause) if cause else first
        step = str(context.get("step") or incident.current_step or "")
        scope = incident.scope
        return {
            "step": step,
            "missing": missing(incident, self._knowing.sop, step),
            "prompts": prompts_for(incident, self._knowing.sop, step),
            "lead": first,
            "unchecked": lambda item: unchecked_layers(incident, item),
            "alerts": sorted(
                incident.alerts.values(),
                key=lambda alert: (alert.status is AlertStatus.RESOLVED, alert.starts_at),
            ),
            "firing": sum(a.status is AlertStatus.FIRING for a in incident.alerts.values()),
            "silences": tuple(silences_on(incident).values()),
            "silent_until": silent_until(incident),
            "over": sum(a.status is AlertStatus.RESOLVED for a in incident.alerts.values()),
            "cause_title": self._title(incident, cause) if cause else "",
            "chain_titles": self._titles(chosen.chain) if chosen else [],
            "scope_parts": scope_words(scope),
            "fixes": self._fixes(chosen.chain or (chosen.cause,)) if chosen else (),
            "experiment": next(
                (item for item in incident.experiments if item.id == context.get("id")), None
            ),
            "hypothesis_title": self._title(incident, str(context.get("cause") or "")),
        }

    def _title(self, incident: Incident, cause: str) -> Localized:
        named = incident.hypothesis(cause)
        if named is not None:
            return named.title
        known = self._catalogue.causes.get(cause)
        return known.title if known else Localized.verbatim(cause)

    def _titles(self, chain: Sequence[str]) -> list[Localized]:
        return [
            self._catalogue.causes[cause].title
            if cause in self._catalogue.causes
            else Localized.verbatim(cause)
            for cause in chain
        ]

    def _fixes(self, chain: Sequence[str]) -> tuple[Advice, ...]:
        for cause in reversed(chain):
            if cause in self._catalogue.causes:
                return self._catalogue.causes[cause].fixes[:4]
        return ()


def _parts(view: str, shown: Shown) -> tuple[Part, ...]:
    text = cut(shown.text, MOST_TEXT) or "–"
    if not shown.blocks:
        return (Part(blocks=(), text=text),)
    parts = []
    split = messages(shown.blocks)
    for blocks in split:
        if len(split) > 1:
            text = cut(spoken(blocks), MOST_TEXT) or "–"
        faults = validate_message(blocks, text)
        if faults:
            # Never silence: what the schema refuses is said in plain words, and the fault is logged.
            log.error("slack.refused_by_schema", view=view, fault=str(faults[0]))
            return tuple(Part(blocks=(), text=piece) for piece in plain_texts(shown.text or "–"))
        parts.append(Part(blocks=tuple(dict(block) for block in blocks), text=text))
    return tuple(parts)


def _bare(message: Message, incident: Incident | None, locale: Locale) -> tuple[Part, ...]:
    """What a message says when its template is broken: its own texts, one a line."""
    lines = [incident.id if incident else "rca-bot"]
    for value in message.context.values():
        if isinstance(value, Mapping) and Locale.EN.value in value:
            lines.append(Localized.from_json(dict(value)).in_locale(locale))
        elif isinstance(value, str):
            lines.append(value)
    return tuple(Part(blocks=(), text=piece) for piece in plain_texts(escape("\n".join(lines))))
