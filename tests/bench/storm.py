"""A storm of 10,000 alerts in 200 groups: all durable, one channel message an incident at most, order and memory kept."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bot.workspace.client import WorkspaceClient
from tests.scenarios.alert_load import body, fire, in_order, incidents, resident_mib
from tests.scenarios.rig import CHANNEL, Deployment

GROUPS = 200
ALERTS = 50
STEPS = 6
SAMPLED = 20


def deliveries(step: int) -> list[dict[str, object]]:
    """One notification of each group: Alertmanager repeats what is on, the newcomers of this step at the end."""
    until_now = ALERTS * (step + 1) // STEPS
    return [
        body(f"g{group}", range(group * ALERTS, group * ALERTS + until_now))
        for group in range(GROUPS)
    ]


async def run() -> list[str]:
    """Every number is of one run against real processes."""
    memory: list[float] = []
    with tempfile.TemporaryDirectory() as root:
        rig = Deployment(Path(root))
        try:
            await rig.start_redis()
            await rig.start_workspace("--rate-limits")
            bot = await rig.start_bot()
            idle = resident_mib(bot.pid)
            began = time.perf_counter()
            named: dict[str, str] = {}
            refused = 0
            for steps in (range(2), range(2, 4), range(4, 6)):
                for step in steps:
                    answers = await fire(rig, deliveries(step))
                    refused += sum(answer.status != 200 for answer in answers)
                    named |= {f"g{n}": answer.incident for n, answer in enumerate(answers)}
                memory.append(resident_mib(bot.pid))
            seconds = time.perf_counter() - began
            known = await incidents(rig)
            wrong = [
                group
                for group in range(0, GROUPS, GROUPS // SAMPLED)
                if not in_order(
                    (await rig.report(named[f"g{group}"])).json(),
                    [f"XID 79 on node-{group * ALERTS + n}" for n in range(ALERTS)],
                )
            ]
            async with WorkspaceClient(rig.workspace_url) as workspace:
                roots = [m for m in await workspace.messages(CHANNEL) if not m.is_reply]
        finally:
            await rig.close()
    thirds = ", ".join(f"{mib:.0f}" for mib in memory)
    return [
        f"{GROUPS * ALERTS} alerts in {GROUPS} groups, {GROUPS * STEPS} notifications in "
        f"{seconds:.0f} s: {refused} refused, {len(set(named.values()) - set(known))} of "
        f"{len(set(named.values()))} incidents missing from /incidents (goal: 0 and 0)",
        f"messages in the channel: {len(roots)} (goal: at most one an incident); of {SAMPLED} "
        f"incidents {len(wrong)} have lost an alert or its order (goal: 0)",
        f"memory of the bot: {idle:.0f} MiB idle, {thirds} MiB at a third, two thirds and the end",
    ]
