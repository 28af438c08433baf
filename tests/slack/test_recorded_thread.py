"""A whole thread as Slack told of it, repeats, retries, corrections and a lost root included: each message once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from bot.settings import ChannelSettings
from bot.workspace.records import User
from tests.slack.conftest import ALERTS, Stage, staged

ROOT = "1772586775.000200"
PEOPLE = {"U0AAA1LIN": "林岚", "U0BBB2PRI": "Priya N.", "U0CCC3TOM": "Tomás R."}
BOTS = {"B0AMBOT": "alertmanager", "B0GRAF": "grafana"}

ALERT: dict[str, Any] = {
    "type": "message",
    "subtype": "bot_message",
    "bot_id": "B0AMBOT",
    "username": "Alertmanager",
    "text": "",
    "channel": ALERTS,
    "ts": ROOT,
    "attachments": [
        {
            "color": "a30200",
            "fallback": "[FIRING:2] TTFTHigh atlas-chat | http://am-0.mon.example:9093/#/alerts",
            "title": "[FIRING:2] TTFTHigh atlas-chat",
            "title_link": "http://am-0.mon.example:9093/#/alerts",
            "text": "*Alert:* p95 TTFT 4.1 s\n*Pod:* `atlas-chat-0`",
            "fields": [{"title": "Severity", "value": "page", "short": True}],
        }
    ],
}
NESTED: dict[str, Any] = {
    "type": "message",
    "subtype": "bot_message",
    "bot_id": "B0GRAF",
    "text": "",
    "channel": ALERTS,
    "ts": "1772586790.000300",
    "attachments": [
        {
            "fallback": "[no preview available]",
            "blocks": [
                {"type": "header", "text": {"type": "plain_text", "text": "KVCacheNearFull"}},
                {
                    "type": "section",
                    "fields": [
                        {"type": "mrkdwn", "text": "*severity*\nticket"},
                        {"type": "mrkdwn", "text": "*service*\natlas-chat"},
                    ],
                },
                {
                    "type": "context",
                    "elements": [{"type": "mrkdwn", "text": "KV cache 98 % on `atlas-chat-2`"}],
                },
            ],
        }
    ],
}


def said(user: str, text: str, ts: str, **more: Any) -> dict[str, Any]:
    place = {"channel": ALERTS, "ts": ts, "event_ts": ts, "thread_ts": ROOT}
    return {"type": "message", "user": user, "text": text, **place, **more}


def told(subtype: str, ts: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "subtype": subtype, "channel": ALERTS, "ts": ts, **more}


LIN, PRIYA = "U0AAA1LIN", "U0BBB2PRI"
ROLLED = said(LIN, "rolled back to v41", "1772587000.000100")
FALLING = said(PRIYA, "error rate is falling", "1772587050.000100")
GREEN = said(LIN, "all green", "1772587080.000200")
DRAIN = said(PRIYA, "draining gpu-node-17 now", "1772587020.000400")
XID = said(LIN, "gpu-node-17 shows Xid 78", "1772586900.000100")
SECRET = said(PRIYA, "my password is hunter2, oops", "1772586960.000100")

# Event, its id, and the number of the retry; ids repeat and differ as they do in the field.
DELIVERIES: list[tuple[dict[str, Any], str, str | None]] = [
    (ROLLED, "EvA1", None),
    (ROLLED, "EvA1", "1"),
    (ROLLED, "EvA1", "2"),
    (FALLING, "EvB7", "1"),
    (GREEN, "EvC1", None),
    (GREEN, "EvC9", None),
    (ROLLED, "EvA1", "3"),
    (XID, "EvX2", None),
    (
        told(
            "message_changed",
            "1772586930.000500",
            message={
                **XID,
                "text": "gpu-node-17 shows Xid 79",
                "edited": {"user": LIN, "ts": "1772586930.000000"},
            },
            previous_message=XID,
        ),
        "EvX3",
        None,
    ),
    (SECRET, "EvX4", None),
    (
        told("message_deleted", "1772586970.000300", deleted_ts=SECRET["ts"], hidden=True),
        "EvX5",
        None,
    ),
    ({**DRAIN, "subtype": "thread_broadcast", "root": {"ts": ROOT}}, "EvX6", None),
    (DRAIN, "EvX7", None),
    (
        told("channel_join", "1772587030.000100", user="U0CCC3TOM", text="<@U0CCC3TOM> has joined"),
        "EvX8",
        None,
    ),
    (
        told(
            "message_changed",
            "1772587100.000100",
            message={
                "type": "message",
                "subtype": "tombstone",
                "user": "USLACKBOT",
                "text": "This message was deleted.",
                "ts": ROOT,
                "thread_ts": ROOT,
            },
            previous_message={"type": "message", "bot_id": "B0AMBOT", "ts": ROOT},
        ),
        "EvX9",
        None,
    ),
]


async def _report(stage: Stage, suffix: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        return await http.get(
            f"http://127.0.0.1:{stage.settings.port}/incidents/INC-1/report.{suffix}",
            headers={"Authorization": "Bearer read"},
        )


async def test_thread_is_in_the_report_once_corrected_and_without_what_was_taken_back(
    redis_url: str, tmp_path: Path
) -> None:
    more: dict[str, Any] = {
        "channels": (ChannelSettings(id=ALERTS, alert_bots=BOTS),),
        "environment": {"RCA_READ_TOKEN": "read"},
    }
    async with staged(redis_url, tmp_path, **more) as stage:
        for user, name in PEOPLE.items():
            stage.workspace.workspace.users[user] = User(
                id=user, name=name, real_name=name, title="", email=f"{user.lower()}@example.com"
            )
        for n, event in enumerate((ALERT, NESTED)):
            assert (await stage.deliver(stage.event(event, f"EvR{n}"))).status_code == 200
        for event, event_id, retry in DELIVERIES:
            headers = {"x-slack-retry-num": retry, "x-slack-retry-reason": "http_timeout"}
            answer = await stage.deliver(stage.event(event, event_id), **(headers if retry else {}))
            assert answer.status_code == 200
        await stage.calm()

        first, second = await stage.incident("INC-1"), await stage.incident("INC-2")
        alert = next(iter(first.alerts.values()))
        assert (alert.name, alert.labels["severity"], alert.status.value) == (
            "TTFTHigh",
            "page",
            "firing",
        )
        assert first.service == second.service == "atlas-chat"
        nested = next(iter(second.alerts.values()))
        assert (nested.name, nested.labels["severity"]) == ("KVCacheNearFull", "ticket")
        assert "no preview" not in second.title
        assert first.is_open

        body = await _report(stage, "json")
        messages = [e for e in body.json()["timeline"] if e["kind"] == "message"]
        assert [(e["author"], e["text"], e["withheld"]) for e in messages] == [
            ("Alertmanager", messages[0]["text"], False),
            ("林岚", "gpu-node-17 shows Xid 79", False),
            ("Priya N.", None, True),
            ("林岚", "rolled back to v41", False),
            ("Priya N.", "draining gpu-node-17 now", False),
            ("Priya N.", "error rate is falling", False),
            ("林岚", "all green", False),
        ]
        assert "TTFTHigh atlas-chat" in messages[0]["text"]
        assert [h["text"] for h in messages[1]["history"]] == ["gpu-node-17 shows Xid 78"]
        for suffix in ("json", "md", "html"):
            text = (await _report(stage, suffix)).text
            assert "hunter2" not in text
            assert "has joined" not in text
        kept = str(await stage.store.text.hgetall("rca:inc:INC-1:texts"))
        assert "hunter2" not in kept
