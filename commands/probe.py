"""`/rca probe`: asks the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from bot.command import Call, Permission, Reply, allowed, command
from bot.errors import CommandError, Reason
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from commands import _line, _typed
from commands._approving import approve, ask_approval
from commands._probe_line import named_args, named_nodes, service_of
from commands._probe_names import CHEAP, FAMILIES, HEAVY, MODERATE, PROBES, args_of, of_family
from commands._reply import notice

USAGE = "probe NAME|gpu|host|service on NODE[,NODE…]|all [key=value…]"
_ON = ("on", "@", "在", "于")


@command(
    name="probe",
    usage=USAGE,
    en="Run a read-only check on nodes (gpu, host, service: all cheap ones of that family); the odd node is marked.",
    zh="在节点上执行只读检查（gpu、host、service 代表该类全部轻量探针）；标出异常节点。",
    needs_incident=False,
    wants_incident=True,
)
async def probe(call: Call, services: Services) -> Reply:
    """Queues the run; a heavy one waits for somebody who may approve it."""
    approver = call.payload.get("approve")
    if approver is not None:
        return await approve(call, services, dict(approver))
    # Nothing in this line is prose: half width, straight dashes, and no marks of code.
    words = _typed.narrow(_line.read(call.text).text.replace("`", "")).split()
    options = [word for word in words if "=" in word]
    plain = [word for word in words if "=" not in word]
    lowered = [word.lower() for word in plain]
    at = next((place for place, word in enumerate(lowered) if place and word in _ON), 0)
    if not at or len(plain) < at + 2:
        raise _line.wrong(USAGE)
    names = _probes(" ".join(lowered[:at]))
    nodes = named_nodes(",".join(plain[at + 1 :]), services, USAGE)
    args = named_args(options, USAGE)
    incident = (await services.journal.load(call.incident)).incident if call.incident else None
    if any(PROBES[name].needs_service for name in names) and "service" not in args:
        args |= service_of(services, incident.service if incident else None)
    _ask_arguments(names, args)
    _ask_policy(call, services, {PROBES[name].cost for name in names})
    if any(PROBES[name].cost == HEAVY for name in names):
        return await ask_approval(call, services, names, nodes, args)
    return await _run(call, services, names, nodes, args)


def _ask_arguments(names: Sequence[str], args: Mapping[str, Any]) -> None:
    """Before anybody is asked for an approval: a node would only answer that an argument is missing or unknown."""
    taken = {word for name in names for word in PROBES[name].takes}
    for word in args:
        if word not in taken:
            listed = ", ".join(sorted(taken)) or "–"
            shown = ", ".join(names)
            raise CommandError(
                say("commands.probe_takes", name=shown, word=word[:40], takes=listed),
                reason=Reason.MALFORMED,
            )
    for name in names:
        lacking = [f"{word}=…" for word in PROBES[name].needs if word not in args]
        if lacking:
            words = " ".join(lacking)
            raise CommandError(
                say("commands.probe_needs", name=name, words=words, usage=USAGE),
                reason=Reason.MALFORMED,
            )


def _ask_policy(call: Call, services: Services, costs: Set[str]) -> None:
    for cost, permission in ((CHEAP, Permission.RUN_CHEAP), (MODERATE, Permission.RUN_MODERATE)):
        if cost in costs and not allowed(services.settings.policy, call.user, permission):
            raise CommandError(say("commands.may_not_probe", cost=cost), reason=Reason.UNAUTHORISED)


def _probes(word: str) -> tuple[str, ...]:
    if word in FAMILIES:
        return of_family(word)
    name = word.replace("-", "_").replace(" ", "_")
    if name in PROBES:
        return (name,)
    near = _line.nearest(name, (*PROBES, *FAMILIES)) or "gpu"
    raise CommandError(
        say("commands.unknown_probe", name=word[:40], near=near), reason=Reason.NOT_FOUND
    )


async def _run(
    call: Call,
    services: Services,
    names: Sequence[str],
    nodes: Sequence[str],
    args: dict[str, Any],
) -> Reply:
    job = requests.probe(
        call.incident,
        probes=names,
        nodes=nodes,
        args=args,
        args_of=args_of(names, args),
        by=call.user,
        channel=call.channel,
        thread_ts=call.thread_ts,
    )
    await services.outbox.send(job, once=f"{call.key}:probe")
    return notice(say("commands.probing", probes=len(names), nodes=len(nodes)))
