"""Where does the time go: one bounded profile, kept for the caller to fetch."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import SERVICE, Argument, ArgumentKind, Arguments
from bot.device.profiler import Capture, record_gpus, record_python, record_torch
from bot.device.service import find_processes
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, describe, info

MAX_SECONDS = 60
"""Our judgement: a minute shows what a steady fault does; more is load on a service that is in trouble already."""

_SECONDS = Argument(
    name="seconds",
    kind=ArgumentKind.NUMBER,
    summary="how long the profiler runs",
    is_required=True,
    low=1,
    high=MAX_SECONDS,
)
_TOOL = Argument(
    name="tool",
    kind=ArgumentKind.CHOICE,
    summary="py-spy: Python stacks; nsys: GPU counters; torch: the server's own profiler",
    is_required=True,
    choices=("nsys", "torch", "py-spy"),
)
_NATIVE = Argument(
    name="native",
    kind=ArgumentKind.CHOICE,
    summary="py-spy: native frames too, which pauses the process at each sample",
    default="no",
    choices=("no", "yes"),
)


@describe(
    summary="Profiles a service for some seconds and keeps the file",
    cost=Cost.HEAVY,
    findings=("profile.captured",),
    arguments=(SERVICE, _SECONDS, _TOOL, _NATIVE),
    needs=("py-spy and SYS_PTRACE", "nsys", "[services.<name>] profile_url and profile_dir"),
    deadline_seconds=100.0,
    makes_artefact=True,
)
def profile(context: ProbeContext, arguments: Arguments) -> Reading:
    """The file is fetched in pieces from the agent; the result carries its name and digest."""
    target = context.service(arguments.text("service"))
    tasks = sorted(find_processes(context.proc, target), key=lambda task: -task.threads)
    seconds, tool = arguments.number("seconds"), arguments.text("tool")
    folder = context.artefacts
    if folder is None:
        raise ProbeError("the agent has no folder for profiles here", reason=Reason.UNSUPPORTED)
    context.mark(f"profiling with {tool}")
    if tool == "py-spy":
        is_native = arguments.text("native") == "yes"
        capture = record_python(context.proc, tasks, seconds, folder, is_native=is_native)
    elif tool == "nsys":
        capture = record_gpus(seconds, folder)
    else:
        capture = record_torch(
            target.profile_url, target.profile_dir, seconds, folder, context.wait
        )
    return _reading(capture, tool, seconds)


def _reading(capture: Capture, tool: str, seconds: float) -> Reading:
    artefact = capture.artefact
    gaps = ("the process stands stopped (state T) after the profile",) if capture.is_stopped else ()
    text = f"{tool} profile of {seconds:.0f} s: {artefact.name}, {artefact.bytes / 1024:.0f} KiB"
    return Reading(
        findings=(info("profile.captured", text),),
        not_checked=gaps,
        data={"tool": tool, "window_s": seconds, "pid": capture.pid, "artefact": asdict(artefact)},
    )
