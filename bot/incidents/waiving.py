"""Lets a layer pass that nobody could look at: a person's decision, with a reason, in the record."""

from __future__ import annotations

from bot.domain.hypothesis import Layer, LayerState
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.journal import Recorded
from bot.incidents.responding import Responding, Via
from bot.locales import say


async def waive_layer(
    responding: Responding, incident_id: str, layer: Layer, reason: str, via: Via
) -> Recorded:
    """Records that `layer` need not be looked at before a cause on it may be confirmed.

    Raises:
        CommandError: no reason, or the layer was checked.
    """
    if not reason.strip():
        raise CommandError(say("guards.waive_needs_reason", word=layer.value))

    def make(incident: Incident) -> list[Draft]:
        known = next((item for item in incident.layers if item.layer is layer), None)
        if known is not None and known.state is not LayerState.NOT_CHECKED:
            why = say(
                "guards.waive_not_needed",
                layer=say(f"guards.name.{layer.value}"),
                state=say(f"guards.state.{known.state.value}"),
            )
            raise CommandError(why, reason=Reason.CONFLICT)
        data: dict[str, object] = {"op": "waived", "layer": layer.value}
        if via.message_ts is not None:
            data["ts"] = via.message_ts
        return [
            Draft(
                kind=EntryKind.HYPOTHESIS,
                at=via.at,
                text=Localized.verbatim(reason.strip()),
                author=via.by,
                source=via.source,
                permalink=via.permalink,
                data=data,
            )
        ]

    return await responding.write(incident_id, via, make, step=f"waive:{layer.value}")
