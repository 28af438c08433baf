"""The layers as the incident left them: what was read, and what a person waived and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.domain.hypothesis import LayerState, LayerVerdict
from bot.domain.incident import Incident
from bot.locales import say


def layers_left(incident: Incident, directory: Mapping[str, str]) -> tuple[LayerVerdict, ...]:
    """One verdict a layer; where nobody looked and somebody waived it, the reason says both.

    directory: Slack ids to names.
    """
    waived = {item.layer: item for item in incident.waivers}
    found = []
    for verdict in incident.layers:
        waiver = waived.get(verdict.layer)
        if waiver is not None and verdict.state is LayerState.NOT_CHECKED:
            why = say(
                "guards.layer.waived", why=verdict.why, by=directory.get(waiver.by, waiver.by),
                reason=waiver.reason or say("guards.layer.withheld"),
            )  # fmt: skip
            found.append(replace(verdict, why=why))
        else:
            found.append(verdict)
    return tuple(found)
