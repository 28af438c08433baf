"""Allocator figures of a service under the names that inference servers give them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bot.device.exposition import Exposition
from bot.device.field import FieldState, Unread

_ALLOCATED = (
    "torch_cuda_memory_allocated_bytes",
    "pytorch_cuda_memory_allocated_bytes",
    "rca_allocator_device_allocated_bytes",
)
_RESERVED = (
    "torch_cuda_memory_reserved_bytes",
    "pytorch_cuda_memory_reserved_bytes",
    "rca_allocator_device_reserved_bytes",
)
_LIMIT = ("torch_cuda_memory_total_bytes", "rca_allocator_device_limit_bytes")
_SPLIT = (
    "torch_cuda_memory_inactive_split_bytes",
    "torch_cuda_inactive_split_bytes",
    "rca_allocator_device_inactive_split_bytes",
)
_RETRIES = ("torch_cuda_alloc_retries_total", "rca_allocator_device_retries_total")
_HOST_COUNT = ("torch_host_alloc_total", "rca_allocator_host_alloc_total")
_HOST_SECONDS = ("torch_host_alloc_seconds_total", "rca_allocator_host_alloc_seconds_total")
_HOST_MAX = ("torch_host_alloc_max_seconds", "rca_allocator_host_alloc_max_seconds")
_HOST_WAIT = ("rca_allocator_host_wait_seconds_total",)
_POOL_USED = ("nv_pinned_memory_pool_used_bytes", "rca_allocator_pinned_pool_used_bytes")
_POOL_TOTAL = ("nv_pinned_memory_pool_total_bytes", "rca_allocator_pinned_pool_total_bytes")
_REQUESTS = (
    "rca_allocator_requests_total",
    "nv_inference_request_success",
    "ts_inference_requests_total",
    "vllm:request_success_total",
    "tgi_request_success_total",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorMoment:
    """One scrape; None where the service does not tell. Counters count from the process's start."""

    allocated_bytes: float | None
    reserved_bytes: float | None
    limit_bytes: float | None
    inactive_split_bytes: float | None
    retries: float | None
    host_allocs: float | None
    host_alloc_seconds: float | None
    host_alloc_max_seconds: float | None
    host_wait_seconds: float | None
    pool_used_bytes: float | None
    pool_total_bytes: float | None
    requests: float | None

    @property
    def sides(self) -> str:
        """Which sides are told, in words; "" when none is."""
        names = (("device", self.has_device_side), ("host", self.has_host_side))
        return " and ".join(name for name, is_told in names if is_told)

    @property
    def has_device_side(self) -> bool:
        """True where both allocated and reserved memory are told."""
        return self.allocated_bytes is not None and self.reserved_bytes is not None

    @property
    def has_host_side(self) -> bool:
        """True where the pinned side is told, as a pool or as allocation counters."""
        return (self.pool_used_bytes is not None and bool(self.pool_total_bytes)) or (
            self.host_allocs is not None and self.host_alloc_seconds is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorChange:
    """What moved between two scrapes; None where it cannot be told.

    `mean_host_alloc_seconds` is the mean time of one pinned allocation in the window, waiting included.
    """

    host_allocs: float | None
    mean_host_alloc_seconds: float | None
    allocs_per_request: float | None
    retries: float | None


def allocator_moment(page: Exposition) -> AllocatorMoment:
    """Picks the allocator's series out of a page."""
    return AllocatorMoment(
        allocated_bytes=page.total(*_ALLOCATED),
        reserved_bytes=page.total(*_RESERVED),
        limit_bytes=page.total(*_LIMIT),
        inactive_split_bytes=page.total(*_SPLIT),
        retries=page.total(*_RETRIES),
        host_allocs=page.total(*_HOST_COUNT),
        host_alloc_seconds=page.total(*_HOST_SECONDS),
        host_alloc_max_seconds=page.total(*_HOST_MAX),
        host_wait_seconds=page.total(*_HOST_WAIT),
        pool_used_bytes=page.total(*_POOL_USED),
        pool_total_bytes=page.total(*_POOL_TOTAL),
        requests=page.total(*_REQUESTS),
    )


def allocator_change(before: AllocatorMoment, after: AllocatorMoment) -> AllocatorChange:
    """Deltas; a counter that fell back (the process restarted in between) is untold, not negative."""
    allocs = _grown(before.host_allocs, after.host_allocs)
    seconds = _grown(before.host_alloc_seconds, after.host_alloc_seconds)
    requests = _grown(before.requests, after.requests)
    return AllocatorChange(
        host_allocs=allocs,
        mean_host_alloc_seconds=seconds / allocs if allocs and seconds is not None else None,
        allocs_per_request=allocs / requests if allocs is not None and requests else None,
        retries=_grown(before.retries, after.retries),
    )


def told(values: AllocatorMoment | AllocatorChange, prefix: str = "") -> dict[str, object]:
    """Fields by name; one that the service does not tell is `not_supported`."""
    missing = Unread(FieldState.NOT_SUPPORTED, "the service does not tell")
    return {
        prefix + name: missing if value is None else value for name, value in asdict(values).items()
    }


def _grown(before: float | None, after: float | None) -> float | None:
    if before is None or after is None or after < before:
        return None
    return after - before
