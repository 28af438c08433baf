from collections.abc import AsyncIterator

import httpx
import pytest

from bot.demo.console import create_app
from bot.demo.remedies import Remedy
from bot.errors import BotError


class Actions:
    def __init__(self) -> None:
        self.done: list[Remedy] = []
        self.fault: BotError | None = None

    async def apply(self, remedy: Remedy) -> None:
        if self.fault is not None:
            raise self.fault
        self.done.append(remedy)

    async def p99(self) -> float | None:
        return 0.612


@pytest.fixture
def actions() -> Actions:
    return Actions()


@pytest.fixture
async def client(actions: Actions) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(actions.apply, actions.p99))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8") as client:
        yield client


async def test_page_offers_every_action_and_shows_p99(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text

    assert "612 ms" in page
    assert all(f'action="/apply/{remedy.value}"' in page for remedy in Remedy)


async def test_pressed_action_is_done_once(client: httpx.AsyncClient, actions: Actions) -> None:
    answer = await client.post("/apply/preallocate", headers={"Origin": "http://127.0.0.1:8"})

    assert answer.status_code == 303
    assert actions.done == [Remedy.PREALLOCATE]


async def test_foreign_forms_names_and_actions_are_refused(
    client: httpx.AsyncClient, actions: Actions
) -> None:
    elsewhere = await client.post("/apply/preallocate", headers={"Origin": "http://evil.example"})
    rebound = await client.get("/", headers={"Host": "evil.example"})
    unknown = await client.post("/apply/reboot")

    assert (elsewhere.status_code, rebound.status_code, unknown.status_code) == (403, 400, 404)
    assert actions.done == []


async def test_action_that_failed_is_said_in_one_line(
    client: httpx.AsyncClient, actions: Actions
) -> None:
    actions.fault = BotError("the service is gone; start the demo again")

    answer = await client.post("/apply/stop-neighbour")

    assert answer.status_code == 502
    assert answer.text == "the service is gone; start the demo again\n"
