"""The webhook door over a real Redis, with a clock that a test moves."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from bot.app import build_services
from bot.cause import Catalogue
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.incident import Incident
from bot.incidents.responding import Via
from bot.inventory import Inventory
from bot.jobs.services import Services
from bot.settings import load_settings
from bot.store import index
from bot.store.index import ChangeLog
from bot.store.queue import Queue
from bot.store.transaction import Store
from bot.web.metrics import Metrics
from bot.web.webhooks import Webhooks

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TOKEN = {"Authorization": "Bearer hook"}
DATA = Path(__file__).resolve().parent.parent / "intake" / "data"


def payload(name: str) -> dict[str, Any]:
    import json

    return json.loads((DATA / name).read_text(encoding="utf-8"))


@dataclass
class Door:
    """A deployment without Slack: what comes in and what is on record."""

    store: Store
    services: Services
    http: httpx.AsyncClient
    now: list[datetime]

    def pass_time(self, **span: float) -> None:
        self.now[0] += timedelta(**span)

    async def post(self, sender: str, body: Any, **headers: str) -> httpx.Response:
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.http.post(f"/webhooks/{sender}", headers={**TOKEN, **headers}, **content)

    async def take(self, sender: str, body: Any) -> dict[str, Any]:
        answer = await self.post(sender, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def incident(self, incident_id: str = "INC-1") -> Incident:
        return (await self.services.journal.load(incident_id)).incident

    async def texts(self, incident_id: str = "INC-1") -> list[str]:
        entries = (await self.services.journal.load(incident_id)).entries
        return [entry.text.en for entry in entries if entry.text]

    async def ids(self) -> list[str]:
        found = await index.summaries(self.store, before=None, limit=10_000)
        return [item.id for item in reversed(found)]

    async def jobs(self, kind: str) -> list[dict[str, Any]]:
        import json

        keys = await self.store.text.keys("rca:q:job:*")
        bodies = [json.loads(item) for item in await self.store.text.mget(keys)] if keys else []
        return [item for item in bodies if item["kind"] == kind]

    async def resolve(self, incident_id: str = "INC-1", key: str = "resolve") -> None:
        via = Via(by="U0LEAD", at=self.now[0], key=key)
        await self.services.responding.resolve(incident_id, "done", via)


def nothing() -> None:
    return


@contextlib.asynccontextmanager
async def opened(redis_url: str, ports: DiagnosisPorts | None = None, **environment: str):
    toml = environment.pop("toml", None)
    settings = load_settings(
        {"RCA_WEBHOOK_TOKEN": "hook", "RCA_ALERT_CHANNEL": "C1", **environment}
    )
    if toml:
        settings = settings.model_copy(update=toml)
    store = Store(redis_url)
    now = [NOW]

    def clock() -> datetime:
        return now[0]

    ports = ports or DiagnosisPorts(
        inventory=Inventory(), catalogue=Catalogue(causes={}), clock=clock
    )
    services = build_services(settings, store, Queue(store), ports, nothing, clock)
    hooks = Webhooks(settings, services.openings, ChangeLog(store), Metrics(), nothing)
    transport = httpx.ASGITransport(Starlette(routes=hooks.routes()))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://bot") as http:
            yield Door(store, services, http, now)
    finally:
        await store.close()
