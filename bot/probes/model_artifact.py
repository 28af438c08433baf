"""Are the model's files those that the process loaded."""

from __future__ import annotations

from bot.argument import SERVICE, Arguments
from bot.device.launch import deleted_maps, folder_state
from bot.device.service import find_processes
from bot.domain.finding import Finding, FindingSeverity
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, describe, info

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".onnx", ".plan", ".gguf", ".engine", ".npz", ".h5", ".mar")  # fmt: skip


@describe(
    summary="Model files changed, replaced or deleted after the process that serves them started",
    cost=Cost.CHEAP,
    findings=(
        "model.changed_after_start",
        "model.version_mismatch",
        "model.artifact_unchanged",
    ),
    arguments=(SERVICE,),
    needs=("[services.<name>] model_dir", "/proc/PID/maps"),
)
def model_artifact(context: ProbeContext, arguments: Arguments) -> Reading:
    """Times and names only; weights are not read, they may be hundreds of gigabytes."""
    target = context.service(arguments.text("service"))
    tasks = find_processes(context.proc, target)
    if target.model_dir is None:
        raise ProbeError(
            "the service has no model folder on this node; set [services.<name>] model_dir",
            reason=Reason.UNSUPPORTED,
        )
    boot = context.proc.boot_time()
    started = [boot + task.started_seconds for task in tasks]
    state = folder_state(target.model_dir, min(started))
    weights = [item for item in state.changed if item.path.endswith(_WEIGHTS)]
    deleted = sorted(
        {path for task in tasks for path in deleted_maps(context.proc, task.pid, target.model_dir)}
    )
    findings: list[Finding] = []
    if weights:
        newest = weights[0]
        text = (
            f"{newest.path} is newer than the process, changed "
            f"{context.now() - min(started) - newest.seconds_after_start:.0f} s ago"
        )
        findings.append(_critical("model.changed_after_start", text))
    elif deleted:
        text = f"{len(deleted)} mapped model files were deleted or replaced: {deleted[0]}"
        findings.append(_critical("model.changed_after_start", text))
    # Some workers started before the change and some after it: one service answers with two models.
    between = [
        item for item in weights if _splits(min(started) + item.seconds_after_start, started)
    ]
    if between:
        text = (
            f"workers started before and after {between[0].path} changed: two revisions are served"
        )
        findings.append(
            Finding(id="model.version_mismatch", severity=FindingSeverity.WARNING, summary=text)
        )
    not_checked = () if state.files else ("model_dir holds no file that can be seen from here",)
    if not findings and not not_checked:
        findings.append(info("model.artifact_unchanged", "artefact older than the process"))
    return Reading(
        findings=tuple(findings),
        not_checked=not_checked,
        data={
            "files": state.files,
            "newest_change_at_s": state.newest_at,
            "process_started_at_s": min(started),
            "changed_files": [item.path for item in state.changed[:16]],
            "deleted_maps": deleted[:16],
        },
    )


def _splits(changed_at: float, started: list[float]) -> bool:
    return min(started) < changed_at < max(started)


def _critical(finding_id: str, text: str) -> Finding:
    return Finding(id=finding_id, severity=FindingSeverity.CRITICAL, summary=text)
