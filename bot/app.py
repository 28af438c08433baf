"""The composition root: settings in, a running bot out. Nothing else wires anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx

from bot.cause import Catalogue
from bot.checklist import shipped_checklists
from bot.diagnosis.knowledge import lint as lint_causes
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.text import Locale
from bot.errors import ConfigError, StoreError
from bot.exporters import exporters
from bot.incidents.checklists import Checklists
from bot.incidents.journal import Journal
from bot.incidents.knowledge import Knowledge
from bot.incidents.opening import Openings
from bot.incidents.responding import Responding
from bot.incidents.shelf import Known, Shelf
from bot.inventory import Inventory, load_inventory
from bot.jobs.beginnings import Beginnings
from bot.jobs.outbox import Outbox
from bot.jobs.services import Services
from bot.learning.archive import Archive
from bot.locales import catalogue as sentences
from bot.settings import Settings
from bot.sop import lint as lint_sops
from bot.sop import load_sop, shipped_sops
from bot.source import Connection, TracesSource
from bot.sources._agent_tls import agent_tls
from bot.sources.alertmanager import Alertmanager
from bot.sources.jaeger import Jaeger
from bot.sources.kubernetes import Kubernetes
from bot.sources.loki import Loki
from bot.sources.node_agent import NodeAgents
from bot.sources.prometheus import Prometheus
from bot.sources.tempo import Tempo
from bot.store.embedded import EmbeddedRedis
from bot.store.index import ChangeLog
from bot.store.queue import Queue
from bot.store.transaction import Store

ACCEPTED_SECONDS = 3.0
"""How long a diagnosis from the shell waits for accepted causes; it has ten seconds for everything. Basis: judgement."""


def utc_now() -> datetime:
    """The real clock; everything below takes a clock as an argument."""
    return datetime.now(UTC)


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    """The store of a deployment, with the embedded server behind it where no `REDIS_URL` is set.

    Raises:
        ConfigError: no server can be started here.
        StoreError: the server did not come up.
    """
    embedded: EmbeddedRedis | None = None
    url = settings.redis_url
    if url is None:
        embedded = EmbeddedRedis(settings.data_dir)
        url = await asyncio.to_thread(embedded.start)
    store = Store(url)
    try:
        yield store
    finally:
        await store.close()
        if embedded is not None:
            await asyncio.to_thread(embedded.stop)


@asynccontextmanager
async def open_ports(settings: Settings, store: Store) -> AsyncIterator[DiagnosisPorts]:
    """Every configured source, the node agents and the catalogue."""
    inventory = load_inventory(settings.nodes)
    catalogue = load_catalogue(settings)
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx.AsyncClient(follow_redirects=False))

        def connection(url: str) -> Connection:
            return Connection(url=url, http=http)

        metrics = (
            Prometheus(connection(settings.prometheus_url)) if settings.prometheus_url else None
        )
        if metrics is not None:
            stack.push_async_callback(metrics.aclose)
        agents = open_agents(settings, inventory)
        if agents is not None:
            stack.push_async_callback(agents.aclose)
        yield DiagnosisPorts(
            inventory=inventory,
            catalogue=catalogue,
            clock=utc_now,
            metrics=metrics,
            logs=Loki(connection(settings.loki_url)) if settings.loki_url else None,
            traces=_traces(settings, connection),
            changes=ChangeLog(store),
            cluster=_cluster(settings, http),
            probes=agents,
            silences=Alertmanager(connection(url)) if (url := settings.alertmanager_url) else None,
        )


@asynccontextmanager
async def diagnosis_ports(settings: Settings) -> AsyncIterator[DiagnosisPorts]:
    """Store and ports together, for a diagnosis without a bot."""
    async with open_store(settings) as store, open_ports(settings, store) as ports:
        catalogue = ports.catalogue
        # Without Redis the ranking goes by the causes of the files; that changes are unreachable, it says itself.
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(ACCEPTED_SECONDS):
                catalogue = (await open_shelf(settings, store, catalogue).known()).catalogue
        yield replace(ports, catalogue=catalogue)


def _cluster(settings: Settings, http: httpx.AsyncClient) -> Kubernetes | None:
    if settings.kubernetes_url is None:
        return None
    token = settings.kubernetes_token
    return Kubernetes(
        Connection(
            url=settings.kubernetes_url,
            http=http,
            token=token.get_secret_value() if token else None,
        )
    )


def open_agents(settings: Settings, inventory: Inventory) -> NodeAgents | None:
    """The client of the node agents; None without a signing key.

    Raises:
        ConfigError: the key or a certificate cannot be used.
    """
    if settings.agent_key is None:
        return None
    try:
        key = settings.agent_key.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"RCA_AGENT_KEY: {settings.agent_key} cannot be read: {error}; "
            "make one with: rca-bot agent keygen --out DIR"
        ) from error
    tls = agent_tls(settings.agent_ca, settings.agent_client_cert, settings.agent_client_key)
    return NodeAgents(inventory, key, tls=tls, now=utc_now)


def load_catalogue(settings: Settings) -> Catalogue:
    """The shipped causes, and the team's own over them."""
    return load_causes([shipped_causes(), *_own(settings, "causes")])


