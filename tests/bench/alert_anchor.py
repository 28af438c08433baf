"""One alert until its anchor is in the channel, durable first, against Alertmanager's own Slack receiver in the same run."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import yaml

from bot.workspace.client import WorkspaceClient
from bot.workspace.config import BOT_TOKEN
from tests.scenarios.alert_load import body
from tests.scenarios.rig import CHANNEL, TOKEN, Deployment, free_port, until

ALERTS = 10
# Under ten new groups a minute, so that no alert is part of a storm; a channel's pace has passed by then, too.
APART_SECONDS = 6.5


def receiver(rig: Deployment) -> dict[str, object]:
    """Alertmanager's configuration: every alert at once to the same channel of the same workspace."""
    return {
        "route": {
            "receiver": "slack",
            "group_by": ["alertname", "id"],
            "group_wait": "0s",
            "group_interval": "5m",
            "repeat_interval": "4h",
        },
        "receivers": [
            {
                "name": "slack",
                "slack_configs": [
                    {
                        "api_url": f"{rig.workspace_url}/api/chat.postMessage",
                        "http_config": {
                            "authorization": {"type": "Bearer", "credentials": BOT_TOKEN}
                        },
                        "channel": CHANNEL,
                        "send_resolved": False,
                        "title": "{{ .CommonLabels.alertname }}",
                        "text": "{{ .CommonLabels.id }}",
                    }
                ],
            }
        ],
    }


async def start_alertmanager(rig: Deployment) -> str:
    """The real one, on a free port; gives its address."""
    port = free_port()
    config = rig.root / "alertmanager.yml"
    config.write_text(yaml.safe_dump(receiver(rig)))
    rig.spawn(
        "alertmanager",
        "prometheus-alertmanager",
        f"--config.file={config}",
        f"--storage.path={rig.root / 'am'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=error",
    )
    url = f"http://127.0.0.1:{port}"

    async def up() -> bool:
        return (await rig.http.get(f"{url}/-/ready")).status_code == 200

    await until(up, "Alertmanager is up")
    return url


async def run() -> list[str]:
    """Interleaved: the machine's noise falls on both."""
    with tempfile.TemporaryDirectory() as root:
        rig = Deployment(Path(root))
        try:
            await rig.start_redis()
            await rig.start_workspace()
            await rig.start_bot()
            alertmanager = await start_alertmanager(rig)
            async with WorkspaceClient(rig.workspace_url) as workspace:
                ours, theirs = await _measure(rig, alertmanager, workspace)
        finally:
            await rig.close()
    mine, peer = statistics.median(ours), statistics.median(theirs)
    return [
        f"one alert -> anchor p50: {mine:.1f} ms durable (AOF, fsync always), Alertmanager's own "
        f"Slack receiver {peer:.1f} ms in the same run: {mine / peer:.1f} of it (goal: at most 4); "
        f"worst {max(ours):.0f} and {max(theirs):.0f} ms, n={len(ours)} and {len(theirs)}"
    ]


async def _measure(
    rig: Deployment, alertmanager: str, workspace: WorkspaceClient
) -> tuple[list[float], list[float]]:
    async def by_bot(name: str) -> None:
        await rig.http.post(
            f"{rig.bot_url}/webhooks/alertmanager",
            json=body(name, [int(name[1:])], service=""),
            headers=TOKEN,
        )

    async def by_alertmanager(name: str) -> None:
        alert = {
            "labels": {"alertname": "GpuXidError", "id": name, "severity": "page"},
            "annotations": {"summary": f"XID 79 in {name}"},
        }
        await rig.http.post(f"{alertmanager}/api/v2/alerts", json=[alert])

    async def timed(post: Callable[[str], Awaitable[None]], name: str) -> float:
        began = time.time()
        await post(name)
        seen = await workspace.wait_for(
            lambda m: m.all_text.rstrip().endswith(name) or f"{name}\n" in m.all_text,
            30,
            channel=CHANNEL,
        )
        return (float(seen.ts) - began) * 1000

    ours: list[float] = []
    theirs: list[float] = []
    for number in range(ALERTS):
        ours.append(await timed(by_bot, f"b{number}"))
        await asyncio.sleep(APART_SECONDS / 2)
        theirs.append(await timed(by_alertmanager, f"a{number}"))
        await asyncio.sleep(APART_SECONDS / 2)
    # The first of each opens connections and compiles what the others reuse.
    return ours[1:], theirs[1:]
