"""The service's own memory allocator: fragmentation, a full device, slow pinned allocation."""

from __future__ import annotations

from bot.argument import SERVICE, Arguments, window_argument
from bot.device.allocator import (
    AllocatorChange,
    AllocatorMoment,
    allocator_change,
    allocator_moment,
    told,
)
from bot.device.exposition import scrape
from bot.domain.finding import Finding
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

FRAGMENTATION_RATIO = 0.2
"""Our judgement: more than a fifth of the reserve is not allocated."""
FULL_RATIO = 0.95
"""Our judgement, the same line as for device memory."""
SLOW_ALLOC_SECONDS = 0.001
"""Our judgement: a cached pinned block takes microseconds; stalls reported upstream reach 12 ms (vllm#37006)."""
POOL_RATIO = 0.95
"""Our judgement: a pinned pool this full makes Triton fall back to pageable memory."""
SCRAPE_TIMEOUT_SECONDS = 2.0
"""Our judgement: two scrapes and the window must fit the deadline; a slower page is a finding in itself."""


@describe(
    summary="Allocator statistics that a service exposes on its metrics page, device and pinned host side",
    cost=Cost.CHEAP,
    findings=(
        "gpu.fragmentation",
        "gpu.allocator_full",
        "gpu.host_alloc_slow",
        "gpu.allocator_ok",
    ),
    arguments=(SERVICE, window_argument(2.0)),
    needs=("[services.<name>] metrics with allocator series",),
    deadline_seconds=8.0,
)
def gpu_allocator(context: ProbeContext, arguments: Arguments) -> Reading:
    """Scrapes the page twice, `window_s` apart; counters are judged on what moved in between."""
    target = context.service(arguments.text("service"))
    sampled = context.sample_twice(
        lambda: allocator_moment(scrape(target.metrics_url, SCRAPE_TIMEOUT_SECONDS)),
        arguments.number("window_s"),
    )
    after = sampled.after
    if not after.sides:
        raise ProbeError(
            "the service exposes no allocator series on its metrics page; export allocator statistics",
            reason=Reason.UNSUPPORTED,
        )
    change = allocator_change(sampled.before, after)
    findings = _fragmentation(after) + _full(after) + _slow_alloc(after, change) + _pool(after)
    not_checked: tuple[str, ...] = ()
    if after.host_allocs is not None and change.host_allocs is None:
        not_checked = ("host allocation time: its counters restarted between the two samples",)
    if not findings and not not_checked:
        text = f"reserve close to allocated, no slow host allocation ({after.sides} side told)"
        findings.append(info("gpu.allocator_ok", text))
    return Reading(
        findings=tuple(findings),
        not_checked=not_checked,
        data={
            "window_s": sampled.seconds,
            **told(after),
            **told(change, "window_"),
        },
    )


def _fragmentation(moment: AllocatorMoment) -> list[Finding]:
    if moment.allocated_bytes is None or not moment.reserved_bytes:
        return []
    gap = moment.reserved_bytes - moment.allocated_bytes
    ratio = gap / moment.reserved_bytes
    # A small reserve is a service at rest; 1 GiB is our judgement of what hurts.
    if ratio <= FRAGMENTATION_RATIO or gap < 2**30:
        return []
    text = f"reserved - allocated = {gap / 2**30:.1f} GiB ({ratio:.0%} of reserved)"
    if moment.inactive_split_bytes is not None:
        text += f", inactive split blocks {moment.inactive_split_bytes / 2**30:.1f} GiB"
    return [
        critical(
            "gpu.fragmentation", text, value=ratio, unit="ratio", threshold=FRAGMENTATION_RATIO
        )
    ]


def _full(moment: AllocatorMoment) -> list[Finding]:
    if moment.allocated_bytes is None or not moment.limit_bytes:
        return []
    ratio = moment.allocated_bytes / moment.limit_bytes
    if ratio <= FULL_RATIO:
        return []
    text = (
        f"allocated {moment.allocated_bytes / 2**30:.1f} of {moment.limit_bytes / 2**30:.1f} GiB, "
        "reserve close to allocated"
    )
    return [critical("gpu.allocator_full", text, value=ratio, unit="ratio", threshold=FULL_RATIO)]


def _slow_alloc(moment: AllocatorMoment, change: AllocatorChange) -> list[Finding]:
    mean = change.mean_host_alloc_seconds
    if mean is None or mean <= SLOW_ALLOC_SECONDS:
        return []
    text = (
        f"{change.host_allocs:.0f} pinned host allocations in the window, mean {mean * 1000:.1f} ms"
    )
    if change.allocs_per_request is not None:
        text += f", {change.allocs_per_request:.2f} per request"
    if moment.host_alloc_max_seconds is not None:
        text += f", max {moment.host_alloc_max_seconds * 1000:.0f} ms"
    return [
        critical("gpu.host_alloc_slow", text, value=mean, unit="s", threshold=SLOW_ALLOC_SECONDS)
    ]


def _pool(moment: AllocatorMoment) -> list[Finding]:
    if moment.pool_used_bytes is None or not moment.pool_total_bytes:
        return []
    ratio = moment.pool_used_bytes / moment.pool_total_bytes
    if ratio <= POOL_RATIO:
        return []
    text = f"pinned pool {ratio:.0%} used; new requests may be served from pageable memory"
    return [warning("gpu.host_alloc_slow", text, value=ratio, unit="ratio", threshold=POOL_RATIO)]
