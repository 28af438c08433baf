"""Alert rules from an incident's own series: what promtool takes, and what fires in promtool's own test of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import yaml

from bot.cause import Catalogue
from bot.checklist.diffs import files_of
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.checklist import ChecklistChange, ProposalKind
from bot.domain.evidence import BlindSpot, Evidence, EvidenceSource, Gap, SourceState
from bot.domain.hypothesis import Contribution, Hypothesis
from bot.domain.incident import Incident
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.incidents.responding import Via
from bot.inventory import Inventory, Node, Service
from bot.jobs.watching import watch_proposals
from bot.source import Connection
from bot.sources.prometheus import Prometheus
from tests.conftest import free_port
from tests.waiting import PATIENCE_SECONDS, wait_until
from tests.web.door import NOW, Door, opened

SERVICE = "translate-api"
START = NOW - timedelta(minutes=40)
ONSET = NOW - timedelta(minutes=20)
STEP = 15
P99 = (
    "histogram_quantile(0.99, sum by (le) "
    f'(rate(request_seconds_bucket{{service="{SERVICE}"}}[1m])))'
)
QUEUE = f'max by (node) (queue_depth{{service="{SERVICE}"}})'
HOSTILE = Localized.verbatim('{{ range query "up" }}boom{{ end }}\n  evil: "yes"\u2028- x')


def _openmetrics() -> str:
    lines: dict[str, list[str]] = {"request_seconds_bucket": [], "queue_depth": []}
    fast = slow = 0
    for place in range(int(40 * 60 / STEP)):
        at = START + timedelta(seconds=place * STEP)
        is_bad = at >= ONSET
        fast += 100 if not is_bad else 50
        slow += 0 if not is_bad else 50
        stamp = f"{at.timestamp():.0f}"
        for le, value in (("0.1", fast), ("0.5", fast), ("1", fast + slow), ("+Inf", fast + slow)):
            lines["request_seconds_bucket"].append(
                f'request_seconds_bucket{{le="{le}",service="{SERVICE}"}} {value} {stamp}'
            )
        for node, depth in (("gpu-1", 40 + place % 3 if is_bad else 2 + place % 3), ("gpu-2", 2)):
            lines["queue_depth"].append(
                f'queue_depth{{node="{node}",service="{SERVICE}"}} {depth} {stamp}'
            )
    text = [line for name in sorted(lines) for line in (f"# TYPE {name} unknown", *lines[name])]
    return "\n".join([*text, "# EOF", ""])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server that holds forty minutes, the last twenty of them bad."""
    home = tmp_path_factory.mktemp("tsdb")
    (home / "series.om").write_text(_openmetrics())
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", "series.om", "data"]
    subprocess.run(command, check=True, capture_output=True, cwd=home)
    (home / "prometheus.yml").write_text("scrape_configs: []\n")
    port = free_port()
    server = subprocess.Popen(
        ["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
         f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(trust_env=False) as client:
            wait_until(lambda: client.get(f"{url}/-/ready").is_success, "prometheus is up")
        yield url
    finally:
        server.terminate()
        server.wait(PATIENCE_SECONDS)


@dataclass
class Place:
    door: Door

    async def incident(self, alert_at: datetime) -> Incident:
        """Opened by an alert, with a symptom that began earlier and a cause that a queue gave away."""
        await self.door.take("alertmanager", _notification(alert_at))
        via = Via(by="U0LEAD", at=NOW, key="t")
        responding = self.door.services.responding
        await responding.declare_symptom(
            "INC-1", "P99 is 600 ms", via, metric=P99, scope=None, since=ONSET
        )
        queue = Evidence(
            source=EvidenceSource.METRICS,
            plugin="queue.depth",
            summary=HOSTILE,
            query=QUEUE,
            window=Window(START, NOW),
            samples=80,
            digest="d",
        )
        reason = Contribution(source=queue.source, summary=queue.summary, ref=queue.id, weight=2.0)
        hypothesis = Hypothesis(
            cause="traffic_surge",
            title=Localized.verbatim("surge"),
            probability=0.8,
            chain=("traffic_surge",),
            supports=(reason,),
        )
        gaps = [
            Gap(
                source=EvidenceSource.METRICS, plugin="m", query="DCGM_FI_DEV_SM_CLOCK",
                reason="empty", detail="no series",
            ),
            Gap(
                source=EvidenceSource.LOGS, plugin="logs", query="", reason="unsupported",
                detail="not configured\n  evil: true",
            ),
        ]  # fmt: skip
        await responding.record_evidence(
            "INC-1",
            via,
            evidence=[queue],
            gaps=gaps,
            sources={"metrics": SourceState.OK, "logs": SourceState.UNREACHABLE},
            layers=[],
            blind_spots=[BlindSpot(what=HOSTILE, why=HOSTILE)],
            changes=[],
            hypotheses=[hypothesis],
        )
        recorded = await responding.confirm_cause(
            "INC-1",
            hypothesis,
            via,
            trigger=None,
            deep_cause=Localized.verbatim("deep"),
            prevention=Localized.verbatim("prevention"),
        )
        return recorded.incident


def _notification(at: datetime) -> dict[str, object]:
    labels = {"alertname": "P99High", "service": SERVICE}
    alert = {
        "status": "firing",
        "labels": labels,
        "annotations": {},
        "startsAt": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fingerprint": "f1",
    }
    return {
        "version": "4", "groupKey": "g", "status": "firing", "commonLabels": labels,
        "commonAnnotations": {}, "alerts": [alert],
    }  # fmt: skip


async def proposals(
    redis_url: str, prometheus: str, alert_at: datetime, catalogue: Catalogue | None = None
) -> list[ChecklistChange]:
    inventory = Inventory(
        nodes={"gpu-1": Node(name="gpu-1", url="http://10.0.0.5:9477")},
        services={SERVICE: Service(name=SERVICE, nodes=("gpu-1",))},
    )
    async with httpx.AsyncClient() as http:
        metrics = Prometheus(Connection(url=prometheus, http=http))
        ports = DiagnosisPorts(
            inventory=inventory,
            catalogue=catalogue or Catalogue(),
            clock=lambda: NOW,
            metrics=metrics,
        )
        async with opened(redis_url, ports) as door:
            incident = await Place(door).incident(alert_at)
            found = await watch_proposals(door.services, incident)
        await metrics.aclose()
    return [change for change, _ in found]


def written(folder: Path, diff: str) -> dict[str, Path]:
    """The files of a diff, by the end of their names."""
    made: dict[str, Path] = {}
    for name, text in files_of(diff).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        made["test" if name.endswith(".test.yml") else "rules"] = target
    return made


def promtool(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *map(str, words)], capture_output=True, text=True, check=False
    )


async def test_rules_pass_promtool_and_fire_on_the_incidents_own_series(
    redis_url: str, prometheus: str, tmp_path: Path
) -> None:
    found = await proposals(redis_url, prometheus, ONSET + timedelta(minutes=8))
    alerts = [item for item in found if item.kind is ProposalKind.ALERT]
    assert len(alerts) == 2, "one on what led to the symptom, one on the symptom that was told late"
    for place, item in enumerate(alerts):
        files = written(tmp_path / str(place), item.diff)
        checked = promtool("check", "rules", files["rules"])
        assert checked.returncode == 0, checked.stderr
        tested = promtool("test", "rules", files["test"])
        assert tested.returncode == 0, tested.stdout + tested.stderr
        # The test is no formality: a rule that the series do not reach fails it.
        rules = yaml.safe_load(files["rules"].read_text())
        rule = rules["groups"][0]["rules"][0]
        rule["expr"] = rule["expr"].rsplit(" ", 1)[0] + " 1000000"
        files["rules"].write_text(yaml.safe_dump(rules))
        assert promtool("test", "rules", files["test"]).returncode != 0
        assert "{{" not in rule["annotations"]["summary"]
        assert set(rule["annotations"]) == {"incident", "summary"}
    assert "8 min after" in (alerts[1].reason or "")


async def test_symptom_that_the_alert_told_in_time_needs_no_second_rule(
    redis_url: str, prometheus: str
) -> None:
    found = await proposals(redis_url, prometheus, ONSET + timedelta(minutes=1))
    names = [item.checklist for item in found if item.kind is ProposalKind.ALERT]
    assert names == ["monitoring/inc-1-trafficsurgequeuedepth"]


async def test_coverage_fixes_are_files_that_the_tools_take(
    redis_url: str, prometheus: str, tmp_path: Path
) -> None:
    found = await proposals(redis_url, prometheus, ONSET)
    fixes = {item.kind: item for item in found if item.kind is not ProposalKind.ALERT}
    assert set(fixes) == {ProposalKind.METRIC, ProposalKind.LOG}
    (name, text), *_ = files_of(fixes[ProposalKind.METRIC].diff).items()
    scrape = tmp_path / "scrape.yml"
    scrape.write_text(text)
    assert "DCGM_FI_DEV_SM_CLOCK" in text and "10.0.0.5:9400" in text, name
    checked = promtool("check", "config", scrape)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    logs = yaml.safe_load(next(iter(files_of(fixes[ProposalKind.LOG].diff).values())))
    assert set(logs) == {"scrape_configs"}, "a hostile reason adds no key"


async def test_series_that_the_confirmed_cause_asks_for_and_nobody_scrapes_are_proposed(
    redis_url: str, prometheus: str
) -> None:
    found = await proposals(redis_url, prometheus, ONSET, load_causes([shipped_causes()]))
    metric = next(item for item in found if item.kind is ProposalKind.METRIC)
    assert "DCGM_FI_DEV_GPU_UTIL" in metric.diff and "dcgm-exporter" in metric.diff
    assert "vllm" not in metric.diff, "another engine's metrics are missing by right"


async def test_without_series_there_is_no_rule(redis_url: str) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    found = await proposals(redis_url, dead, ONSET + timedelta(minutes=8))
    assert [item for item in found if item.kind is ProposalKind.ALERT] == []
