"""Where the time of a request is lost: the part of it that grew most, and the layer at which looking begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bot.cause import Catalogue, Movement
from bot.diagnosis.collected import Collected
from bot.diagnosis.facts import establish
from bot.diagnosis.observation import Observation
from bot.domain.hypothesis import Layer

_PARTS = ("trace.", "phase.")
"""Begin the names of signals that are parts of one request's time; traces first, since they miss no part of it."""


def where_time_is_lost(
    observations: Mapping[str, Sequence[Observation]],
) -> Observation | None:
    """The part of a request's time that grew by the most seconds; None where no part grew.

    Parts add up to the whole, so that growth in seconds compares; a mean per token, which some engines count instead,
    is small beside them and never wins against a whole request's.
    """
    for prefix in _PARTS:
        grown = [
            item
            for name, items in observations.items()
            if name.startswith(prefix)
            for item in items
            if item.moved() is Movement.UP
        ]
        if grown:
            return max(grown, key=lambda item: (item.delta, item.signal.name, item.entity))
    return None


def first_layer(collected: Collected, catalogue: Catalogue) -> Layer | None:
    """The layer at which to look first, by the metrics and traces of `collected` alone; None while they show nothing."""
    told = {
        name: reading
        for name, reading in collected.now.items()
        if name.startswith(_PARTS)
        or ((signal := collected.signal(name, catalogue)) and signal.symptom is not None)
    }
    lost = where_time_is_lost(establish(replace(collected, now=told), catalogue).observations)
    return lost.signal.layer if lost is not None else None


def layers_from(first: Layer | None) -> tuple[Layer, ...]:
    """All layers in the order in which to look: from `first` inwards, then what lies above it, nearest first.

    >>> [layer.value for layer in layers_from(Layer.STORAGE)][:4]
    ['storage', 'dependency', 'network', 'host']
    """
    layers = tuple(Layer)
    at = layers.index(first) if first is not None else 0
    return (*layers[at:], *reversed(layers[:at]))


def in_order(probes: Iterable[str], first: Layer | None, catalogue: Catalogue) -> tuple[str, ...]:
    """The probes of the layer `first` before those of the next, by name within one; a node runs only a few at once."""
    rank = {layer: at for at, layer in enumerate(layers_from(first))}
    nearest: dict[str, int] = {}
    for finding in catalogue.findings.values():
        place = rank[finding.layer]
        nearest[finding.probe] = min(nearest.get(finding.probe, place), place)
    return tuple(sorted(probes, key=lambda name: (nearest.get(name, len(rank)), name)))
