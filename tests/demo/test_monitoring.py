import subprocess
from pathlib import Path

from bot.demo.monitoring import Monitoring, ScrapeTarget
from tests.waiting import PATIENCE_SECONDS


def test_written_configuration_is_what_the_real_programs_accept(tmp_path: Path) -> None:
    monitoring = Monitoring(
        directory=tmp_path,
        prometheus_port=1,
        alertmanager_port=2,
        webhook_url="http://127.0.0.1:3/webhooks/alertmanager",
        webhook_token='a "quoted" token',
        targets=(ScrapeTarget(job="node", port=4, labels={"node": "n-1"}),),
    )

    monitoring.write()

    for command in (
        ["promtool", "check", "config", str(tmp_path / "prometheus.yml")],
        ["amtool", "check-config", str(tmp_path / "alertmanager.yml")],
    ):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "alertmanager.yml").stat().st_mode & 0o077 == 0
