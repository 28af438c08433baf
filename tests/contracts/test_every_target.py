"""What every delivery target keeps to: known by its word, one line for everything that goes wrong, no secret in it."""

import asyncio
import socket

import httpx
import pytest

import bot.targets
from bot.console.check import Grade, _targets
from bot.errors import DeliveryError, Reason
from bot.registry import collect
from bot.settings import Settings
from bot.target import Means, Target
from bot.targets import _git_commands, _http, targets
from tests.targets.rig import NOW, Memory, deliver, parcel, settings_of
from tests.targets.servers import TOKEN
from tests.waiting import PATIENCE_SECONDS

KNOWN = collect(bot.targets, Target)
every = pytest.mark.parametrize("target", KNOWN.values(), ids=list(KNOWN))


def lines_for(target: Target, url: str) -> dict[str, str]:
    """The table that points a target at `url`."""
    return {
        "confluence": {"url": url, "space": "OPS", "kind": "data_center"},
        "git": {"url": f"{url}/postmortems.git"},
        "github": {"api": url, "repository": "acme/ops"},
    }[target.name]


def test_there_are_the_three_places():
    assert set(targets()) >= {"confluence", "git", "github"}


@every
async def test_target_that_is_not_set_up_says_what_to_add(target):
    assert not target.is_set_up(Settings())
    assert not target.may_be_private(Settings())
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        means = Means(settings=Settings(), http=http, progress=Memory(), clock=lambda: NOW)
        with pytest.raises(DeliveryError, match="RCA_CONFIG") as caught:
            await target.deliver(parcel(target.name), means)
    assert caught.value.reason is Reason.UNSUPPORTED


@every
async def test_server_that_is_down_is_one_line_and_worth_another_try(target, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: every connection is refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings = settings_of(tmp_path, target.name, lines_for(target, url))
        with pytest.raises(DeliveryError) as caught:
            await deliver(settings, target.name, parcel(target.name), Memory())
        graded = await _targets(settings)
    assert caught.value.reason in (Reason.REFUSED, Reason.TIMEOUT)
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert [(line.name, line.grade) for line in graded] == [(target.name, Grade.FAIL)]


@every
async def test_server_that_never_answers_is_given_up_in_time(target, tmp_path, monkeypatch):
    monkeypatch.setattr(_http, "TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(_git_commands, "TIMEOUT_SECONDS", 0.5)

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # the system takes the connection, and nobody ever reads it
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = settings_of(tmp_path, target.name, lines_for(target, url))
        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(DeliveryError) as caught:
                await deliver(settings, target.name, parcel(target.name), Memory())
    assert caught.value.reason is Reason.TIMEOUT


@every
def test_same_report_is_packed_the_same_twice(target):
    parcel.cache_clear()
    first = parcel(target.name)
    parcel.cache_clear()
    assert parcel(target.name) == first


@every
async def test_what_is_not_set_up_has_no_line_in_the_check(target):
    assert await _targets(Settings()) == []
