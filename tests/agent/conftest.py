"""Agents and services for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agent.live_agent import LiveAgent, start_agent

ROOMY = "[limits]\nrequests_per_minute = 100000\nmoderate_per_minute = 100000\n"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAgent]:
    """One agent for the module, with a rate limit that the tests do not reach."""
    started = start_agent(tmp_path_factory.mktemp("agent"), ROOMY)
    yield started
    started.stop()


@pytest.fixture
def agent_factory(tmp_path: Path) -> Iterator[Callable[..., LiveAgent]]:
    """Starts agents that end with the test; the keys stay over a restart in the same folder."""
    started: list[LiveAgent] = []

    def start(config: str = ROOMY, name: str = "one", **more: object) -> LiveAgent:
        started.append(start_agent(tmp_path / name, config, **more))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for one in started:
        one.stop()
