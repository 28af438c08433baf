"""DCGM-exporter series of a GPU that is not there, labelled `standin="true"`.

Utilisation and link traffic follow the accelerator stand-in of the service; clock, temperature and power are the
figures of a healthy card. Source of the names: dcgm-exporter's default counters file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from bot.demo.accelerator import Accelerator

MODEL = "Stand-in GPU 80GB"
UUID = "GPU-00000000-0000-0000-0000-000000000000"
_STEADY = {
    "DCGM_FI_DEV_SM_CLOCK": 1980.0,
    "DCGM_FI_DEV_MEM_CLOCK": 2619.0,
    "DCGM_FI_DEV_GPU_TEMP": 58.0,
    "DCGM_FI_DEV_MEMORY_TEMP": 63.0,
    "DCGM_FI_DEV_POWER_USAGE": 310.0,
    "DCGM_FI_DEV_FB_USED": 6144.0,
    "DCGM_FI_DEV_FB_FREE": 75415.0,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0.0,
    "DCGM_FI_DEV_XID_ERRORS": 0.0,
}


class GpuSeries:
    """The body of `GET /gpu-metrics`; rates are over the time since the previous scrape."""

    def __init__(
        self, accelerator: Accelerator, *, hostname: str, monotonic: Callable[[], float]
    ) -> None:
        self._accelerator = accelerator
        self._monotonic = monotonic
        self._labels = {
            "gpu": "0", "UUID": UUID, "Hostname": hostname, "modelName": MODEL, "standin": "true",
        }  # fmt: skip
        self._registry = CollectorRegistry()
        for name, value in _STEADY.items():
            self._gauge(name).set(value)
        self._utilisation = self._gauge("DCGM_FI_DEV_GPU_UTIL")
        self._active = self._gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE")
        self._received = self._gauge("DCGM_FI_PROF_PCIE_RX_BYTES")
        self._lock = threading.Lock()
        self._previous = (monotonic(), 0.0, 0)

    def exposition(self) -> bytes:
        """Prometheus text format."""
        now = (
            self._monotonic(), self._accelerator.busy_seconds, self._accelerator.copied_bytes,
        )  # fmt: skip
        with self._lock:
            before, self._previous = self._previous, now
        seconds = max(now[0] - before[0], 1e-3)
        busy = min((now[1] - before[1]) / seconds, 1.0)
        self._utilisation.set(round(100 * busy))
        self._active.set(round(busy, 3))
        self._received.set(round((now[2] - before[2]) / seconds))
        return generate_latest(self._registry)

    def _gauge(self, name: str) -> Gauge:
        gauge = Gauge(name, name, list(self._labels), registry=self._registry)
        return gauge.labels(**self._labels)
