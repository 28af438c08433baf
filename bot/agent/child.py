"""The process that runs one probe and ends: a fault, a crash or a hang in it stays in it.

Standard input: one JSON object (see `ChildTask`). Standard output: JSON lines, `{"mark": …}` before what may hang and
last `{"result": {"status","error","findings","data","truncated"}}`.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bot.agent.bounds import bounded
from bot.device.artefact import ArtefactFolder
from bot.device.proc import ProcRoot
from bot.device.service import ServiceTarget
from bot.domain.finding import ProbeStatus
from bot.errors import ProbeError, Reason
from bot.probe import Probe, ProbeContext, Reading

LOOKING = "looking"
"""The first mark: the process is up, and the probe begins to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTask:
    """What the child is to do.

    `skipped` maps a mark to the reason why it is left out; `artefact_folder` is empty where no file may be left.
    """

    probe: str
    args: Mapping[str, Any]
    proc_root: str
    sys_root: str
    nvml_library: str
    kernel_log: str
    package_log: str
    services: Mapping[str, ServiceTarget]
    result_bytes: int
    skipped: Mapping[str, str] = field(default_factory=dict)
    cuda_library: str = ""
    artefact_folder: str = ""
    artefact_bytes: int = 0

    def to_json(self) -> str:
        """The text that goes to the child's standard input."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> ChildTask:
        """Reads `to_json`'s text; only the agent writes it."""
        values = json.loads(text)
        values["services"] = {name: _target(entry) for name, entry in values["services"].items()}
        return cls(**values)

    def context(self) -> ProbeContext:
        """The context that the probe sees, with the real clock."""
        return ProbeContext(
            proc=ProcRoot(Path(self.proc_root)),
            sys_root=Path(self.sys_root),
            nvml_library=self.nvml_library,
            cuda_library=self.cuda_library,
            kernel_log=Path(self.kernel_log),
            package_log=Path(self.package_log),
            services=self.services,
            wait=time.sleep,
            monotonic=time.monotonic,
            now=time.time,
            mark=lambda what: _say({"mark": what}),
            skipped=self.skipped,
            artefacts=(
                ArtefactFolder(Path(self.artefact_folder), self.artefact_bytes)
                if self.artefact_folder
                else None
            ),
        )


def look(probe: Probe, args: Mapping[str, Any], context: ProbeContext) -> Reading:
    """Runs the probe; whatever stops it becomes a reading that says so."""
    try:
        return probe.look(context, probe.accept(args))
    except ProbeError as failure:
        return Reading(status=status_of(failure.reason), error=str(failure))
    except Exception as error:  # noqa: BLE001 - the edge: a fault of one probe is an answer, not a crash
        return Reading(
            status=ProbeStatus.ERROR,
            error=f"probe {probe.name} failed: {type(error).__name__}: {error}; report this",
        )


def status_of(reason: Reason) -> ProbeStatus:
    """The status that a failure's reason stands for."""
    match reason:
        case Reason.UNSUPPORTED:
            return ProbeStatus.UNSUPPORTED
        case Reason.UNAUTHORISED:
            return ProbeStatus.DENIED
        case Reason.TIMEOUT:
            return ProbeStatus.TIMEOUT
        case _:
            return ProbeStatus.ERROR


def main() -> None:
    """Reads the task, looks, answers, ends."""
    task = ChildTask.from_json(sys.stdin.read())
    # A probe only reads: no file can grow and no core can be dumped, whatever a native library tries. One that
    # profiles may write a file up to its bound.
    limit = task.artefact_bytes if task.artefact_folder else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module = importlib.import_module(f"bot.probes.{task.probe}")
    probe, context = getattr(module, task.probe), task.context()
    # From here on a deadline that passes tells of what is read, and not of a node too busy to start a process.
    context.mark(LOOKING)
    reading = look(probe, task.args, context)
    _say({"result": bounded(reading, task.result_bytes)})


def _target(entry: Mapping[str, Any]) -> ServiceTarget:
    values = dict(entry)
    for name in ("pidfile", "model_dir", "golden_file", "profile_dir"):
        values[name] = Path(values[name]) if values[name] else None
    for name in ("log_files", "dependencies"):
        values[name] = tuple(values[name])
    return ServiceTarget(**values)


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message, default=str) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
