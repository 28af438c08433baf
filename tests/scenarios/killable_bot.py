"""The bot as it is served, with a hook that kills it at a named point: `killable_bot.py [POINT [COUNT]]`."""

import asyncio
import os
import signal
import sys

from bot import checkpoint
from bot.serving import serve
from bot.settings import load_settings

LEASE_SECONDS = 2.0


def main() -> None:
    point = sys.argv[1] if len(sys.argv) > 1 else ""
    left = int(sys.argv[2]) if len(sys.argv) > 2 else 1

    def hook(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0:
                sys.stderr.write(f"killed at {name}\n")
                sys.stderr.flush()
                os.kill(os.getpid(), signal.SIGKILL)

    if point:
        if point not in checkpoint.POINTS:
            sys.exit(f"{point}: no such point")
        checkpoint.install(hook)
    asyncio.run(serve(load_settings(), lease_seconds=LEASE_SECONDS))


if __name__ == "__main__":  # a worker process imports this file anew
    main()
