"""Do the logs tell the truth: a silent file, a deleted one, suppressed lines, a surge."""

from __future__ import annotations

from bot.argument import SERVICE, Arguments, window_argument
from bot.device.log_files import (
    DeletedLog,
    LogFile,
    deleted_logs,
    grown_bytes,
    log_files,
    standard_output,
    suppressed_lines,
)
from bot.device.service import find_processes
from bot.domain.finding import Finding
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

SURGE_BYTES_PER_SECOND = 10_000_000
"""Our judgement: a service that logs 10 MB/s writes more than it serves."""
SILENT_SECONDS = 600
"""Our judgement: ten minutes without a line from a process that works all the time."""
BUSY_RATIO = 0.01
"""Our judgement: a process that uses less than 1 % of a core may be silent because nothing happens."""


@describe(
    summary="Growth, age and fate of a service's log files",
    cost=Cost.CHEAP,
    findings=("log.silent", "log.suppressed", "log.write_surge", "log.ok"),
    arguments=(SERVICE, window_argument(2.0)),
    needs=("[services.<name>] log_files", "/proc/PID/fd"),
)
def log_health(context: ProbeContext, arguments: Arguments) -> Reading:
    """Two looks at the files, `window_s` apart; a verdict is "evidence missing", never "no errors happened"."""
    target = context.service(arguments.text("service"))
    proc, tasks = context.proc, find_processes(context.proc, target)
    pids = [task.pid for task in tasks]

    def look() -> tuple[tuple[LogFile, ...], float]:
        running = sum(task.cpu_seconds for task in find_processes(proc, target))
        return log_files(proc, target.log_files, pids[0]), running

    sampled = context.sample_twice(look, arguments.number("window_s"))
    files, deleted = sampled.after[0], deleted_logs(proc, pids)
    if not target.log_files and not deleted:
        raise ProbeError(
            "the service has no log files on this node; set [services.<name>] log_files",
            reason=Reason.UNSUPPORTED,
        )
    busy = max(0.0, sampled.after[1] - sampled.before[1]) / sampled.seconds
    grown = grown_bytes(sampled.before[0], files)
    rates = {path: size / sampled.seconds for path, size in grown.items()}
    suppressed = {path: count for path in grown if (count := suppressed_lines(path))}
    findings = _deleted(deleted) + _surge(rates) + _suppressed(suppressed)
    not_checked: list[str] = []
    if target.log_files and not files:
        not_checked.append("no file matches log_files; is the pattern right?")
    age = min((context.now() - file.changed_at for file in files), default=None)
    if not deleted and age is not None and age > SILENT_SECONDS and busy > BUSY_RATIO:
        text = f"no log file changed for {age:.0f} s while the service uses {busy:.0%} of a core"
        findings.append(warning("log.silent", text, value=age, unit="s", threshold=SILENT_SECONDS))
    if not findings and not not_checked:
        findings.append(info("log.ok", "log files grow at their usual rate, none is deleted"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": sampled.seconds,
            "files": {
                file.path: {
                    "size_bytes": file.size_bytes,
                    "age_s": context.now() - file.changed_at,
                    "write_bytes_per_s": rates.get(file.path, 0.0),
                }
                for file in files
            },
            "write_bytes_per_s": sum(rates.values()),
            "deleted_files": [{"pid": item.pid, "path": item.path} for item in deleted],
            "suppressed_lines": suppressed,
            "standard_output": standard_output(proc, pids[0]),
            "cpu_cores": busy,
        },
    )


def _deleted(deleted: tuple[DeletedLog, ...]) -> list[Finding]:
    return [
        critical(
            "log.silent",
            f"pid {item.pid} writes to a deleted log file (inode {item.inode}), {item.path}",
            value=item.inode,
            unit="inode",
            threshold=None,
        )
        for item in deleted[:4]
    ]


def _surge(rates: dict[str, float]) -> list[Finding]:
    total = sum(rates.values())
    if total <= SURGE_BYTES_PER_SECOND:
        return []
    path = max(rates, key=lambda name: rates[name])
    text = f"{total / 1e6:.0f} MB/s of log, most of it to {path}"
    limit = SURGE_BYTES_PER_SECOND / 1e6
    return [critical("log.write_surge", text, value=total / 1e6, unit="MB/s", threshold=limit)]


def _suppressed(counts: dict[str, int]) -> list[Finding]:
    if not counts:
        return []
    total = sum(counts.values())
    text = f"{total} notices of suppressed lines at the end of {', '.join(sorted(counts)[:2])}"
    return [warning("log.suppressed", text, value=total, unit="lines", threshold=0)]
