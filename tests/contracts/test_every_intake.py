"""What every sender's parser must do with what it is sent: read it, refuse it with a reason, or see nothing in it."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bot.intake
from bot.domain.alert import AlertGroup
from bot.intake.reading import PayloadError
from tests.conftest import examples
from tests.web.door import payload

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NO_WEBHOOK = {"reading", "grouped", "slack_message", "change"}
"""What parsers share, and the two with a contract of another shape."""

Parse = Callable[[object, datetime], AlertGroup | None]

PARSERS: dict[str, Parse] = {
    info.name: importlib.import_module(f"bot.intake.{info.name}").parse
    for info in pkgutil.iter_modules(bot.intake.__path__)
    if info.name not in NO_WEBHOOK
}
SAMPLES = {
    "alertmanager": payload("firing_and_resolved.json"),
    "grafana": payload("grafana_values.json"),
    "pagerduty": payload("pagerduty_triggered.json"),
}

# Halves of surrogate pairs included: JSON's escapes can carry them.
_text = st.text(max_size=30) | st.sampled_from(
    ["\ud83d", "a\udc00b", "\x00", "<!channel>", "{{ x }}", "{0.__class__}", "%s%n"]
)
_times = st.sampled_from(
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+08:00",
        "9999-12-31T23:59:59-12:00",
        "2026-11-30T12:00:00.123456789+08:00",
        "2026-11-30",
        "soon",
        "",
    ]
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _text | _times,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def _bent(draw: st.DrawFn, sample: Any) -> Any:
    """A real body with some of its parts put in a place where anything may stand."""
    if draw(st.integers(0, 7)) == 0:
        return draw(_json)
    if isinstance(sample, dict):
        bent = {key: draw(_bent(value)) for key, value in sample.items() if draw(st.integers(0, 9))}
        return bent | draw(st.dictionaries(_text, _json, max_size=1))
    if isinstance(sample, list):
        return [draw(_bent(item)) for item in sample]
    return sample


def test_every_sender_of_the_contract_has_a_parser() -> None:
    assert set(PARSERS) == set(SAMPLES)


@pytest.mark.parametrize("sender", sorted(PARSERS))
def test_a_real_body_is_read_the_same_every_time(sender: str) -> None:
    first, again = (PARSERS[sender](SAMPLES[sender], AT) for _ in range(2))
    assert first == again
    assert first is not None
    assert (first.source, bool(first.alerts), bool(first.title)) == (sender, True, True)


@pytest.mark.parametrize("sender", sorted(PARSERS))
def test_the_body_is_not_changed(sender: str) -> None:
    before = json.dumps(SAMPLES[sender], sort_keys=True)
    PARSERS[sender](SAMPLES[sender], AT)
    assert json.dumps(SAMPLES[sender], sort_keys=True) == before


@pytest.mark.parametrize("body", [None, 3, "x", [], [{}], {}, {"alerts": 1}, {"event": []}])
@pytest.mark.parametrize("sender", sorted(PARSERS))
def test_what_is_no_notification_is_refused_with_the_reason(sender: str, body: object) -> None:
    with pytest.raises(PayloadError) as refused:
        PARSERS[sender](body, AT)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("sender", sorted(PARSERS))
@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_body_is_read_refused_or_ignored_and_what_is_read_can_be_stored(
    sender: str, data: st.DataObject
) -> None:
    body = data.draw(_json | _bent(SAMPLES[sender]))
    try:
        group = PARSERS[sender](body, AT)
    except PayloadError:
        return
    if group is None:
        return
    for alert in group.alerts:
        # Strict JSON, and text that UTF-8 can hold.
        json.dumps(alert.to_json(), allow_nan=False, ensure_ascii=False).encode()
        assert alert.fingerprint
        assert alert.name.strip()
        assert alert.ends_at is None or alert.ends_at >= alert.starts_at
    group.group_key.encode()
    group.title.encode()
    assert set(group.silenced) <= {alert.fingerprint for alert in group.alerts}
