"""The probes by family: what `gpu`, `host` and `service` stand for, and what a run costs.

The names are the wire's and fixed; a test compares this table with the probes that the agent carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

FAMILIES = ("gpu", "host", "service")
CHEAP, MODERATE, HEAVY = "cheap", "moderate", "heavy"


@dataclass(frozen=True, slots=True)
class Known:
    """One probe: its family, its cost, the arguments it takes, whether it must be told a service, and what else."""

    family: str
    cost: str
    needs_service: bool = False
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


PROBES: Mapping[str, Known] = MappingProxyType(
    {
        "gpu_state": Known("gpu", CHEAP, takes=("gpus",)),
        "gpu_errors": Known("gpu", CHEAP, takes=("gpus",)),
        "gpu_link": Known("gpu", CHEAP, takes=("gpus",)),
        "gpu_processes": Known("gpu", CHEAP, takes=("gpus",)),
        "gpu_allocator": Known("gpu", CHEAP, needs_service=True, takes=("service", "window_s")),
        "host_cpu": Known("host", CHEAP, takes=("window_s",)),
        "host_memory": Known("host", CHEAP),
        "host_disk": Known("host", CHEAP, takes=("window_s",)),
        "host_network": Known("host", CHEAP, takes=("window_s",)),
        "kernel_log": Known("host", CHEAP, takes=("since_s",)),
        "time_sync": Known("host", CHEAP),
        "process_memory": Known(
            "service", CHEAP, needs_service=True, takes=("service", "window_s")
        ),
        "service_sockets": Known("service", CHEAP, needs_service=True, takes=("service",)),
        "process_threads": Known(
            "service", CHEAP, needs_service=True, takes=("service", "samples")
        ),
        "process_stacks": Known(
            "service", MODERATE, needs_service=True, takes=("service", "samples")
        ),
        "service_config": Known("service", CHEAP, needs_service=True, takes=("service",)),
        "service_metrics": Known(
            "service", CHEAP, needs_service=True, takes=("service", "window_s")
        ),
        "model_artifact": Known("service", CHEAP, needs_service=True, takes=("service",)),
        "golden_set": Known("service", HEAVY, needs_service=True, takes=("service",)),
        "log_health": Known("service", CHEAP, needs_service=True, takes=("service", "window_s")),
        "trace_health": Known("service", CHEAP, needs_service=True, takes=("service",)),
        "burst_sample": Known("service", MODERATE, takes=("service", "seconds")),
        "dependency_check": Known("service", MODERATE, needs_service=True, takes=("service",)),
        "h2d_bandwidth": Known("gpu", HEAVY, takes=("gpu", "bytes"), needs=("gpu",)),
        "profile": Known(
            "service",
            HEAVY,
            needs_service=True,
            takes=("service", "seconds", "tool", "native"),
            needs=("seconds", "tool"),
        ),
    }
)


def of_family(family: str) -> tuple[str, ...]:
    """All cheap probes of a family."""
    return tuple(
        name for name, known in PROBES.items() if known.family == family and known.cost == CHEAP
    )


def args_of(names: Sequence[str], args: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each probe's own part of what was typed for all of them: a node refuses an argument that a probe does not take.

    A word that none of them takes is sent to all, so that the answer names it.

    >>> args_of(("gpu_state", "gpu_allocator"), {"service": "x"})
    {'gpu_state': {}, 'gpu_allocator': {'service': 'x'}}
    """
    taken = {word for name in names for word in PROBES[name].takes}
    return {
        name: {
            word: value
            for word, value in args.items()
            if word in PROBES[name].takes or word not in taken
        }
        for name in names
    }
