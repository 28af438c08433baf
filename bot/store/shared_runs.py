"""One run for all replicas: whoever takes the lease of a name does the work, the others read its answer.

A name holds either its holder's mark, which ends soon unless it is renewed, or the answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.store.connection import store_faults
from bot.store.transaction import Batch, Store

LEASE_SECONDS = 3.0
"""How long a replica that died keeps others waiting; the living renew three times in it. Basis: judgement."""

_HELD = "held:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """An answer, and when its run began by the clock of the replica that ran it."""

    began: datetime
    answer: dict[str, Any]


def _key(name: str) -> str:
    return f"rca:run:{name}"


async def look(store: Store, name: str, holder: str) -> Ran | bool:
    """The answer that is there; True: `holder` has the lease now and does the work; False: another one has it.

    Raises:
        StoreError: Redis is not reachable.
    """
    mark = f"{_HELD}{holder}"
    async with store_faults("share a run"):
        if await store.text.set(_key(name), mark, nx=True, px=int(LEASE_SECONDS * 1000)):
            return True
        # Not in one command: Redis 6.2 has no SET with both NX and GET.
        there = await store.text.get(_key(name))
    if there is None or str(there).startswith(_HELD):
        # A repeat of a SET whose answer was lost finds its own mark.
        return there == mark
    body = json.loads(there)
    return Ran(began=parse_rfc3339(body["began"]), answer=body["answer"])


async def renew(store: Store, name: str, holder: str) -> bool:
    """Keeps the lease for as long again; False when it was lost.

    Raises:
        StoreError: Redis is not reachable.
    """
    mark = f"{_HELD}{holder}"
    step = Batch().equals(_key(name), mark)
    step.write("PEXPIRE", _key(name), int(LEASE_SECONDS * 1000))
    return (await store.commit(step, doing="share a run")).is_done


async def publish(store: Store, name: str, holder: str, ran: Ran, *, seconds: float) -> None:
    """Puts the answer where the lease was, for `seconds`; one whose lease was lost puts nothing.

    Raises:
        StoreError: Redis is not reachable.
    """
    body = json.dumps({"began": to_rfc3339(ran.began), "answer": ran.answer}, ensure_ascii=False)
    step = Batch().equals(_key(name), f"{_HELD}{holder}")
    step.write("SET", _key(name), body, "PX", max(1, int(seconds * 1000)))
    await store.commit(step, doing="share a run")


async def give_up(store: Store, name: str, holder: str) -> None:
    """Frees the lease of a run that came to nothing.

    Raises:
        StoreError: Redis is not reachable.
    """
    step = Batch().equals(_key(name), f"{_HELD}{holder}").write("DEL", _key(name))
    await store.commit(step, doing="share a run")
