import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from bot.demo.log_store import LogStore
from bot.demo.loki import create_app
from bot.domain.instant import Window
from bot.source import Connection
from bot.sources.loki import Loki

START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
URL = "http://loki.test"


def write_lines(path: Path, *entries: tuple[int, str, str]) -> None:
    with path.open("a") as file:
        for seconds, level, message in entries:
            at = START + timedelta(seconds=seconds)
            line = {"ts": at.isoformat(), "level": level, "service": "shop", "msg": message}
            file.write(json.dumps(line) + "\n")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    write_lines(
        tmp_path / "shop.log",
        (0, "info", "served 100"),
        (10, "error", "peer gone"),
        (20, "info", "served 200"),
        (70, "info", "served 300"),
    )
    (tmp_path / "junk.log").write_text("no json\n[1]\n{}\n")
    transport = httpx.ASGITransport(create_app(LogStore(tmp_path, node="node-1")))
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield client


def window(seconds: int = 120) -> Window:
    return Window(START, START + timedelta(seconds=seconds))


async def test_bot_source_reads_lines_and_volume(client: httpx.AsyncClient) -> None:
    loki = Loki(Connection(url=URL, http=client))

    lines = await loki.lines(
        '{service="shop", level!="debug"} |= "served" != "200"',
        window(),
        limit=10,
        timeout_seconds=5,
    )
    volume = await loki.volume(
        'sum by (service) (count_over_time({service="shop"}[60s]))',
        Window(START + timedelta(seconds=60), START + timedelta(seconds=120)),
        step_seconds=60,
        timeout_seconds=5,
    )

    assert [json.loads(line.text)["msg"] for line in lines.items] == ["served 100", "served 300"]
    assert lines.items[0].labels["node"] == "node-1"
    # A range takes in its end and leaves out its beginning, so the line at 0 s is not in the first minute.
    assert [sample.value for sample in volume.items[0].samples] == [2, 1]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        pytest.param('{service=~"sh.*"}', 4, id="pattern-must-match-whole-value"),
        pytest.param('{service=~"sh"}', 0, id="pattern-of-a-part"),
        pytest.param('{service!~"other", job="app"}', 4, id="negative-pattern"),
        pytest.param('{service="shop"} |~ "served [12]"', 2, id="line-pattern"),
        pytest.param('{service="shop"} !~ "served"', 1, id="line-pattern-not"),
        pytest.param('{service="shop"} | json | msg=~"peer.*"', 1, id="json-field"),
        pytest.param('{service="shop"} | level = `error`', 1, id="stream-label"),
    ],
)
async def test_selectors_and_filters(client: httpx.AsyncClient, query: str, count: int) -> None:
    params = {"query": query, "start": START.isoformat(), "end": window().end.isoformat()}

    answer = await client.get("/loki/api/v1/query_range", params=params)

    streams = answer.json()["data"]["result"]
    assert sum(len(stream["values"]) for stream in streams) == count


async def test_rates_and_aggregations(client: httpx.AsyncClient) -> None:
    async def instant(query: str) -> dict[str, str]:
        at = str((START + timedelta(seconds=30)).timestamp())
        params = {"query": query, "time": at}
        rows = (await client.get("/loki/api/v1/query", params=params)).json()["data"]["result"]
        return {row["metric"].get("level", "all"): row["value"][1] for row in rows}

    inner = 'count_over_time({service="shop"}[31s])'
    assert await instant(f"sum({inner})") == {"all": "3"}
    assert await instant(f"sum by (level) ({inner})") == {"info": "2", "error": "1"}
    assert await instant(f"max without (level) ({inner})") == {"all": "2"}
    assert await instant(f"topk(1, {inner})") == {"info": "2"}
    assert await instant('sum(rate({service="shop"}[20s]))') == {"all": "0.05"}
    assert float((await instant('sum(bytes_over_time({level="error"}[60s]))'))["all"]) > 50


async def test_line_that_is_still_being_written_is_read_once_it_ends(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    async def messages() -> int:
        params = {
            "query": '{service="shop"}',
            "start": START.isoformat(),
            "end": (START + timedelta(days=1)).isoformat(),
        }
        found = (await client.get("/loki/api/v1/query_range", params=params)).json()
        return sum(len(stream["values"]) for stream in found["data"]["result"])

    entry = json.dumps(
        {"ts": (START + timedelta(seconds=90)).isoformat(), "level": "info", "service": "shop"}
    )
    with (tmp_path / "shop.log").open("a") as file:
        file.write(entry[:20])
        file.flush()
        before = await messages()
        file.write(entry[20:] + "\n")
        file.flush()
        after = await messages()

    assert (before, after) == (4, 5)


async def test_labels_and_series(client: httpx.AsyncClient) -> None:
    span = {"start": START.isoformat(), "end": window().end.isoformat()}

    async def data(path: str, **more: str) -> object:
        return (await client.get(f"/loki/api/v1/{path}", params=span | more)).json()["data"]

    assert await data("labels") == ["job", "level", "node", "service"]
    assert await data("label/level/values") == ["error", "info"]
    assert await data("series", **{"match[]": '{level="error"}'}) == [
        {"job": "app", "level": "error", "node": "node-1", "service": "shop"}
    ]
    assert (await client.get("/ready")).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "",
        "{",
        '{service=""}',
        '{service="shop"} | line_format "x"',
        'quantile_over_time(0.9, {service="shop"}[1m])',
        'rate({service="shop"}[1x])',
        '{service=~"("}',
        '{service="shop"} }',
    ],
    ids=["empty", "open", "matches-all", "stage", "function", "duration", "pattern", "rest"],
)
async def test_query_outside_the_subset_is_400_with_one_line(
    client: httpx.AsyncClient, query: str
) -> None:
    answer = await client.get("/loki/api/v1/query_range", params={"query": query})

    assert answer.status_code == 400
    assert len(answer.text.strip().splitlines()) == 1
