"""`diagnose --json` keeps the contract's shape whatever was collected."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import fastjsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.diagnosis.as_json import diagnosis_to_json
from bot.diagnosis.engine import assess
from bot.domain.evidence import SourceState
from bot.domain.text import Locale
from tests.diagnosis.worlds import (
    CALM,
    CATALOGUE,
    CLEAN,
    CLOCK,
    CPU,
    LOADER,
    LOCK,
    ONSET,
    PINNED,
    SERVICE,
    SURGE,
    change,
    line,
    world,
)

CAUSES = [*sorted(CATALOGUE.causes), "not_established"]
LAYERS = [
    "input", "application", "model", "runtime", "gpu", "host", "network", "storage", "dependency",
]  # fmt: skip
TEXT = {"type": "string", "minLength": 1}
MAYBE = {"type": ["string", "null"]}
MOMENT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": sorted(properties),
        "additionalProperties": False,
    }  # fmt: skip


def listed(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, **more}


REASON = closed(
    source={"enum": ["metrics", "logs", "traces", "events", "probe", "person"]},
    summary=TEXT, ref={"type": "string", "pattern": "^(E-[0-9a-f]{6})?$"},
)  # fmt: skip
HYPOTHESIS = closed(
    rank={"type": "integer", "minimum": 1},
    cause={"enum": CAUSES},
    probability={"type": "number", "minimum": 0, "maximum": 1},
    node=MAYBE, component=MAYBE,
    chain=listed({"enum": CAUSES}, minItems=1, uniqueItems=True),
    against=listed(REASON), missing=listed(TEXT),
    trigger=closed(change=MAYBE, summary=MAYBE),
    next_experiment={
        "anyOf": [
            {"type": "null"},
            closed(probe=MAYBE, node=MAYBE, expects=TEXT, would_refute=TEXT),
        ]
    },
    **{"for": listed(REASON)},
)  # fmt: skip
SHAPE = closed(
    incident=MAYBE, service=TEXT, at=MOMENT,
    symptoms=listed(closed(id=TEXT, summary=TEXT, since={"anyOf": [{"type": "null"}, MOMENT]})),
    hypotheses=listed(HYPOTHESIS, minItems=len(CAUSES), maxItems=len(CAUSES)),
    layers=listed(
        closed(layer={"enum": LAYERS}, state={"enum": ["abnormal", "clean", "not_checked"]}, why=TEXT),
        minItems=len(LAYERS), maxItems=len(LAYERS),
    ),
    sources=closed(
        **{
            name: {"enum": ["ok", "empty", "unreachable"]}
            for name in ("metrics", "logs", "traces", "events", "probes")
        }
    ),
    blind_spots=listed(closed(what=TEXT, why=TEXT)),
)  # fmt: skip
check = fastjsonschema.compile({"$schema": "http://json-schema.org/draft-07/schema#", **SHAPE})

FAULTS = st.sampled_from([{}, PINNED, CPU, CLOCK, LOCK, LOADER, SURGE])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    fault=FAULTS,
    gone=st.sets(st.sampled_from(sorted(CALM))),
    probes=st.sets(st.integers(0, len(CLEAN) - 1)),
    states=st.lists(st.sampled_from(list(SourceState)), min_size=5, max_size=5),
    said=st.booleans(),
    locale=st.sampled_from(list(Locale)),
)
def test_any_answer_has_the_shape_and_probabilities_that_sum_to_one(
    fault: dict[str, float], gone: set[str], probes: set[int], states: list[SourceState],
    said: bool, locale: Locale,
) -> None:  # fmt: skip
    lines = [line("lock held for 900 ms: waiting to enter")] if said else []
    changes = [change("c-1", "raise workers", ONSET)] if said else []
    whole = world(fault, lines=lines, changes=changes)
    collected = replace(
        whole,
        now={name: item for name, item in whole.now.items() if name not in gone},
        probes=tuple(whole.probes[at] for at in sorted(probes)),
        states=dict(zip(whole.states, states, strict=True)),
    )
    told = diagnosis_to_json(assess(collected, CATALOGUE, SERVICE), None, locale)
    value = json.loads(json.dumps(told, allow_nan=False))
    check(value)
    found = value["hypotheses"]
    assert math.fsum(item["probability"] for item in found) == pytest.approx(1.0, abs=1e-9)
    assert [item["rank"] for item in found] == list(range(1, len(CAUSES) + 1))
    assert sorted(item["cause"] for item in found) == sorted(CAUSES)
    assert [item["layer"] for item in value["layers"]] == LAYERS
    for item in found:
        assert item["cause"] in item["chain"]
