"""The incident played to its end as a responder would, decisions included; nothing of the answer is known to it."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bot.demo.evening import Onset, milliseconds, wait_for_symptom
from bot.demo.monitoring import P99_QUERY, THRESHOLD_SECONDS
from bot.demo.programs import CHANNEL
from bot.demo.remedies import remedy_for
from bot.demo.responder import Responder
from bot.demo.service import SERVICE
from bot.demo.settings_files import NODE
from bot.demo.stack import DemoStack
from bot.domain.instant import to_rfc3339
from bot.errors import BotError, DeliveryError, Reason
from bot.workspace.client import SeenMessage, WorkspaceClient

_ALERT_SECONDS = 60.0
_RECOVERY_SECONDS = 45.0
_AFTER_FIX_SECONDS = 20.0
_POLL_SECONDS = 1.0
_EXPORT_SECONDS = 180.0
_FORMATS = ("md", "html", "pdf", "json")
_RESPONDER = "U0SRE"
_BOT = "rca-bot"
_NOT_ESTABLISHED = "not_established"
_INCIDENT = re.compile(r"INC-\d+")


class Playthrough:
    """One run from the alert to the exported report."""

    def __init__(self, stack: DemoStack, say: Callable[[str], None]) -> None:
        self._stack = stack
        self._say = say

    async def play(self) -> list[Path]:
        """Plays it; gives the paths of the four reports.

        Raises:
            BotError: some step did not come to its end; the message says which.
        """
        onset = await wait_for_symptom(self._stack, self._say)
        async with WorkspaceClient(self._stack.page_url) as workspace:
            responder = await self._join(workspace, onset)
            await self._state_symptom(responder, onset)
            await responder.go_on(1)
            self._say("step 2: what metrics, logs, traces, events and probes say")
            await responder.go_on(2)
            await self._read_ranking(responder)
            await responder.go_on(3)
            cause = await self._test_and_confirm(responder)
            await self._fix_and_review(responder, cause, onset)
        return await self._export(responder.incident)

    async def _join(self, workspace: WorkspaceClient, onset: Onset) -> Responder:
        """Finds the incident that the alert opened; without an alert, a person opens one."""
        person = workspace.person(_RESPONDER)
        if not self._stack.fault.raises_alert:
            title = f'sev3 "Is {SERVICE} slow tonight? {onset.in_words()}" service={SERVICE}'
            await person.command(CHANNEL, f"/rca start {title}")
        anchor = await person.wait_for(
            _is_anchor,
            _ALERT_SECONDS,
            channel=CHANNEL,
        )
        found = _INCIDENT.search(anchor.all_text)
        incident = found[0] if found else ""
        self._say(f"{incident} is open")
        return Responder(
            workspace,
            _RESPONDER,
            incident=incident,
            channel=CHANNEL,
            thread_ts=anchor.thread_ts or anchor.ts,
            read_report=self._report,
        )

    async def _state_symptom(self, responder: Responder, onset: Onset) -> None:
        self._say(f"step 1: {onset.in_words()}")
        prompt = await responder.wait_for_step(1)
        # What the bot found by itself is there first; it also proposes whom this concerns.
        await responder.wait_report("the first ranking", lambda r: bool(r["hypotheses"]))
        await responder.fill_in(
            "rca.symptom",
            prompt,
            "rca_symptom",
            {
                "text": onset.in_words(),
                "scope": f"node {NODE}, every user of {SERVICE}",
                "since": to_rfc3339(onset.since.replace(microsecond=0)),
                "metric": P99_QUERY,
            },
        )
        await responder.wait_report("a ranking that knows the symptom", _is_ranked_since_symptom)

    async def _read_ranking(self, responder: Responder) -> None:
        report = await responder.wait_report("the ranking", lambda r: bool(r["hypotheses"]))
        for place, item in enumerate(report["hypotheses"][:3], 1):
            self._say(f"step 3: {place}. {item['cause']} {item['probability']:.0%}")

    async def _test_and_confirm(self, responder: Responder) -> str:
        """Runs the test that the bot proposes for its first hypothesis, and confirms that if it stands."""
        prompt = await responder.wait_for_step(4)
        if prompt.button("rca.probe.run") is None:
            # The first place is "not established": what is second is tested, so as not to rest on silence.
            prompt, _ = await responder.find_button("rca.probe.run")
        await responder.press("rca.probe.run", prompt)
        report = await responder.wait_report("the test's result", _has_result, 60.0)
        test = report["experiments"][-1]
        self._say(f"step 4: {test['probe'] or 'query'}: {test['verdict']}")
        await responder.go_on(4)
        prompt = await responder.wait_for_step(5)
        await responder.press("rca.hypothesis.confirm", prompt)
        report = await responder.wait_report("the confirmed cause", lambda r: bool(_confirmed(r)))
        cause = _confirmed(report)
        self._say(f"step 5: root cause {cause}")
        await responder.go_on(5)
        return cause

    async def _fix_and_review(self, responder: Responder, cause: str, onset: Onset) -> None:
        prompt = await responder.wait_for_step(6)
        is_well = (onset.worst or 0.0) < THRESHOLD_SECONDS
        if cause == _NOT_ESTABLISHED and not is_well:
            raise BotError(
                f"P99 is {milliseconds(onset.worst)} and no cause was established; run it again on an idle machine",
                reason=Reason.CONFLICT,
            )
        if cause == _NOT_ESTABLISHED:
            done = f"no change: P99 is {milliseconds(onset.worst)}, within its objective"
        else:
            done = await self._apply_fix(cause)
        self._say(f"step 6: {done}")
        await responder.fill_in("rca.fix", prompt, "rca_fix", {"text": done})
        if cause != _NOT_ESTABLISHED:
            await self._wait_for_recovery()
            await self._verify(responder)
        if cause != _NOT_ESTABLISHED:
            # Where nothing was established, there is nothing that a check would have found.
            await responder.press("rca.checklist.show", prompt)
            await self._decide_checklist(responder)
        await responder.press("rca.export", prompt)
        await responder.wait_report(
            "the compiled report", lambda r: _has_entry(r, "report"), _EXPORT_SECONDS
        )
        reason = (
            "nothing was established, and nothing is wrong" if cause == _NOT_ESTABLISHED else ""
        )
        await responder.say(f"@rca resolve {reason}".strip())
        await responder.wait_report(
            "the end of the incident", lambda r: r["incident"]["status"] == "resolved"
        )
        self._say(f"{responder.incident} is resolved")

    async def _apply_fix(self, cause: str) -> str:
        remedy = remedy_for(cause)
        if remedy is None:
            raise BotError(
                f"{cause} was confirmed, and nothing on this node fits it; the diagnosis is wrong",
                reason=Reason.CONFLICT,
            )
        await self._stack.apply(remedy)
        return remedy.text

    async def _wait_for_recovery(self) -> None:
        """Waits until P99 is back, and then until there is enough of it to compare with."""
        deadline = time.monotonic() + _RECOVERY_SECONDS
        p99: float | None = None
        while time.monotonic() < deadline:
            p99 = await self._stack.query(P99_QUERY)
            if p99 is not None and p99 < THRESHOLD_SECONDS:
                break
            await asyncio.sleep(_POLL_SECONDS)
        else:
            raise BotError(
                f"P99 is still {milliseconds(p99)} after the fix; the diagnosis was wrong",
                reason=Reason.CONFLICT,
            )
        await asyncio.sleep(_AFTER_FIX_SECONDS)
        self._say(f"P99 is back at {milliseconds(await self._stack.query(P99_QUERY))}")

    async def _verify(self, responder: Responder) -> None:
        for _ in range(3):
            await responder.press("rca.verify")
            try:
                await responder.wait_report(
                    "the verified fix", lambda r: bool((r["fix"] or {}).get("verified")), 15.0
                )
            except DeliveryError:
                continue
            return
        raise DeliveryError("the bot does not see that the symptom is gone", reason=Reason.CONFLICT)

    async def _decide_checklist(self, responder: Responder) -> None:
        """Accepts every proposed change."""
        report = await responder.wait_report(
            "the checklist proposal", lambda r: bool(r["checklist_changes"])
        )
        for number in range(len(report["checklist_changes"])):
            await responder.say(f"@rca checklist accept {number + 1}")
        await responder.wait_report(
            "the decided checklist",
            lambda r: all(item["status"] != "proposed" for item in r["checklist_changes"]),
        )
        self._say(f"accepted {len(report['checklist_changes'])} checklist change(s)")

    async def _report(self, incident: str) -> dict[str, Any]:
        answer = await self._stack.http.get(
            f"{self._stack.bot_url}/incidents/{incident}/report.json",
            headers={"Authorization": f"Bearer {self._stack.tokens.read}"},
        )
        return dict(answer.raise_for_status().json())

    async def _export(self, incident: str) -> list[Path]:
        """Writes the reports by the command line and looks whether all are there."""
        out = self._stack.files.exports
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot.cli", "export", incident,
            "--format", ",".join(_FORMATS), "--out", str(out),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._stack.environment_for_bot(),
        )  # fmt: skip
        try:
            async with asyncio.timeout(_EXPORT_SECONDS):
                _, stderr = await process.communicate()
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise BotError(
                f"the export of {incident} took too long", reason=Reason.TIMEOUT
            ) from error
        paths = [out / f"{incident}.{suffix}" for suffix in _FORMATS]
        missing = [path for path in paths if not path.is_file() or path.stat().st_size == 0]
        if process.returncode != 0 or missing:
            said = " ".join(stderr.decode(errors="replace").split())[-300:]
            raise BotError(f"the export of {incident} is not complete: {said or missing[0]}")
        return paths


def _is_anchor(message: SeenMessage) -> bool:
    """The card of an incident in the channel itself, not what the bot whispers to the person who opened it."""
    return (
        message.only_for is None
        and not message.is_reply
        and bool(message.buttons)
        and bool(_INCIDENT.search(message.all_text))
    )


def _has_result(report: dict[str, Any]) -> bool:
    return bool(report["experiments"]) and report["experiments"][-1]["verdict"] is not None


def _has_entry(report: dict[str, Any], kind: str) -> bool:
    return any(entry["kind"] == kind for entry in report["timeline"])


def _confirmed(report: dict[str, Any]) -> str:
    """The cause that was confirmed, else empty; the report itself names none until then."""
    found = [item["cause"] for item in report["hypotheses"] if item["status"] == "confirmed"]
    return str(found[0]) if found else ""


def _is_ranked_since_symptom(report: dict[str, Any]) -> bool:
    """Whether the engine ranked the causes after a person had said what is wrong."""
    said = [e["seq"] for e in report["timeline"] if e["kind"] == "symptom" and e["author"] != _BOT]
    ranked = [e["seq"] for e in report["timeline"] if e["kind"] == "hypothesis"]
    return bool(said) and bool(ranked) and max(ranked) > max(said)
