"""The workspace as it is served, with patience: how fast a busy machine acknowledges is not what scenarios are about.

`patient_workspace.py PORT BOT_URL WEBHOOK_TOKEN [--rate-limits]`
"""

import asyncio
import sys

from bot.workspace.config import WorkspaceConfig
from bot.workspace.server import serve
from tests.waiting import PATIENCE_SECONDS


def main() -> None:
    port, bot_url, webhook_token, *options = sys.argv[1:]
    config = WorkspaceConfig(
        port=int(port),
        bot_url=bot_url,
        webhook_token=webhook_token,
        is_rate_limited="--rate-limits" in options,
        ack_seconds=PATIENCE_SECONDS,
        trigger_seconds=PATIENCE_SECONDS,
    )
    asyncio.run(serve(config))


if __name__ == "__main__":
    main()
