import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from bot.demo.pinned_pool import PoolMode
from bot.demo.service import LOG_FILE, ServiceConfig, TranslateService
from tests.waiting import PATIENCE_SECONDS, wait_until

TEXT = "the order has been shipped and will arrive within three working days"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TranslateService]:
    running = TranslateService(
        ServiceConfig(
            port=0,
            data_dir=tmp_path,
            node="node-1",
            pool=PoolMode.PER_REQUEST,
            registration_seconds=0.02,
        )
    )
    thread = threading.Thread(target=running.server.serve_forever, args=(0.02,))
    thread.start()
    yield running
    running.close()
    thread.join(PATIENCE_SECONDS)


@pytest.fixture
def client(service: TranslateService) -> Iterator[httpx.Client]:
    url = f"http://127.0.0.1:{service.server.server_address[1]}"
    with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False) as client:
        yield client


def metric(client: httpx.Client, series: str, path: str = "/metrics") -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", client.get(path).text, re.MULTILINE)
    assert found is not None, f"{series} is not on the page"
    return float(found[1])


def wait_until_booked(client: httpx.Client, requests: int) -> None:
    """A request is booked just after its answer has left."""
    wait_until(
        lambda: metric(client, "http_server_request_duration_seconds_count") >= requests,
        "the requests are booked",
    )


def many_at_once(client: httpx.Client, count: int = 24) -> None:
    def one(_: int) -> None:
        client.post("/v1/translate", json={"text": TEXT}).raise_for_status()

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(one, range(count)))


def test_request_is_translated(client: httpx.Client) -> None:
    answer = client.post("/v1/translate", json={"text": TEXT})

    assert answer.status_code == 200
    assert answer.json()["translation"].startswith("订单")
    assert answer.json()["tokens"] > 5


def test_stages_add_up_to_the_time_of_the_request(client: httpx.Client) -> None:
    requests = 0

    def share() -> float:
        nonlocal requests
        requests += 1
        client.post("/v1/translate", json={"text": TEXT})
        wait_until_booked(client, requests)
        page = client.get("/metrics").text
        stages = dict(re.findall(r'app_stage_duration_seconds_sum\{stage="(\w+)"\} (\S+)', page))
        assert set(stages) == {
            *("read_input", "preprocess", "h2d", "wait_slot", "forward", "postprocess")
        }
        # The registration alone takes 20 ms of each copy.
        assert float(stages["h2d"]) >= requests * 0.02
        total = sum(float(value) for value in stages.values())
        whole = metric(client, "http_server_request_duration_seconds_sum")
        assert total <= whole
        return total / whole

    # A busy machine stops the service between two stages, but not every time.
    wait_until(lambda: share() >= 0.8, "the stages are most of the whole")


def test_every_request_registers_its_buffer_until_the_pool_is_preallocated(
    client: httpx.Client,
) -> None:
    many_at_once(client)
    registered = metric(client, "torch_host_alloc_total")
    client.post("/admin/pool", json={"mode": "preallocated"}).raise_for_status()
    many_at_once(client)

    assert registered == 24
    assert metric(client, "torch_host_alloc_total") == registered


def test_readings_of_the_missing_gpu_are_labelled(client: httpx.Client) -> None:
    client.post("/v1/translate", json={"text": TEXT})

    device = [line for line in client.get("/gpu-metrics").text.splitlines() if line[0] != "#"]
    memory = [line for line in client.get("/metrics").text.splitlines() if "torch_cuda" in line]
    assert device
    assert all('standin="true"' in line for line in device)
    assert all('standin="true"' in line for line in memory if line[0] != "#")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"no json", 400, id="no-json"),
        pytest.param(b"[1]", 400, id="list"),
        pytest.param(b'{"text": 5}', 400, id="number"),
        pytest.param(b"x" * 70_000, 413, id="too-large"),
    ],
)
def test_bad_body_is_refused_with_one_line(client: httpx.Client, body: bytes, code: int) -> None:
    answer = client.post("/v1/translate", content=body)

    assert answer.status_code == code
    assert set(answer.json()) == {"error"}


def test_unknown_pool_mode_changes_nothing(client: httpx.Client, service: TranslateService) -> None:
    answer = client.post("/admin/pool", json={"mode": "magic"})

    assert answer.status_code == 400
    assert service.pool.mode is PoolMode.PER_REQUEST


def test_logs_are_json_lines_that_say_nothing_unusual(client: httpx.Client, tmp_path: Path) -> None:
    for _ in range(100):
        client.post("/v1/translate", json={"text": "thank you"})

    log = tmp_path / LOG_FILE
    wait_until(lambda: "requests served" in log.read_text(), "a line is written")
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"count": 100, "level": "info"}.items() <= lines[-1].items()
    assert {line["level"] for line in lines} == {"info"}
