"""The whole catalogue on a real GPU: `make gpu`, or `sh tests/gpu/on_device.sh` where nothing is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """Known here too, because an environment of the agent alone is run without the project's settings."""
    config.addinivalue_line("markers", "gpu: needs a real GPU")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Collected only when this folder itself is named: a machine without a GPU has nothing to look at."""
    named = [Path(config.invocation_params.dir, word.partition("::")[0]) for word in config.args]
    is_named = any(FOLDER in (path.resolve(), *path.resolve().parents) for path in named)
    return None if is_named else True
