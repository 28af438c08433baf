"""Usual levels of a made-up inference service at rest, by signal; what an exercise deviates from."""

from __future__ import annotations

from collections.abc import Mapping

from bot.cause import Movement, Signal

STEADY = frozenset({"process.start", "targets.up", "engine.loads", "gpu.xid"})
"""Signals without noise: moments, states and codes."""

LEVELS: Mapping[str, float] = {
    "allocator.allocated": 4e10,
    "allocator.retries": 0.0,
    "allocator.unused": 3e9,
    "allocator.unused_share": 0.07,
    "disk.free": 4e11,
    "disk.latency": 0.003,
    "disk.read_latency": 0.002,
    "disk.written": 2e6,
    "engine.batch": 6.0,
    "engine.busy_share": 0.5,
    "engine.cache": 0.45,
    "engine.failures": 0.0,
    "engine.loads": 20.0,
    "engine.preemptions": 0.0,
    "engine.progress": 50.0,
    "engine.running": 6.0,
    "engine.tokens_per_request": 200.0,
    "engine.waiting": 0.5,
    "errors.ratio": 0.001,
    "errors.timeouts": 0.0,
    "gpu.busy": 60.0,
    "gpu.clock": 1_700.0,
    "gpu.link_in": 2e9,
    "gpu.memory": 60_000.0,
    "gpu.memory_free": 20_000.0,
    "gpu.power": 380.0,
    "gpu.replays": 0.0,
    "gpu.temperature": 60.0,
    "gpu.tensor": 0.4,
    "gpu.xid": 0.0,
    "host.blocked": 0.2,
    "host.cpu_idle": 40.0,
    "host.cpu_neighbour": 2.0,
    "host.cpu_pressure": 0.01,
    "host.cpu_steal": 0.001,
    "host.cpu_throttled": 0.0,
    "host.io_pressure": 0.003,
    "host.load": 8.0,
    "host.major_faults": 1.0,
    "host.memory_available": 2e11,
    "host.memory_pressure": 0.0005,
    "host.oom_kills": 0.0,
    "host.shared_memory_free": 8e9,
    "host.switches": 50_000.0,
    "input.cut_off": 0.02,
    "input.length": 400.0,
    "input.prefix_hits": 0.4,
    "latency.client": 0.08,
    "latency.first_token": 0.06,
    "latency.server": 0.07,
    "latency.tail": 0.15,
    "load.inflight": 5.0,
    "load.refused": 0.0,
    "load.requests": 50.0,
    "logs.bytes": 2_000.0,
    "logs.bytes_others": 500.0,
    "logs.lines": 60.0,
    "logs.shipped": 60.0,
    "net.drops": 0.0,
    "net.retransmits": 0.0005,
    "net.syn_retransmits": 0.01,
    "net.timeouts": 0.05,
    "peer.errors": 0.0,
    "peer.latency": 0.01,
    "phase.compute": 0.04,
    "phase.frontend": 0.01,
    "phase.h2d": 0.002,
    "phase.prefill": 0.02,
    "phase.queue": 0.004,
    "pinned.allocations": 0.02,
    "pinned.pool": 0.4,
    "pinned.seconds": 0.0005,
    "process.cpu": 8.0,
    "process.files": 200.0,
    "process.one_core": 0.3,
    "process.resident": 2e10,
    "process.start": 1.79e9,
    "quality.ratio": 0.95,
    "spans.failed": 0.0,
    "spans.received": 200.0,
    "targets.up": 1.0,
    "throughput.answers": 50.0,
    "trace.compute": 0.04,
    "trace.frontend": 0.01,
    "trace.h2d": 0.002,
    "trace.outside": 0.004,
    "trace.peer": 0.01,
    "trace.queue": 0.004,
    "writes.others": 1e6,
    "writes.service": 1e6,
}
"""In the signal's unit. Basis: judgement; a service of fifty requests a second on one GPU node."""


def level_of(signal: Signal) -> float:
    """The usual level; one that is not listed (a team's own signal) is well above its floor where it may fall."""
    known = LEVELS.get(signal.name)
    if known is not None:
        return known
    return 10 * max(signal.floor, 1.0) if signal.direction is Movement.DOWN else signal.floor
