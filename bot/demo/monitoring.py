"""Configuration of the real Prometheus and Alertmanager that watch the demo, and how they are started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.demo.processes import Program
from bot.demo.service import SERVICE

ALERT = "TranslateLatencyHigh"
P99_QUERY = (
    "histogram_quantile(0.99, sum by (le, service) "
    f'(rate(http_request_duration_seconds_bucket{{service="{SERVICE}"}}[10s])))'
)
THRESHOLD_SECONDS = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeTarget:
    """One job of Prometheus; `labels` are put on all of its series."""

    job: str
    port: int
    labels: Mapping[str, str]
    path: str = "/metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    """Where both programs live and whom they tell."""

    directory: Path
    prometheus_port: int
    alertmanager_port: int
    webhook_url: str
    webhook_token: str
    targets: tuple[ScrapeTarget, ...]

    def write(self) -> None:
        """Writes the three files; JSON, which is YAML."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write("prometheus.yml", self._prometheus())
        self._write("rules.yml", _rules())
        self._write("alertmanager.yml", self._alertmanager(), mode=0o600)

    def programs(self) -> tuple[Program, Program]:
        """Prometheus and Alertmanager."""
        prometheus = f"127.0.0.1:{self.prometheus_port}"
        alertmanager = f"127.0.0.1:{self.alertmanager_port}"
        return (
            Program(
                name="Prometheus",
                command=(
                    "prometheus",
                    f"--config.file={self.directory / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self.directory / 'tsdb'}",
                    f"--web.listen-address={prometheus}",
                    "--storage.tsdb.retention.time=1d",
                    "--log.level=warn",
                ),
                log=self.directory / "prometheus.out",
                ready_url=f"http://{prometheus}/-/ready",
            ),
            Program(
                name="Alertmanager",
                command=(
                    "prometheus-alertmanager",
                    f"--config.file={self.directory / 'alertmanager.yml'}",
                    f"--storage.path={self.directory / 'alertmanager'}",
                    f"--web.listen-address={alertmanager}",
                    # Left at its default it opens a port on every address of the machine.
                    "--cluster.listen-address=",
                    "--log.level=warn",
                ),
                log=self.directory / "alertmanager.out",
                ready_url=f"http://{alertmanager}/-/ready",
            ),
        )

    def _write(self, name: str, content: object, mode: int = 0o644) -> None:
        path = self.directory / name
        path.touch(mode=mode)
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")

    def _prometheus(self) -> dict[str, Any]:
        return {
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "900ms",
                "evaluation_interval": "1s",
            },
            "rule_files": ["rules.yml"],
            "alerting": {
                "alertmanagers": [
                    {"static_configs": [{"targets": [f"127.0.0.1:{self.alertmanager_port}"]}]}
                ]
            },
            "scrape_configs": [
                {
                    "job_name": target.job,
                    "metrics_path": target.path,
                    "static_configs": [
                        {
                            "targets": [f"127.0.0.1:{target.port}"],
                            "labels": dict(target.labels),
                        }
                    ],
                }
                for target in self.targets
            ],
        }

    def _alertmanager(self) -> dict[str, Any]:
        return {
            "global": {"resolve_timeout": "5m"},
            "route": {
                "receiver": "rca-bot",
                "group_by": ["alertname", "service"],
                "group_wait": "0s",
                "group_interval": "5s",
                "repeat_interval": "1h",
            },
            "receivers": [
                {
                    "name": "rca-bot",
                    "webhook_configs": [
                        {
                            "url": self.webhook_url,
                            "send_resolved": True,
                            "http_config": {
                                "authorization": {
                                    "type": "Bearer",
                                    "credentials": self.webhook_token,
                                }
                            },
                        }
                    ],
                }
            ],
        }


def _rules() -> dict[str, Any]:
    return {
        "groups": [
            {
                "name": "translate",
                "rules": [
                    {
                        "alert": ALERT,
                        "expr": f"{P99_QUERY} > {THRESHOLD_SECONDS}",
                        "for": "5s",
                        "labels": {"severity": "page"},
                        "annotations": {
                            "summary": "P99 of {{ $labels.service }} is "
                            "{{ $value | humanizeDuration }}, objective 300 ms",
                        },
                    }
                ],
            }
        ]
    }
