"""time_to_first_hypotheses: from `/rca start` to the ranked list in the thread, against the demo's live fault."""

import tempfile
import time
from pathlib import Path

from bot.demo.evening import wait_for_symptom
from bot.demo.faults import Fault
from bot.demo.programs import CHANNEL
from bot.demo.service import SERVICE
from bot.demo.stack import DemoStack
from bot.workspace.client import WorkspaceClient

GOAL_SECONDS = 10.0
RUNS = 3


async def run() -> list[str]:
    """Three incidents against one running fault; the slowest counts."""
    taken = []
    first = ""
    with tempfile.TemporaryDirectory() as root:
        async with DemoStack(Path(root), fault=Fault.PINNED) as stack:
            await wait_for_symptom(stack, lambda _: None)
            async with WorkspaceClient(stack.page_url) as workspace:
                lead = workspace.person("U0LEAD")
                for n in range(RUNS):
                    known = {m.ts for m in await workspace.messages(CHANNEL)}
                    began = time.monotonic()
                    await lead.command(CHANNEL, f"/rca start sev3 run {n} service={SERVICE}")
                    ranked = await workspace.wait_for(
                        lambda m, known=known: (
                            m.ts not in known and m.is_reply and "most likely first" in m.all_text
                        ),
                        60.0,
                        channel=CHANNEL,
                    )
                    taken.append(time.monotonic() - began)
                    first = ranked.all_text.splitlines()[1]
    worst = max(taken)
    verdict = "met" if worst <= GOAL_SECONDS else "MISSED"
    each = ", ".join(f"{seconds:.1f}" for seconds in taken)
    return [
        f"time_to_first_hypotheses: {each} s (n={RUNS}); worst {worst:.1f} s, "
        f"goal {GOAL_SECONDS:.0f} s: {verdict}; ranked first: {first}"
    ]
