"""The files that heavy probes leave: how long such a run may take, and how its file gets into the incident."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import structlog

from bot.domain.finding import ProbeResult
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import EvidenceError
from bot.incidents.responding import Via
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Message
from bot.store.blobs import blob_key
from bot.store.queue import Job

log = structlog.get_logger(__name__)

FETCH_SECONDS = 120.0
"""For all pieces of one file: 64 MiB at half a megabyte a second."""
MOST_SECONDS = 300.0
"""The longest that an agent lets a probe run."""
_EXTRA_SECONDS: Mapping[str, float] = MappingProxyType(
    {"profile": 45.0, "golden_set": 65.0, "h2d_bandwidth": 35.0, "process_stacks": 12.0}
)
"""What a run needs beside the time that its own arguments ask for: a profiler's start and the writing of its file."""
_NAME_LIMIT = 120


@runtime_checkable
class ArtefactSource(Protocol):
    """A probe runner that also hands over the files that probes leave."""

    async def artefact(
        self,
        node: str,
        artefact: Mapping[str, Any],
        *,
        subject: str,
        timeout_seconds: float = 60.0,
    ) -> bytes:
        """The whole file, its digest checked.

        Raises:
            EvidenceError: it could not be had, or is another.
        """
        ...


def seconds_for(probe: str, args: Mapping[str, Any], usual: float) -> float:
    """How long a run may take: what is usual, longer where the probe or its arguments ask for more.

    >>> seconds_for("host_cpu", {}, 8.0), seconds_for("profile", {"seconds": 20}, 8.0)
    (8.0, 65.0)
    """
    asked = sum(
        # Bounded first: no float holds every whole number that may be typed.
        float(min(max(value, 0), MOST_SECONDS))
        for name in ("seconds", "window_s")
        if isinstance(value := args.get(name), (int, float)) and not isinstance(value, bool)
    )
    return min(MOST_SECONDS, max(usual, _EXTRA_SECONDS.get(probe, usual)) + asked)


async def keep_artefacts(
    services: Services, incident: Incident, results: Iterable[ProbeResult], via: Via
) -> None:
    """Fetches each file, stores it, names it in the timeline and attaches it to the thread; each once per `via.key`.

    A file that cannot be had is said in the same places: the reading itself stands without it.

    Raises:
        StoreError: Redis is not reachable; the same call later goes on.
    """
    source: object = services.ports.probes
    if not isinstance(source, ArtefactSource):
        return
    for result in results:
        told = result.data.get("artefact")
        if not isinstance(told, Mapping):
            continue
        try:
            content = await source.artefact(
                result.node, told, subject=via.by, timeout_seconds=FETCH_SECONDS
            )
        except EvidenceError as error:
            log.warning("artefact.not_fetched", node=result.node, reason=error.reason.value)
            text = say(
                "artefacts.not_kept", probe=result.probe, node=result.node, why=str(error)[:300]
            )
            await _write(services, incident, result, via, text, {}, ())
            continue
        name = _file_name(result, told)
        key = blob_key(incident.id, name)
        await services.store.put_blob(key, content)
        digest = str(told["sha256"])
        text = say(
            "artefacts.kept",
            probe=result.probe,
            node=result.node,
            name=name,
            size=_size(len(content)),
            digest=digest,
        )
        data = {
            "blob": name,
            "bytes": len(content),
            "sha256": digest,
            "media_type": str(told.get("media_type") or "application/octet-stream"),
        }
        await _write(services, incident, result, via, text, data, (key,))


async def _write(
    services: Services,
    incident: Incident,
    result: ProbeResult,
    via: Via,
    text: Localized,
    artefact: Mapping[str, Any],
    files: tuple[str, ...],
) -> None:
    draft = Draft(
        kind=EntryKind.PROBE,
        at=services.clock(),
        text=text,
        author=via.by,
        source=via.source,
        data={
            "purpose": "artefact",
            "probe": result.probe,
            "node": result.node,
            "artefact": dict(artefact),
        },
    )
    message = Message(view="notice", context={"text": text.to_json()}, files=files)

    def jobs(after: Incident) -> Sequence[Job]:
        return (outbox.thread_post(after, message),)

    await services.responding.write(
        incident.id,
        via,
        lambda _: [draft],
        step=f"artefact:{result.probe}:{result.node}",
        jobs=jobs,
    )


def _file_name(result: ProbeResult, told: Mapping[str, Any]) -> str:
    """A name that no other file of the incident has; what the node says is cut down to harmless characters."""
    said = "".join(
        char if char.isascii() and (char.isalnum() or char in "._-") else "_"
        for char in str(told.get("name") or "profile")
    )
    node = "".join(char if char.isalnum() or char in "._-" else "_" for char in result.node)
    return f"{node}-{str(told['id'])[:8]}-{said}"[-_NAME_LIMIT:].lstrip("._-")


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{max(1, round(count / 1024))} KiB"
