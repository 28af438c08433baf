import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE_SECONDS


def test_missing_packages_stop_the_demo_before_anything_is_started(
    tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "bin").mkdir()

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "bot.cli",
            "demo",
            "--headless",
            "--data-dir",
            str(tmp_path / "runs"),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        cwd=repository,
        env={**os.environ, "PATH": str(tmp_path / "bin")},
    )

    assert done.returncode == 1
    assert done.stdout == ""
    line = done.stderr.strip()
    assert "\n" not in line
    assert line.startswith(
        "rca-bot: demo: packages are missing; run: sudo apt-get install -y --no-install-recommends "
        "prometheus prometheus-alertmanager redis-server"
    )
    assert not (tmp_path / "runs").exists()
