"""How a service is configured: its batch limit, its precision, and whether its files changed since its start."""

from __future__ import annotations

from bot.argument import SERVICE, Arguments
from bot.device.engine import EngineMoment, engine_moment
from bot.device.exposition import scrape
from bot.device.launch import batch_limit, folder_state, launch_flags, reduced_precision
from bot.device.service import find_processes
from bot.domain.finding import Finding, FindingSeverity
from bot.errors import ProbeError
from bot.probe import Cost, ProbeContext, Reading, describe, info, warning

SCRAPE_TIMEOUT_SECONDS = 2.0
"""Our judgement: as for the other probes of the metrics page."""
_CONFIG_SUFFIXES = (".json", ".yaml", ".yml", ".toml", ".pbtxt", ".ini", ".conf", ".cfg")


@describe(
    summary="Allow-listed launch flags of a service, and configuration files changed after its start",
    cost=Cost.CHEAP,
    findings=("svc.batch_limit", "svc.quantized", "svc.config_changed", "svc.config_unchanged"),
    arguments=(SERVICE,),
    needs=("/proc/PID/cmdline", "[services.<name>] model_dir for configuration files"),
)
def service_config(context: ProbeContext, arguments: Arguments) -> Reading:
    """Command lines hold secrets: only flags of a fixed list leave the node, and only plain values."""
    target = context.service(arguments.text("service"))
    tasks = find_processes(context.proc, target)
    flags: dict[str, str] = {}
    for task in tasks:
        flags |= launch_flags(context.proc.command_line(task.pid))
    started_at = context.proc.boot_time() + tasks[0].started_seconds
    findings: list[Finding] = []
    not_checked: list[str] = []
    changed: list[str] = []
    if target.model_dir is None:
        not_checked.append("configuration files: set [services.<name>] model_dir")
    else:
        state = folder_state(target.model_dir, started_at)
        changed = [item.path for item in state.changed if item.path.endswith(_CONFIG_SUFFIXES)]
        if not state.files:
            not_checked.append("configuration files: model_dir holds none")
    if changed:
        findings.append(
            Finding(
                id="svc.config_changed",
                severity=FindingSeverity.WARNING,
                summary=f"{changed[0]} is newer than the process; it takes effect at the next start, "
                "or did at a reload",
            )
        )
    lower = reduced_precision(flags)
    if lower:
        shown = " ".join(f"--{name.replace('_', '-')}={value}" for name, value in lower.items())
        findings.append(
            Finding(
                id="svc.quantized",
                severity=FindingSeverity.WARNING,
                summary=f"effective flags: {shown}",
            )
        )
    findings += _limit(flags, _engine(target.metrics_url))
    if not changed and not not_checked:
        findings.append(info("svc.config_unchanged", "configuration unchanged since process start"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "flags": flags,
            "process_started_at_s": started_at,
            "changed_files": changed[:16],
            "processes": len(tasks),
        },
    )


def _engine(url: str | None) -> EngineMoment | None:
    if url is None:
        return None
    try:
        return engine_moment(scrape(url, SCRAPE_TIMEOUT_SECONDS))
    except ProbeError:
        return None


def _limit(flags: dict[str, str], engine: EngineMoment | None) -> list[Finding]:
    """A limit is worth a finding only while requests sit at it and others wait."""
    limit = batch_limit(flags)
    if limit is None or engine is None or not engine.waiting or engine.running is None:
        return []
    name, number = limit
    if engine.running < number:
        return []
    text = f"{name}={number}; running requests sit at that number, {engine.waiting:.0f} wait"
    return [warning("svc.batch_limit", text, value=number, unit="requests", threshold=None)]
