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
from bot.demo.users import LoadPhase


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TranslateService]:
    running = TranslateService(
        ServiceConfig(
            port=0,
            data_dir=tmp_path,
            node="node-1",
            pool=PoolMode.PER_REQUEST,
            registration_seconds=0.024,
        )
    )
    thread = threading.Thread(target=running.server.serve_forever, args=(0.02,))
    thread.start()
    yield running
    running.close()
    thread.join(5)


def gateway_to(target: str, client: httpx.AsyncClient, phase: LoadPhase) -> Gateway:
    config = LoadConfig(target=target, port=0, node="node-1", phase=phase, seed=3)
    return Gateway(config, client, SpanExporter(None, service="gateway", host="node-1"))


def mean_seconds(
    gateway: Gateway, before: tuple[float, float]
) -> tuple[float, tuple[float, float]]:
    page = generate_latest(gateway.metrics.registry).decode()
    total, count = (
        float(re.search(rf"^http_request_duration_seconds_{name} (\S+)", page, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("sum", "count")
    )
    return (total - before[0]) / max(count - before[1], 1), (total, count)


async def test_peak_queues_at_the_lock_and_the_preallocated_pool_ends_it(
    service: TranslateService,
) -> None:
    """The story in small: quiet, evening, fix; compared by ratio, since the machine may be slow."""
    url = f"http://127.0.0.1:{service.server.server_address[1]}"
    async with httpx.AsyncClient(timeout=20, trust_env=False) as client:
        gateway = gateway_to(url, client, LoadPhase.BASELINE)
        sending = asyncio.create_task(gateway.run())
        means = []
        seen = (0.0, 0.0)
        for phase, pool in (
            (LoadPhase.BASELINE, PoolMode.PER_REQUEST),
            (LoadPhase.PEAK, PoolMode.PER_REQUEST),
            (LoadPhase.PEAK, PoolMode.PREALLOCATED),
        ):
            gateway.phase = phase
            service.pool.switch(pool)
            await asyncio.sleep(4.0)  # the crowd gathers, and what was queued before is answered
            _, seen = mean_seconds(gateway, seen)
            await asyncio.sleep(3.0)
            mean, seen = mean_seconds(gateway, seen)
            means.append(mean)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    quiet, evening, fixed = means
    assert evening > 3 * quiet
    assert evening > 3 * fixed


async def test_service_that_is_gone_is_counted_as_bad_gateway() -> None:
    async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
        gateway = gateway_to("http://127.0.0.1:1", client, LoadPhase.PEAK)
        sending = asyncio.create_task(gateway.run())
        async with asyncio.timeout(20):
            while b'http_requests_total{code="502"}' not in generate_latest(
                gateway.metrics.registry
            ):
                await asyncio.sleep(0.05)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    page = generate_latest(gateway.metrics.registry).decode()
    assert "http_requests_in_flight 0.0" in page


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
