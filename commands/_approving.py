"""A heavy probe waits for somebody who may approve it; whoever of them presses first runs it, once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.command import Audience, Call, Permission, Reply, allowed
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Button
from bot.store import approvals
from bot.store.approvals import Approval
from commands._may import refused, with_who_may
from commands._reply import notice


async def ask_approval(
    call: Call,
    services: Services,
    names: Sequence[str],
    nodes: Sequence[str],
    args: dict[str, Any],
) -> Reply:
    """Keeps the request, so that whoever may approve finds it in their Home, and shows it in the incident's thread."""
    waiting = Approval(
        id=hashlib.sha256(call.key.encode()).hexdigest()[:16],
        by=call.user,
        at=call.at,
        probes=names,
        nodes=nodes,
        args=args,
        incident=call.incident,
        channel=call.channel,
        thread_ts=call.thread_ts,
    )
    await services.store.commit(approvals.keep(waiting), doing="keep what waits for approval")
    what = {"id": waiting.id, "probes": list(names), "nodes": list(nodes), "args": args}
    listed = f"{', '.join(names)} @ {', '.join(nodes)}"
    button = Button(
        action_id="rca.probe.approve",
        label=say("commands.approve"),
        payload=what,
        style="danger",
        confirm=say("commands.approve_sure", what=listed),
    )
    asked = say("commands.needs_approval", what=listed)
    text = with_who_may(asked, services.settings.policy, Permission.APPROVE_HEAVY)
    reply = notice(text, button)
    # Whoever may approve has to see it, and that is often not the one who asks.
    return replace(reply, audience=Audience.THREAD) if call.incident is not None else reply


async def approve(call: Call, services: Services, what: dict[str, Any]) -> Reply:
    """Runs what was asked for, once, whoever of those who may presses first."""
    if not allowed(services.settings.policy, call.user, Permission.APPROVE_HEAVY):
        raise CommandError(
            refused(services.settings.policy, Permission.APPROVE_HEAVY), reason=Reason.UNAUTHORISED
        )
    waiting = await approvals.find(services.store, str(what.get("id") or ""))
    # Taken up under this very key: the process died before it could say so.
    if waiting is None or waiting.taken not in ("", call.key):
        raise CommandError(say("commands.approval_gone"), reason=Reason.CONFLICT)
    job = requests.probe(
        waiting.incident,
        probes=waiting.probes,
        nodes=waiting.nodes,
        args=waiting.args,
        by=waiting.by,
        approved_by=call.user,
        channel=waiting.channel,
        thread_ts=waiting.thread_ts,
    )
    await services.outbox.send(job, once=f"approval:{waiting.id}")
    taken = approvals.keep(replace(waiting, taken=call.key))
    await services.store.commit(taken, doing="take up an approval")
    if waiting.incident is not None:
        listed = f"{', '.join(waiting.probes)} @ {', '.join(waiting.nodes)}"
        draft = Draft(
            kind=EntryKind.SYSTEM,
            at=call.at,
            text=say("commands.approved_entry", what=listed),
            author=call.user,
            source=call.source,
            data={"op": "note", "approval": waiting.id, "asked_by": waiting.by},
        )
        await services.journal.record(
            waiting.incident, lambda _: [draft], once=f"approval:{waiting.id}:entry"
        )
    return notice(say("commands.probing", probes=len(waiting.probes), nodes=len(waiting.nodes)))
