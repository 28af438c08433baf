"""Why the GPU driver cannot be asked, in words that a responder can act on, and what the PCI bus says without it."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from bot.device.files import list_names, read_text
from bot.device.nvml_error import NvmlFailure
from bot.device.proc import ProcRoot
from bot.errors import ProbeError, Reason

_NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")
"""PCI classes of VGA and 3D controllers. Source: PCI Code and ID Assignment Specification, class 03h."""
_MODULE_VERSION = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+\.\d+(?:\.\d+)?)")
_UPGRADE = re.compile(r"(?:libnvidia-(?:compute|ml)\S*|nvidia-utils\S*) \((\S+?), (\S+?)\)")


@dataclass(frozen=True, slots=True)
class LibraryUpgrade:
    """The newest upgrade of the driver's user-space library in the package history; `at` is its local time."""

    at: str
    command: str
    version: str


def explain(failure: NvmlFailure, proc: ProcRoot, package_log: Path) -> ProbeError:
    """The error to report when NVML cannot be initialised."""
    if failure.name == "LibRmVersionMismatch":
        return ProbeError(_mismatch(proc, package_log), reason=Reason.CONFLICT)
    if failure.name == "Unknown":
        return ProbeError(
            "NVML answers Unknown Error at start: typical of a container that lost its GPU devices after a "
            "daemon-reload; check /dev/nvidia* and the device cgroup, the GPU itself may be well",
            reason=Reason.CONFLICT,
        )
    if failure.name == "NoPermission":
        return ProbeError(
            "NVML may not be used by the agent: no permission on /dev/nvidiactl",
            reason=Reason.UNAUTHORISED,
        )
    return ProbeError(f"NVML cannot be initialised: {failure}", reason=Reason.CONFLICT)


def module_version(proc: ProcRoot) -> str | None:
    """Version of the loaded kernel module."""
    with contextlib.suppress(ProbeError):
        found = _MODULE_VERSION.search(proc.text("driver", "nvidia", "version"))
        return found.group(1) if found else None
    return None


def last_upgrade(package_log: Path) -> LibraryUpgrade | None:
    """The newest upgrade of the library that the package history tells of."""
    history = ""
    with contextlib.suppress(ProbeError):
        history = read_text(package_log)
    for entry in reversed(history.split("\n\n")):
        found = _UPGRADE.search(entry)
        if found is None:
            continue
        facts = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line)
        at = "T".join(facts.get("Start-Date", "").split())
        version = re.match(r"\d+\.\d+(?:\.\d+)?", found.group(2).rpartition(":")[2])
        return LibraryUpgrade(
            at, facts.get("Commandline", ""), version.group(0) if version else found.group(2)
        )
    return None


def pci_gpus(sys_root: Path) -> list[str] | None:
    """PCI addresses of NVIDIA GPUs on the bus that are not passed through to a guest; None where there is no bus."""
    devices = sys_root / "bus" / "pci" / "devices"
    try:
        names = list_names(devices)
    except ProbeError:
        return None
    found: list[str] = []
    for name in names:
        with contextlib.suppress(ProbeError, OSError):
            vendor = read_text(devices / name / "vendor").strip()
            kind = read_text(devices / name / "class").strip()
            if vendor != _NVIDIA_VENDOR or not kind.startswith(_DISPLAY_CLASSES):
                continue
            driver = devices / name / "driver"
            if driver.is_symlink() and driver.readlink().name == "vfio-pci":
                continue
            found.append(name)
    return found


def _mismatch(proc: ProcRoot, package_log: Path) -> str:
    module, upgrade = module_version(proc), last_upgrade(package_log)
    library = upgrade.version if upgrade else "unknown"
    since = ""
    if upgrade:
        by = (
            "the unattended upgrade"
            if "unattended-upgrade" in upgrade.command
            else "a package upgrade"
        )
        since = f", changed by {by} at {upgrade.at} (node time)"
    return (
        f"driver/library version mismatch: user-space library {library} against loaded kernel module "
        f"{module or 'unknown'}{since}; running processes go on, new GPU processes fail; drain and reboot, "
        "or reload the module"
    )
