"""Is the disk slow or full, and who writes."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import Arguments, window_argument
from bot.device.cpu import pressure_share
from bot.device.disk import (
    DiskChange,
    FileSystem,
    Writer,
    disk_changes,
    disk_moment,
    file_systems,
    top_writers,
)
from bot.device.field import Unread
from bot.device.inside import gaps, service_pressure, told_of
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

LATENCY_SECONDS = 0.1
"""Source: awesome-prometheus-alerts, disk read or write latency above 100 ms."""
LATENCY_REQUESTS = 5
"""Our judgement: a mean over fewer requests is one request's luck."""
PRESSURE_RATIO = 0.05
"""Our judgement: io full avg10 above 5 % is suspicious for latency-sensitive inference."""
SOME_RATIO = 0.30
"""Our judgement: where other work keeps the CPUs busy, `full` stays near zero by its definition, however long a writer waits."""
FREE_RATIO = 0.10
"""Source: leptonai/gpud and the kubelet's default, less than 10 % free."""
WRITER_BYTES_PER_SECOND = 10_000_000
"""Our judgement: a steady 10 MB/s is worth naming; it is no fault by itself."""


@describe(
    summary="Latency, queue and pressure of the disks, the largest writers and their files, free space",
    cost=Cost.CHEAP,
    findings=("disk.latency_high", "disk.pressure", "disk.full", "disk.top_writer", "disk.ok"),
    arguments=(window_argument(2.0),),
    needs=("/proc/diskstats", "/proc/pressure/io", "/proc/PID/io"),
)
def host_disk(context: ProbeContext, arguments: Arguments) -> Reading:
    """Two samples, `window_s` apart. Utilisation convicts nobody: NVMe serves requests in parallel."""
    proc = context.proc
    sampled = context.sample_twice(lambda: disk_moment(proc), arguments.number("window_s"))
    disks = disk_changes(sampled.before, sampled.after, sampled.seconds)
    writers = top_writers(proc, sampled.before, sampled.after, sampled.seconds, 5)
    mounts = file_systems(proc)
    pressure = sampled.after.pressure
    share = pressure_share(
        sampled.before.pressure, sampled.after.pressure, sampled.seconds, is_full=True
    )
    findings = [finding for disk in disks for finding in _latency(disk)]
    not_checked: list[str] = []
    if isinstance(pressure, Unread) or isinstance(share, Unread):
        not_checked.append("io pressure: the kernel does not tell")
    else:
        some = pressure_share(sampled.before.pressure, pressure, sampled.seconds)
        waits = pressure.some_avg10 if isinstance(some, Unread) else max(some, pressure.some_avg10)
        findings += _pressure(max(pressure.full_avg10, share), waits)
    inside = service_pressure(proc, context.cgroups, context.members(), "io")
    for name, told in inside.items():
        if not isinstance(told, Unread):
            findings += _pressure(told.full_avg10, told.some_avg10, name)
    not_checked += gaps("io pressure", inside)
    findings += _writer(writers) + [finding for item in mounts for finding in _full(item)]
    if not disks:
        not_checked.append("latency: there is no block device")
    if not mounts:
        not_checked.append("free space: the mount table cannot be read")
    if not findings and not not_checked:
        findings.append(info("disk.ok", "latency and pressure at rest"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": sampled.seconds,
            "disks": {disk.name: asdict(disk) for disk in disks[:16]},
            "pressure_some_avg10_ratio": told_of(pressure, "some_avg10"),
            "pressure_full_avg10_ratio": told_of(pressure, "full_avg10"),
            "pressure_full_window_ratio": share,
            "service_pressure_full_avg10_ratio": {
                name: told_of(told, "full_avg10") for name, told in inside.items()
            },
            "top_writers": [asdict(writer) for writer in writers],
            "unread_processes": sampled.after.unread_processes,
            "file_systems": [
                {"mount": item.mount, "free_bytes": item.free_bytes, "free_ratio": item.free_ratio}
                for item in mounts[:16]
            ],
        },
    )


def _latency(disk: DiskChange) -> list[Finding]:
    findings: list[Finding] = []
    for kind, count, latency in (
        ("read", disk.reads, disk.read_latency_seconds),
        ("write", disk.writes, disk.write_latency_seconds),
    ):
        if latency is not None and latency > LATENCY_SECONDS and count >= LATENCY_REQUESTS:
            text = f"{disk.name} {kind} latency {latency * 1000:.0f} ms over {count} requests"
            findings.append(
                critical(
                    "disk.latency_high", text, value=latency, unit="s", threshold=LATENCY_SECONDS
                )
            )
    return findings


def _pressure(full: float, some: float, name: str = "") -> list[Finding]:
    text = f"{name and name + ': '}io pressure full {full:.1%}, some {some:.1%}"
    for value, limit in ((full, PRESSURE_RATIO), (some, SOME_RATIO)):
        if value > limit:
            return [warning("disk.pressure", text, value=value, unit="ratio", threshold=limit)]
    return []


def _writer(writers: tuple[Writer, ...]) -> list[Finding]:
    if not writers or writers[0].bytes_per_second < WRITER_BYTES_PER_SECOND:
        return []
    top = writers[0]
    where = f" to {top.device}" if top.device else ""
    file = f", file {top.file}" if top.file else ""
    speed = top.bytes_per_second / 1e6
    text = f"{top.name} (pid {top.pid}) writes {speed:.0f} MB/s{where}{file}"
    limit = WRITER_BYTES_PER_SECOND / 1e6
    return [warning("disk.top_writer", text, value=speed, unit="MB/s", threshold=limit)]


def _full(mount: FileSystem) -> list[Finding]:
    if mount.free_ratio >= FREE_RATIO and not mount.is_short:
        return []
    text = f"{mount.mount}: {mount.free_bytes / 1e6:.0f} MB ({mount.free_ratio:.1%}) free"
    make = critical if mount.is_short else warning
    return [make("disk.full", text, value=mount.free_ratio, unit="ratio", threshold=FREE_RATIO)]
