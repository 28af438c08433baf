"""GPU readings from a JSON table, for machines without a GPU; every result read through it is labelled.

The table: `{"driver", "device_count", "init": {…}, "pci_count", "devices": [{"index", "uuid", "pci", "name", "handle":
{…}, "calls": {FUNCTION: answer}, "mig": [{"gi", "uuid", "calls"}]}]}`. An answer is `{"return": value}`, `{"raise":
error name}`, either with `{"block_s": seconds}` before it, or `{"return": value, "per_s": rate}` for a counter that
grows with the wall clock. A value `{"bytes": text}` is a Python bytes object. `FUNCTION:argument` goes before
`FUNCTION`; a function that is not there is not supported. Field values are under `nvmlDeviceGetFieldValues` by id.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.device.field import Unread
from bot.device.nvml_error import NvmlFailure
from bot.errors import ProbeError, Reason

# Source: nvml.h, nvmlReturn_t.
_CODES = {
    "Uninitialized": 1,
    "InvalidArgument": 2,
    "NotSupported": 3,
    "NoPermission": 4,
    "NotFound": 6,
    "InsufficientSize": 7,
    "InsufficientPower": 8,
    "DriverNotLoaded": 9,
    "Timeout": 10,
    "IrqIssue": 11,
    "LibraryNotFound": 12,
    "FunctionNotFound": 13,
    "CorruptedInforom": 14,
    "GpuIsLost": 15,
    "ResetRequired": 16,
    "OperatingSystem": 17,
    "LibRmVersionMismatch": 18,
    "InUse": 19,
    "Memory": 20,
    "NoData": 21,
    "NotReady": 27,
    "GpuNotFound": 28,
    "Unknown": 999,
}


@dataclass(frozen=True, slots=True)
class _Handle:
    entry: Mapping[str, Any]


class StandinLibrary:
    """Answers from the table as NVML would."""

    is_standin = True

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table

    @classmethod
    def load(cls, path: Path) -> StandinLibrary:
        """Reads the table.

        Raises:
            ProbeError: it cannot be read; there is no silent fallback to other readings.
        """
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ProbeError(
                f"GPU stand-in {path} cannot be read: {error}", reason=Reason.MALFORMED
            ) from error
        if not isinstance(table, dict) or not isinstance(table.get("devices", []), list):
            raise ProbeError(f"GPU stand-in {path} is no table", reason=Reason.MALFORMED)
        return cls(table)

    def pci_count(self) -> int | None:
        count = self._table.get("pci_count")
        return None if count is None else int(count)

    def call(self, function: str, *arguments: Any) -> Any:
        match function:
            case "nvmlInit":
                return _answer(self._table.get("init", {"return": None}))
            case "nvmlShutdown":
                return None
            case "nvmlSystemGetDriverVersion":
                return self._table.get("driver", "")
            case "nvmlDeviceGetCount":
                return int(self._table.get("device_count", len(self._devices)))
            case "nvmlDeviceGetHandleByIndex":
                return self._handle(int(arguments[0]))
        entry = arguments[0].entry
        match function:
            case "nvmlDeviceGetName" if "name" in entry:
                return _value(entry["name"])
            case "nvmlDeviceGetUUID" if "uuid" in entry:
                return _value(entry["uuid"])
            case "nvmlDeviceGetPciInfo" if "pci" in entry:
                return {"busId": _value(entry["pci"])}
            case "nvmlDeviceGetGpuInstanceId" if "gi" in entry:
                return entry["gi"]
            case "nvmlDeviceGetMaxMigDeviceCount":
                return len(entry.get("mig", ()))
            case "nvmlDeviceGetMigDeviceHandleByIndex":
                instance = entry["mig"][int(arguments[1])]
                _answer(instance.get("handle", {"return": None}))
                return _Handle(instance)
        calls = entry.get("calls", {})
        named = f"{function}:{arguments[1]}" if len(arguments) > 1 else function
        answer = calls.get(named, calls.get(function))
        return _answer({"raise": "NotSupported"} if answer is None else answer)

    def fields(self, handle: Any, ids: Sequence[int]) -> Mapping[int, int | float | Unread]:
        values = self.call("nvmlDeviceGetFieldValues", handle)
        found: dict[int, int | float | Unread] = {}
        for field in ids:
            answer = values.get(str(field), {"raise": "NotSupported"})
            try:
                found[field] = _answer(answer if isinstance(answer, dict) else {"return": answer})
            except NvmlFailure as failure:
                found[field] = failure.as_field()
        return found

    @property
    def _devices(self) -> list[Mapping[str, Any]]:
        return list(self._table.get("devices", []))

    def _handle(self, index: int) -> _Handle:
        for entry in self._devices:
            if entry.get("index") == index:
                _answer(entry.get("handle", {"return": None}))
                return _Handle(entry)
        raise _failure("InvalidArgument")


def _answer(answer: Mapping[str, Any]) -> Any:
    if answer.get("block_s"):
        time.sleep(float(answer["block_s"]))  # stands for a driver call that does not return
    if "raise" in answer:
        raise _failure(str(answer["raise"]))
    value = _value(answer.get("return"))
    # The wall clock and not a start of its own: each probe is a new process, and a counter must outlive it.
    return value + int(time.time() * answer["per_s"]) if "per_s" in answer else value


def _value(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"bytes"}:
        return str(value["bytes"]).encode()
    if isinstance(value, dict) and value.keys() == {"bytes_hex"}:
        return bytes.fromhex(str(value["bytes_hex"]))
    return value


def _failure(name: str) -> NvmlFailure:
    return NvmlFailure(name, _CODES.get(name, _CODES["Unknown"]))
