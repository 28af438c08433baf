"""PCIe and NVLink of every GPU: best values under load, error counters as deltas."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bot.device.field import FieldState, Unread
from bot.device.gpu import Gpu, each_gpu
from bot.device.nvml import NvmlLibrary

SAMPLES = 5
"""Our judgement: a generation counts only where the GPU was loaded at each of five looks over two seconds."""
LOADED_RATIO = 0.0
"""Any utilization above it counts as load for the PCIe generation."""
_REPLAYS_PER_LANE_MINUTE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
"""Source: derived from a bit error rate of 1e-12, as NVIDIA's DCGM policy does."""
_NVLINK_LINKS = 18
"""Source: nvml.h, NVML_NVLINK_MAX_LINKS."""
_NVLINK_ERRORS = {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3}
"""Source: nvml.h, nvmlNvLinkErrorCounter_t."""

Field = float | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLink:
    """One GPU's links.

    `best_loaded_generation` is the highest generation of the samples under load, None where it was idle at any of them:
    an idle GPU goes down to Gen1 by design, and takes a moment to come up again. `nvlink_errors` by kind is the growth in the window over all links.
    """

    index: int
    identity: Mapping[str, object]
    lost: str | None
    skipped: str | None
    refused: str | None
    width: Field
    max_width: Field
    generation: Field
    max_generation: Field
    best_loaded_generation: float | None
    loaded_samples: int
    replays: Field
    nvlink_active: int | Unread
    nvlink_errors: Mapping[str, int] | Unread
    seconds: float

    @property
    def replay_limit_per_minute(self) -> int | None:
        """What a healthy link of this width and generation may replay in a minute."""
        if isinstance(self.width, Unread) or isinstance(self.max_generation, Unread):
            return None
        rate = _REPLAYS_PER_LANE_MINUTE.get(int(self.max_generation))
        return None if rate is None else math.ceil(rate * self.width)


@dataclass(slots=True)
class _Track:
    gpu: Gpu
    replays_before: Field
    errors_before: Mapping[str, int] | Unread
    widths: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)
    width: Field = field(default_factory=lambda: Unread(FieldState.ERROR, "not read"))
    generation: Field = field(default_factory=lambda: Unread(FieldState.ERROR, "not read"))


def read_links(
    library: NvmlLibrary,
    wanted: tuple[int, ...] | None,
    window_seconds: float,
    *,
    mark: Callable[[str], None],
    skipped: Mapping[str, str],
    wait: Callable[[float], None],
    monotonic: Callable[[], float],
) -> tuple[GpuLink, ...]:
    """Five samples over the window.

    Raises:
        NvmlFailure: the driver does not even tell how many GPUs there are.
    """
    started = monotonic()
    tracks = [
        _Track(gpu, _replays(gpu), _nvlink_errors(gpu))
        for gpu in each_gpu(library, wanted, mark, skipped)
    ]
    for number in range(SAMPLES):
        if number:
            mark("window")
            wait(window_seconds / (SAMPLES - 1))
        for track in tracks:
            mark(f"gpu {track.gpu.index}" if track.gpu.skipped is None else "skipped")
            _sample(track)
    links: list[GpuLink] = []
    for track in tracks:
        mark(f"gpu {track.gpu.index}" if track.gpu.skipped is None else "skipped")
        links.append(_link(track, max(1e-6, monotonic() - started)))
    mark("judging")
    return tuple(links)


def _sample(track: _Track) -> None:
    gpu = track.gpu
    track.width = gpu.number("nvmlDeviceGetCurrPcieLinkWidth", low=1, high=32)
    track.generation = gpu.number("nvmlDeviceGetCurrPcieLinkGeneration", low=1, high=8)
    load = gpu.utilization()
    if not isinstance(track.width, Unread):
        track.widths.append(track.width)
    is_loaded = not isinstance(load, Unread) and load > LOADED_RATIO
    if is_loaded and not isinstance(track.generation, Unread):
        track.loaded.append(track.generation)


def _link(track: _Track, seconds: float) -> GpuLink:
    gpu = track.gpu
    return GpuLink(
        index=gpu.index,
        identity=gpu.identity,
        width=max(track.widths) if track.widths else track.width,
        max_width=gpu.number("nvmlDeviceGetMaxPcieLinkWidth", low=1, high=32),
        generation=track.generation,
        # Not the device's own maximum: the one of device and system together is what can be reached.
        max_generation=gpu.number("nvmlDeviceGetMaxPcieLinkGeneration", low=1, high=8),
        best_loaded_generation=max(track.loaded) if len(track.loaded) == SAMPLES else None,
        loaded_samples=len(track.loaded),
        replays=_grown(track.replays_before, _replays(gpu)),
        nvlink_active=_active_links(gpu),
        nvlink_errors=_errors_grown(track.errors_before, _nvlink_errors(gpu)),
        seconds=seconds,
        lost=gpu.lost,
        skipped=gpu.skipped,
        refused=gpu.refused,
    )


def _replays(gpu: Gpu) -> Field:
    return gpu.number("nvmlDeviceGetPcieReplayCounter", low=0, high=2**32 - 2)


def _active_links(gpu: Gpu) -> int | Unread:
    active = 0
    for link in range(_NVLINK_LINKS):
        state = gpu.number("nvmlDeviceGetNvLinkState", link, low=0, high=1)
        if isinstance(state, Unread):
            # A card without NVLink, or with fewer links: not supported is no link that is down.
            return _none_at(state, link) or active
        active += int(state)
    return active


def _nvlink_errors(gpu: Gpu) -> Mapping[str, int] | Unread:
    totals = dict.fromkeys(_NVLINK_ERRORS, 0)
    for link in range(_NVLINK_LINKS):
        for name, counter in _NVLINK_ERRORS.items():
            value = gpu.number("nvmlDeviceGetNvLinkErrorCounter", link, counter, low=0, high=2**62)
            if isinstance(value, Unread):
                return _none_at(value, link) or totals
            totals[name] += int(value)
    return totals


def _none_at(value: Unread, link: int) -> Unread | None:
    """Why nothing is told at all; None where the links before this one are simply all that there are."""
    is_end = value.detail.startswith("InvalidArgument")
    if is_end or value.state is FieldState.NOT_SUPPORTED:
        return Unread(FieldState.NOT_SUPPORTED, value.detail) if link == 0 else None
    return value


def _grown(before: Field, after: Field) -> Field:
    if isinstance(before, Unread):
        return before
    if isinstance(after, Unread):
        return after
    return max(0.0, after - before)


def _errors_grown(
    before: Mapping[str, int] | Unread, after: Mapping[str, int] | Unread
) -> Mapping[str, int] | Unread:
    if isinstance(before, Unread):
        return before
    if isinstance(after, Unread):
        return after
    return {name: max(0, value - before.get(name, 0)) for name, value in after.items()}
