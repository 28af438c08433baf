"""A name is a name in every query, whatever signs it holds: asked of a real Prometheus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from bot.diagnosis.plan import Scope, any_of, log_selector
from bot.domain.instant import Window
from bot.inventory import Service
from bot.source import Connection
from bot.sources.prometheus import Prometheus
from tests.sources.real_prometheus import serving, wait_ready

AT = datetime(2026, 3, 4, 2, 0, tzinfo=UTC)
NAMES = [
    "o'neil-pool", 'the "big" one', r"back\slash", r"\d", "a|b", "a.b(c)*[d]{2}", "two words", "new\nline",
    "$node", "$w", "r&d #1", "翻译-服务", "^a$", "emoji 🙂", "}", ",x=", "a-b",
]  # fmt: skip


def written(value: str) -> str:
    """A label value as the exposition format has it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    samples = [
        f'gauge{{pool="{written(name)}",service="{written(name)}",node="{written(name)}",pod="{written(name)}-0"}}'
        f" {at} {(AT - timedelta(minutes=5)).timestamp():.0f}"
        for at, name in enumerate(NAMES)
    ]
    with serving(tmp_path_factory.mktemp("names"), samples) as found:
        wait_ready(found)
        yield found


@pytest.fixture
async def client(url: str) -> AsyncIterator[Prometheus]:
    async with httpx.AsyncClient(trust_env=False) as http:
        made = Prometheus(Connection(url=url, http=http))
        yield made
        await made.aclose()


async def found(client: Prometheus, query: str) -> list[float]:
    answer = await client.range(query, Window.before(AT, 600), step_seconds=60, timeout_seconds=60)
    return sorted(
        {item.value for one in answer.items for item in one.samples if item.value is not None}
    )


@pytest.mark.parametrize("name", NAMES)
async def test_one_series_is_found_by_a_name_with_any_signs(client: Prometheus, name: str) -> None:
    own = [float(NAMES.index(name))]
    by_pool = Service(name="x", selectors={"pool": name})
    by_name = Scope(service=Service(name=name), nodes=(name,), rate_seconds=60)
    asked = [
        Scope(service=by_pool, nodes=(), rate_seconds=60).fill("gauge{$service}"),
        by_name.fill("gauge{$name}"),
        by_name.fill("gauge{$service}"),
        by_name.fill("gauge{$node}"),
        *by_name.by_pod("gauge{$service}"),
    ]
    assert [await found(client, query) for query in asked] == [own] * len(asked)


async def test_each_of_many_names_is_found_and_no_other(client: Prometheus) -> None:
    wanted = NAMES[:6]
    query = f'gauge{{pool=~"{any_of(wanted)}"}}'
    assert await found(client, query) == [float(at) for at in range(6)]


@pytest.mark.parametrize("name", NAMES)
async def test_selector_of_streams_is_written_as_that_of_series(
    client: Prometheus, name: str
) -> None:
    selector = log_selector({"pool": name})
    assert await found(client, f"gauge{selector}") == [float(NAMES.index(name))]
