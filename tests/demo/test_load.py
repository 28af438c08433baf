import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import generate_latest

from bot.demo.load import Gateway, LoadConfig, create_app
from bot.demo.pinned_pool import PoolMode
from bot.demo.service import ServiceConfig, TranslateService
from bot.demo.spans import SpanExporter
from bot.demo.users import CROWDS, LoadPhase
from tests.waiting import PATIENCE_SECONDS, until

REGISTRATION = 0.024


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TranslateService]:
    running = TranslateService(
        ServiceConfig(
            port=0,
            data_dir=tmp_path,
            node="node-1",
            pool=PoolMode.PER_REQUEST,
            registration_seconds=REGISTRATION,
        )
    )
    thread = threading.Thread(target=running.server.serve_forever, args=(0.02,))
    thread.start()
    yield running
    running.close()
    thread.join(PATIENCE_SECONDS)


def gateway_to(target: str, client: httpx.AsyncClient, phase: LoadPhase) -> Gateway:
    config = LoadConfig(target=target, port=0, node="node-1", phase=phase, seed=3)
    return Gateway(config, client, SpanExporter(None, service="gateway", host="node-1"))


def reading(gateway: Gateway, series: str) -> float:
    page = generate_latest(gateway.metrics.registry).decode()
    found = re.search(rf"^{re.escape(series)} (\S+)", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


async def test_peak_queues_at_the_lock_and_the_preallocated_pool_ends_it(
    service: TranslateService,
) -> None:
    """The story in small: quiet, evening, fix; told by who stands in the queue, since the machine may be slow."""
    url = f"http://127.0.0.1:{service.server.server_address[1]}"
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as client:
        gateway = gateway_to(url, client, LoadPhase.BASELINE)
        sending = asyncio.create_task(gateway.run())

        def answered() -> float:
            return reading(gateway, "http_request_duration_seconds_count")

        def in_flight() -> float:
            return reading(gateway, "http_requests_in_flight")

        most = 0.0

        async def quiet() -> bool:
            nonlocal most
            most = max(most, in_flight())
            return answered() >= 8

        await until(quiet, "the afternoon goes by")
        assert 1 <= most <= CROWDS[LoadPhase.BASELINE].people

        gateway.phase = LoadPhase.PEAK
        queue = 4 * CROWDS[LoadPhase.BASELINE].people
        await until(lambda: in_flight() >= queue, "the evening's crowd stands in a queue")
        # Each of them registers a buffer of its own, one behind the other.
        await until(
            lambda: service.pool.statistics().slowest_host_alloc_seconds > queue * REGISTRATION,
            "one has waited for all before",
        )

        service.pool.switch(PoolMode.PREALLOCATED)
        before = answered()
        await until(
            lambda: answered() >= before + 2 * CROWDS[LoadPhase.PEAK].people,
            "what was queued before is answered",
        )
        registered = service.pool.statistics().host_allocs
        before = answered()
        await until(lambda: answered() >= before + 50, "it goes on")
        assert service.pool.statistics().host_allocs == registered
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def test_service_that_is_gone_is_counted_as_bad_gateway() -> None:
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as client:
        gateway = gateway_to("http://127.0.0.1:1", client, LoadPhase.PEAK)
        sending = asyncio.create_task(gateway.run())
        await until(lambda: reading(gateway, 'http_requests_total{code="502"}'), "one is counted")
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    assert "http_requests_in_flight 0.0" in generate_latest(gateway.metrics.registry).decode()


async def test_phase_is_switched_by_its_name_only() -> None:
    async with httpx.AsyncClient() as unused:
        gateway = gateway_to("http://127.0.0.1:1", unused, LoadPhase.IDLE)
        transport = httpx.ASGITransport(create_app(gateway))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            bad = [
                (await client.post("/phase", content=body)).status_code
                for body in (b"no json", b"[]", b'{"phase": "night"}', b"{}")
            ]
            good = await client.post("/phase", json={"phase": "baseline"})

    assert bad == [400] * 4
    assert good.json() == {"phase": "baseline"}
    assert gateway.phase is LoadPhase.BASELINE
