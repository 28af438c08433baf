"""The table from which the node agent answers for a GPU that is not there.

The agent reads it through its NVML stand-in and labels every reading; the figures are those of a healthy card at
work, so that the demo's diagnosis has to look elsewhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bot.demo.gpu_series import MODEL, UUID

_TOTAL_BYTES = 85_520_809_984
_USED_BYTES = 536_870_912  # the driver's own: no process is listed

_CALLS: dict[str, Any] = {
    "nvmlDeviceGetMemoryInfo": {
        "total": _TOTAL_BYTES,
        "used": _USED_BYTES,
        "free": _TOTAL_BYTES - _USED_BYTES,
    },
    "nvmlDeviceGetUtilizationRates": {"gpu": 40, "memory": 12},
    "nvmlDeviceGetTemperature": 58,
    "nvmlDeviceGetPowerUsage": 310_000,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetClockInfo": 1980,
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetCurrentClocksEventReasons": 0,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetViolationStatus": {"referenceTime": 0, "violationTime": 0},
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetPcieReplayCounter": 0,
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetRemappedRows": [0, 0, 0, 0],
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetGraphicsRunningProcesses": [],
}


def gpu_table() -> dict[str, Any]:
    """One healthy card, in the shape that the agent's stand-in reads."""
    return {
        "init": {"return": None},
        "driver": "standin",
        "device_count": 1,
        "devices": [
            {
                "index": 0,
                "uuid": UUID,
                "pci": "00000000:00:00.0",
                "name": MODEL,
                "calls": {name: {"return": value} for name, value in _CALLS.items()},
            }
        ],
    }


def write_gpu_table(path: Path) -> None:
    """Writes the table as JSON."""
    path.write_text(json.dumps(gpu_table(), indent=2), encoding="utf-8")
