"""A real Prometheus over given samples."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.conftest import free_port
from tests.waiting import wait_until


@contextmanager
def serving(home: Path, samples: Iterable[str]) -> Iterator[str]:
    """The address of a server that holds `samples`, lines of OpenMetrics with their time, while the block runs."""
    families: dict[str, list[str]] = {}
    for sample in samples:
        families.setdefault(sample.partition("{")[0], []).append(sample)
    text = [
        line for name in sorted(families) for line in (f"# TYPE {name} unknown", *families[name])
    ]
    source = home / "series.om"
    source.write_text("\n".join([*text, "# EOF", ""]), encoding="utf-8")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=24h", "openmetrics", "-q", source, home / "data"],
        check=True, capture_output=True,
    )  # fmt: skip
    (home / "prometheus.yml").write_text("scrape_configs: []\n")
    port = free_port()
    server = subprocess.Popen(
        ["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
         f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait_ready(url: str) -> None:
    """Returns once the server answers queries."""
    with httpx.Client(trust_env=False) as http:
        wait_until(lambda: http.get(f"{url}/-/ready").status_code == 200, f"{url} is ready")
