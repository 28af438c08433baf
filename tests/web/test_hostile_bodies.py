"""Whatever is posted, the answer is a 2xx for what is durable or a 4xx with the reason, and the record is strict JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.contracts.test_every_intake import SAMPLES, _bent, _json
from tests.web.door import opened


def _refuse(name: str) -> float:
    raise AssertionError(f"{name} was stored")


@pytest.mark.parametrize("sender", [*sorted(SAMPLES), "changes"])
@settings(max_examples=examples(60, 1_250), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_any_body_is_answered_without_a_5xx(redis_url, sender, data):
    body = data.draw(
        _json | _bent(SAMPLES.get(sender, {"events": [{"id": "1", "kind": "config"}]}))
    )
    async with opened(redis_url) as door:
        answer = await door.post(sender, json.dumps(body).encode())
        assert answer.status_code in (200, 400), answer.text
        if answer.status_code == 400:
            assert answer.json()["error"]
        for incident in await door.ids():
            for _, fields in await door.store.text.xrange(f"rca:inc:{incident}:timeline"):
                json.loads(fields["entry"], parse_constant=_refuse)
        await door.store.text.flushdb()


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xff\xfe", b"{" * 50_000, b'{"alerts":[{"labels":{"a":1e999}}]}', b"9" * 10_000],
    ids=["empty", "no-utf8", "deep", "overflow", "long-number"],
)
@pytest.mark.parametrize("sender", sorted(SAMPLES))
async def test_raw_bytes_are_answered_too(redis_url, sender, raw):
    async with opened(redis_url) as door:
        assert (await door.post(sender, raw)).status_code in (200, 400)


async def test_half_a_surrogate_pair_in_an_alert_is_shown_as_a_broken_character(redis_url):
    body = json.dumps(SAMPLES["alertmanager"]).replace("TTFT p95", "TTFT \\ud83d p95")
    async with opened(redis_url) as door:
        assert (await door.post("alertmanager", body.encode())).status_code == 200
        assert "TTFT \ufffd p95" in (await door.incident()).title