def _own(settings: Settings, kind: str) -> list[Path]:
    if settings.knowledge_dir is None:
        return []
    folder = settings.knowledge_dir / kind
    return [folder] if folder.is_dir() else []


def lint_knowledge(paths: Sequence[Path]) -> tuple[list[str], int]:
    """Faults of the shipped knowledge, or of `paths`; and how many files were looked at."""
    from bot.checklist import lint as lint_checklists
    from bot.locales import templates_root
    from commands._probe_names import PROBES

    wanted = list(paths) or [templates_root()]
    for path in wanted:
        if not path.exists():
            raise ConfigError(f"{path}: does not exist; name a file or a folder")
    faults: list[str] = []
    for lint in (lint_causes, lint_sops):
        faults.extend(str(fault) for fault in lint(wanted))
    faults.extend(str(fault) for fault in lint_checklists(wanted, frozenset(PROBES)))
    files = {
        file
        for path in wanted
        for file in ([path] if path.is_file() else path.rglob("*.yaml"))
        if "locales" not in file.parts
    }
    return sorted(set(faults)), len(files)


def open_shelf(settings: Settings, store: Store, catalogue: Catalogue | None = None) -> Shelf:
    """The knowledge of a deployment: shipped and team files, with the accepted changes over them.

    catalogue: of the files, where it was read already.
    """
    files = Known(
        sop=load_sop([shipped_sops(), *_own(settings, "sops")]),
        catalogue=catalogue or load_catalogue(settings),
    )
    return Shelf(store, [shipped_checklists(), *_own(settings, "checklists")], files)


def build_services(
    settings: Settings,
    store: Store,
    queue: Queue,
    ports: DiagnosisPorts,
    wake: Callable[[], None],
    clock: Callable[[], datetime] = utc_now,
) -> Services:
    """Wires the parts of one deployment."""
    for locale in Locale:
        # Read now: the first alert must not wait for it, and a broken file stops the start.
        sentences(locale)
    journal = Journal(store, clock)
    beginnings = Beginnings(settings, clock)
    openings = Openings(
        store,
        journal,
        ports.inventory,
        settings,
        clock,
        beginnings.for_new,
        beginnings.for_news,
        beginnings.for_recovery,
        beginnings.for_words,
    )
    responding = Responding(journal, beginnings.for_news)
    shelf = open_shelf(settings, store, ports.catalogue)
    return Services(
        settings=settings,
        clock=clock,
        store=store,
        queue=queue,
        inventory=ports.inventory,
        journal=journal,
        openings=openings,
        responding=responding,
        outbox=Outbox(store, clock, wake),
        ports=ports,
        knowledge=Knowledge(store, shelf),
        exporters=exporters(),
        wake=wake,
        archive=Archive(store, journal),
        shelf=shelf,
        checklists=Checklists(shelf, store, journal, responding),
    )


def _traces(settings: Settings, connection: Callable[[str], Connection]) -> TracesSource | None:
    if settings.jaeger_url:
        return Jaeger(connection(settings.jaeger_url))
    return Tempo(connection(settings.tempo_url)) if settings.tempo_url else None
