"""Whole deployments for the scenarios."""

import pytest

from tests.scenarios.rig import Deployment


@pytest.fixture
async def deployment(tmp_path):
    """Redis and the workspace are up; the bot is the test's own to start, and to kill."""
    rig = Deployment(tmp_path)
    try:
        await rig.start_redis()
        await rig.start_workspace()
        yield rig
    finally:
        await rig.close()
