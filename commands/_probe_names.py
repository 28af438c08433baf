"""The probes by family: what `gpu`, `host` and `service` stand for, and what a run costs.

The names are the wire's and fixed; a test compares this table with the probes that the agent carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

FAMILIES = ("gpu", "host", "service")
CHEAP, MODERATE, HEAVY = "cheap", "moderate", "heavy"


@dataclass(frozen=True, slots=True)
class Known:
    """One probe: its family, its cost, and whether it must be told a service."""

    family: str
    cost: str
    needs_service: bool = False


PROBES: Mapping[str, Known] = MappingProxyType(
    {
        "gpu_state": Known("gpu", CHEAP),
        "gpu_errors": Known("gpu", CHEAP),
        "gpu_link": Known("gpu", CHEAP),
        "gpu_processes": Known("gpu", CHEAP),
        "gpu_allocator": Known("gpu", CHEAP, needs_service=True),
        "host_cpu": Known("host", CHEAP),
        "host_memory": Known("host", CHEAP),
        "host_disk": Known("host", CHEAP),
        "host_network": Known("host", CHEAP),
        "kernel_log": Known("host", CHEAP),
        "time_sync": Known("host", CHEAP),
        "process_memory": Known("service", CHEAP, needs_service=True),
        "service_sockets": Known("service", CHEAP, needs_service=True),
        "process_threads": Known("service", CHEAP, needs_service=True),
        "process_stacks": Known("service", MODERATE, needs_service=True),
        "service_config": Known("service", CHEAP, needs_service=True),
        "service_metrics": Known("service", CHEAP, needs_service=True),
        "model_artifact": Known("service", CHEAP, needs_service=True),
        "golden_set": Known("service", HEAVY, needs_service=True),
        "log_health": Known("service", CHEAP, needs_service=True),
        "trace_health": Known("service", CHEAP, needs_service=True),
        "burst_sample": Known("service", MODERATE),
        "dependency_check": Known("service", MODERATE, needs_service=True),
        "h2d_bandwidth": Known("gpu", HEAVY),
        "profile": Known("service", HEAVY, needs_service=True),
    }
)


def of_family(family: str) -> tuple[str, ...]:
    """All cheap probes of a family."""
    return tuple(
        name for name, known in PROBES.items() if known.family == family and known.cost == CHEAP
    )
