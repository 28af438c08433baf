"""Whatever people type, say, edit, delete and react with: acknowledged, answered, and recorded whole.

A few histories run with every test run; `make fuzz` runs thousands (`HYPOTHESIS_PROFILE=long`).
"""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import bot.slack.poster
import commands
from bot.command import Command
from bot.domain.timeline import EntryKind
from bot.registry import collect
from commands._words import CHINESE
from tests.conftest import examples
from tests.slack.conftest import CHANNEL, Stage
from tests.slack.test_receiver import post

# About six steps a history: 8 take a few seconds, 900 are more than 5,000 commands and events.
HISTORIES = settings(
    max_examples=examples(8, 900),
    deadline=None,
    # One bot lives through all histories, so a smaller one after a failure would prove nothing.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# A report takes seconds of a worker process each time, and has tests of its own.
WORDS = sorted(set(collect(commands, Command)) - {"export"}) + sorted(
    word for word, name in CHINESE.items() if name != "export"
)
PIECES = st.one_of(
    st.sampled_from(
        [
            *(
                "INC-1",
                "INC-99",
                "sev1",
                "next",
                "back",
                "pass",
                "skip",
                "add",
                "reject",
                "confirm",
            ),
            *("1", "0", "99999999999", "-1", "up", "list", "on", "all", "gpu", "host", "gpu-1"),
            *("since=3d", "since=x", "range=1h", 'metric=up{a="b"} > 0.5', "scope=", "service="),
            *("<@U0SRE>", "<@U0SRE|alex>", "<!channel>", "<http://x.example|x>", "“a b”", "'", '"'),
            *("—range 2h", "gpu=0", "gpu={", "lead", "accept", "show", "INC-1：", "&amp;", "```"),
        ]
    ),
    st.text(max_size=30),
)
LINES = st.tuples(
    st.one_of(st.sampled_from(WORDS), st.text(max_size=12)), st.lists(PIECES, max_size=6)
).map(lambda parts: " ".join([parts[0], *parts[1]]))

# Half of a character pair is in it too: JSON can carry one.
SAID = st.one_of(
    st.text(st.one_of(st.characters(), st.sampled_from("<>&*_~`|!@#\n")), max_size=120),
    LINES.map(lambda line: f"<@U0RCABOT> {line}"),
    st.just("LONG"),
)
EMOJI = ("pushpin", "bulb", "scales", "hammer_and_wrench", "ballot_box_with_check", "eyes", "")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), SAID),
        st.tuples(st.just("mention"), SAID),
        st.tuples(st.just("command"), LINES),
        st.tuples(st.just("edit"), SAID),
        st.tuples(st.just("delete"), st.just("")),
        st.tuples(st.just("react"), st.sampled_from(EMOJI)),
        st.tuples(st.just("unreact"), st.sampled_from(EMOJI)),
        st.tuples(st.just("again"), st.just("")),
    ),
    min_size=2,
    max_size=12,
)

RESOLVE = ("resolve", *(word for word, name in CHINESE.items() if name == "resolve"))

_COUNT = itertools.count(1)


class _History:
    """One thread history as it is delivered, and what has to hold of it afterwards."""

    def __init__(self, stage: Stage, thread: str) -> None:
        self._stage = stage
        self._thread = thread
        self._last: dict[str, Any] | None = None
        self.said: dict[str, str] = {}
        self.deleted: set[str] = set()

    async def step(self, what: str, text: str) -> None:
        """Delivers one step; the acknowledgement must come, with nothing in it."""
        if what == "command":
            response = await post(self._stage, urlencode(_form(text)), form=True)
        else:
            event = self._event(what, text)
            if event is None:
                return
            self._last = event
            raw = json.dumps(self._stage.event(event, f"EvF{next(_COUNT)}"))
            response = await post(self._stage, raw)
        assert response.status_code == 200, (what, text)
        assert response.text == ""

    def _event(self, what: str, text: str) -> dict[str, Any] | None:
        # More than one message takes; spelled out here, since examples of that size cannot be printed.
        text = "x" * 13_000 if text == "LONG" else text
        ts = f"{1_772_600_000 + next(_COUNT)}.000100"
        base = {"channel": CHANNEL, "event_ts": ts, "channel_type": "channel"}
        user = {"user": "U0SRE"}
        target = next(reversed(self.said), "1772500000.000900")
        match what:
            case "say" | "mention":
                self.said[ts] = text
                kind = "message" if what == "say" else "app_mention"
                return {
                    "type": kind,
                    "text": text,
                    "ts": ts,
                    "thread_ts": self._thread,
                    **base,
                    **user,
                }
            case "edit":
                message = {"type": "message", "text": text, "ts": target, **user}
                message |= {"thread_ts": self._thread, "edited": {"user": "U0SRE", "ts": ts}}
                changed = {"type": "message", "subtype": "message_changed", "message": message}
                return {**changed, "ts": ts, **base}
            case "delete":
                self.deleted.add(target)
                deleted = {"type": "message", "subtype": "message_deleted", "deleted_ts": target}
                return {**deleted, "ts": ts, **base}
            case "react" | "unreact":
                kind = "reaction_added" if what == "react" else "reaction_removed"
                item = {"type": "message", "channel": CHANNEL, "ts": target}
                return {"type": kind, "reaction": text, "item": item, "event_ts": ts, **user}
            case _:
                return self._last


def _form(text: str) -> dict[str, str]:
    # A form cannot carry half of a character pair; Slack's clients send none either.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return {
        "command": "/rca",
        "text": whole,
        "user_id": "U0SRE",
        "channel_id": CHANNEL,
        "team_id": "T0LOCAL",
        "trigger_id": f"{next(_COUNT)}.1.1",
        "is_enterprise_install": "false",
    }


async def _no_refusal(stage: Stage) -> None:
    """Nothing that the bot sent was refused, and nothing that it took failed for good."""
    after = getattr(stage, "looked_at", 0)
    for entry in (await stage.client.get("traffic", after=str(after)))["traffic"]:
        stage.looked_at = entry["seq"]  # type: ignore[attr-defined]
        if entry["direction"] != "from_app" or not isinstance(entry["answer"], dict):
            continue
        error = entry["answer"].get("error")
        # A reaction may stand on a message that nobody ever wrote.
        assert error in (None, "thread_not_found", "message_not_found"), entry
    assert await stage.store.text.lrange("rca:parked:inbound", 0, -1) == []


@pytest.fixture
async def running(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A bot with one incident; Slack's pace of a channel is not what is looked at here."""
    monkeypatch.setattr(bot.slack.poster, "PAUSE_SECONDS", 0.0)
    await stage.start()
    await stage.calm()
    return stage


# A history that fails is printed whole, however long it is.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@HISTORIES
@given(steps=STEPS)
async def test_any_history_is_acknowledged_recorded_and_answered(
    running: Stage, steps: list[tuple[str, str]]
) -> None:
    history = _History(running, (await running.incident()).thread_ts or "")
    for what, text in steps:
        await history.step(what, text)
    await running.calm()
    await _no_refusal(running)
    entries = await running.entries()
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    for ts, text in history.said.items():
        own = [e for e in entries if e.kind is EntryKind.MESSAGE and e.data.get("ts") == ts]
        # The reason of a resolve is an entry of its own beside the message that gave it.
        assert len(own) <= (2 if any(word in text for word in RESOLVE) else 1)
        if ts in history.deleted:
            assert all(e.is_withheld for e in entries if e.data.get("ts") == ts)
