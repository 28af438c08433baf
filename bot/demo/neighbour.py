"""A neighbour that takes the CPU: `python -m bot.demo.neighbour --threads 8`, a re-indexing job gone wide.

It really computes, at the usual priority, in as many threads as it is told, and ends with its parent.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import threading

from bot.demo.prctl import name_process

NAME = "batch-reindex"
# Hashing a large chunk runs outside the interpreter lock, so the threads run side by side.
_CHUNK_BYTES = 1 << 20


def _index(parent: int) -> None:
    chunk = bytes(_CHUNK_BYTES)
    while os.getppid() == parent:
        hashlib.sha256(chunk).digest()


def main() -> None:
    """Entry point of `python -m bot.demo.neighbour`."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    name_process(NAME)
    parent = os.getppid()
    threads = [threading.Thread(target=_index, args=(parent,)) for _ in range(args.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
