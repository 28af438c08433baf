"""Lets a layer pass that nobody looked at, so that a cause on it may be confirmed."""

from __future__ import annotations

from bot.command import Call, Permission, Reply, allowed
from bot.domain.hypothesis import Layer
from bot.domain.incident import Incident
from bot.domain.text import listed
from bot.errors import CommandError, Reason
from bot.incidents.waiving import waive_layer
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._may import refused
from commands._reply import notice

_MOST_TEXT = 500


def _layer(word: str) -> Layer | None:
    """A layer by its id or by its Chinese name."""
    for layer in Layer:
        if word.lower() in (layer.value, say(f"guards.name.{layer.value}").zh.lower()):
            return layer
    return None


async def waive(call: Call, services: Services, incident: Incident, rest: str) -> Reply:
    """A button names the layer itself; whoever may confirm a cause may waive what stands before that."""
    if not allowed(services.settings.policy, call.user, Permission.CONFIRM_CAUSE):
        raise CommandError(
            refused(services.settings.policy, Permission.CONFIRM_CAUSE), reason=Reason.UNAUTHORISED
        )
    named = call.payload.get("layer")
    word, reason = (str(named), rest) if named else _line.first(rest)
    layer = _layer(word)
    if layer is None:
        known = listed(item.value for item in Layer)
        raise CommandError(say("guards.waive_usage", word=word or "–", layers=known))
    said = _line.shortened(_line.said(reason), _MOST_TEXT) if reason.strip() else ""
    await waive_layer(services.responding, incident.id, layer, said, _line.via(call))
    services.wake()
    return notice(say("guards.waived", layer=say(f"guards.name.{layer.value}"), reason=said))
