"""A burst of distinct alerts with the channel limiter on: each durable and listed, one storm anchor, one pass a node."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

from bot.workspace.client import WorkspaceClient
from tests.jobs.counting_agent import CountingAgent
from tests.scenarios.alert_load import distinct, fire, incidents, percentile
from tests.scenarios.rig import CHANNEL, Deployment

ALERTS = 2_000


async def run() -> list[str]:
    """Every number is of one run against real processes."""
    with tempfile.TemporaryDirectory() as root, CountingAgent() as agent:
        folder = Path(root)
        rig = Deployment(folder, **agent.environment(folder))
        try:
            await rig.start_redis()
            await rig.start_workspace("--rate-limits")
            await rig.start_bot()
            async with WorkspaceClient(rig.workspace_url) as workspace:
                began = time.perf_counter()
                answers = await fire(rig, [distinct(number) for number in range(ALERTS)])
                seconds = time.perf_counter() - began
                known = await incidents(rig)
                storm = await workspace.wait_for(
                    lambda m: "Alert storm" in m.all_text and not m.is_reply, 60, channel=CHANNEL
                )
                roots = [m for m in await workspace.messages(CHANNEL) if not m.is_reply]
                first = min(float(m.ts) for m in roots)
                accepted = {answer.incident for answer in answers if answer.status == 200}

                await workspace.wait_for(
                    lambda m: f"({ALERTS - 10} in this storm so far)" in m.all_text,
                    180,
                    channel=CHANNEL,
                    thread_ts=storm.ts,
                )
                listed = time.perf_counter() - began
                roots = [m for m in await workspace.messages(CHANNEL) if not m.is_reply]
                thread = "\n".join(
                    m.all_text for m in await workspace.messages(CHANNEL, thread_ts=storm.ts)
                )
                shown = accepted & set(re.findall(r"INC-\d+", thread))
        finally:
            await rig.close()
    times = [answer.milliseconds for answer in answers]
    return [
        f"{len(accepted)} of {ALERTS} distinct alerts answered 2xx, "
        f"{len(accepted - set(known))} of those missing from /incidents (goal: 0); "
        f"{ALERTS / seconds:.0f}/s durable, p50 {percentile(times, 0.5):.0f} ms, "
        f"p99 {percentile(times, 0.99):.0f} ms",
        f"messages in the channel: {len(roots)} (goal: at most 11); "
        f"{len(shown)} groups in the storm's thread after {listed:.0f} s; "
        f"its anchor {float(storm.ts) - first:.1f} s after the first card",
        f"most runs of one probe on one node: {agent.most} (goal: 1 for all incidents that opened "
        f"together), {sum(agent.asked.values())} in all",
    ]
