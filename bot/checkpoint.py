"""Named points of the durable path, where a test can stop the process.

In production nothing is installed and `reached` does nothing. The crash tests install a hook that kills the process at
one of these names, so that each window between two durable steps is hit for certain and not by luck.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "webhook.received",
    "webhook.durable",
    "slack.received",
    "slack.durable",
    "job.claimed",
    "job.done",
    "post.before_send",
    "post.sent",
    "post.recorded",
    "evidence.collected",
    "evidence.recorded",
    "chart.drawn",
    "file.uploaded",
    "report.compiled",
    "delivery.packed",
    "delivery.sent",
    "delivery.done",
)

_hooks: list[Callable[[str], None]] = []


def install(hook: Callable[[str], None]) -> None:
    """Calls `hook` with the name of every point that is reached from now on."""
    _hooks.append(hook)


def reached(name: str) -> None:
    """Says that the process is at `name`, one of `POINTS`."""
    for hook in _hooks:
        hook(name)
