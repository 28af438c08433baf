"""Incidents of sites that keep recording rules and pod labels only, through a real Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from bot.diagnosis.engine import diagnose
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.change import Change, ChangeKind
from bot.domain.evidence import Series
from bot.domain.hypothesis import Diagnosis, Symptom
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.inventory import Inventory, Service
from bot.source import Answer, Connection, LogLine
from bot.sources.prometheus import Prometheus
from tests.diagnosis.worlds import CATALOGUE
from tests.sources.real_prometheus import serving, wait_ready

START = datetime(2026, 3, 4, 1, 0, tzinfo=UTC)
Steps = tuple[tuple[float, int], ...]


def climbing(first: float, last: float, minutes: int) -> Steps:
    return tuple((first + (last - first) * at / (minutes - 1), 1) for at in range(minutes))


def counted(*rates: tuple[float, int]) -> Steps:
    """A counter from increases a minute."""
    total, found = 1_000.0, []
    for rate, minutes in rates:
        for _ in range(minutes):
            total += rate
            found.append((total, 1))
    return tuple(found)


@dataclass(frozen=True)
class Site:
    """One incident: levels with their minutes by series, lines and changes at minutes from the start."""

    alert: str
    cause: str
    series: dict[str, Steps]
    lines: tuple[tuple[int, str], ...] = ()
    changes: tuple[tuple[int, ChangeKind, str], ...] = ()
    cited: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


POD = 'pod="{s}-0",namespace="prod"'
OWN = 'service="{s}"'
GPU = 'exported_pod="{s}-0",gpu="0",pod="exporter-x1",namespace="monitoring"'

SITES = {
    "draft": Site(
        alert="p95 of the first token over 2 s", cause="gpu_memory_exhausted",
        series={
            f"svc:ttft_seconds:p95{{{OWN}}}": ((0.43, 25), (6.5, 16)),
            f"vllm:kv_cache_usage_perc{{{POD}}}": (*climbing(0.55, 0.94, 20), (0.998, 21)),
            f"vllm:num_preemptions_total{{{POD}}}": counted((0, 20), (95, 21)),
            f"vllm:num_requests_waiting{{{POD}}}": ((0, 20), *climbing(2, 84, 21)),
            f"svc:prompt_tokens:p95{{{OWN}}}": ((1_900, 14), (14_800, 27)),
            f"svc:requests:rate1m{{{OWN}}}": ((11.2, 41),),
            f"DCGM_FI_DEV_GPU_UTIL{{{GPU}}}": ((93, 41),),
        },
        lines=((21, "WARNING request 7f1 preempted: not enough free KV blocks"),),
        changes=(
            (13, ChangeKind.CONFIG, "route 'long documents' opened to all tenants"),
            (2, ChangeKind.DEPLOY, "annotation only"),
        ),
        cited=("kv_cache_usage_perc", "num_preemptions_total", "prompt_tokens:p95", "1,900", "14,800"),
        never=("gpu_hardware_fault", "traffic_surge", "input_feature_drift"),
    ),
    "vector": Site(
        alert="p95 of the first token over 1 s", cause="data_loading_blocked",
        series={
            f"svc:ttft_seconds:p95{{{OWN}}}": ((0.11, 12), *climbing(0.2, 3.0, 19)),
            f"svc:tokenize_seconds:p95{{{OWN}}}": ((0.004, 12), *climbing(0.1, 2.8, 19)),
            f"svc:requests:rate1m{{{OWN}}}": ((180, 12), (410, 19)),
            f"vllm:num_requests_waiting{{{POD}}}": ((0, 31),),
            f'process_cpu_cores{{{POD},proc="api"}}': ((0.62, 12), (1.0, 19)),
            f"DCGM_FI_DEV_GPU_UTIL{{{GPU}}}": ((58, 12), (60, 19)),
        },
        cited=("process_cpu_cores", "tokenize_seconds:p95"),
        never=("gpu_memory_exhausted", "gpu_clock_throttling"),
    ),
    "speech": Site(
        alert="restarted after CUDA out of memory", cause="gpu_memory_fragmentation",
        series={
            f"torch_allocated_mib{{{POD}}}": ((19_900, 36),),
            f"torch_reserved_mib{{{POD}}}": climbing(20_500, 38_000, 36),
            f"svc:requests:rate1m{{{OWN}}}": ((6, 36),),
        },
        lines=((31, "CUDA out of memory. Tried to allocate 3.10 GiB. 19.80 GiB is allocated by PyTorch, and 17.35 GiB is reserved by PyTorch but unallocated."),),
        cited=("3.10 GiB", "17.35 GiB", "torch_allocated_mib"),
        never=("memory_leak", "gpu_memory_exhausted"),
    ),
    "answer": Site(
        alert="nearly all answers hit the length limit", cause="numeric_overflow",
        series={
            f'svc:finish_length_ratio{{{OWN},pool="old"}}': ((0.04, 1), (0.99, 15)),
            f'svc:finish_length_ratio{{{OWN},pool="new"}}': ((0.05, 16),),
            f"svc:error_ratio{{{OWN}}}": ((0, 16),),
            f"svc:ttft_seconds:p95{{{OWN}}}": ((0.4, 16),),
        },
        lines=((1, "WARNING bfloat16 is not supported on compute capability 7.0; casting weights to float16"),),
        changes=((0, ChangeKind.DEPLOY, "pool added with older GPUs (V100), a fifth of the traffic"),),
        cited=("casting weights to float16", "finish_length_ratio", "V100"),
        never=("network_retransmission", "traffic_surge"),
    ),
    "chat": Site(
        alert="upstream timeouts", cause="engine_frozen",
        series={
            f"up{{{POD}}}": ((1, 60),),
            f"vllm:iteration_tokens_total_count{{{POD}}}": counted((900, 37), (0, 23)),
            f"vllm:num_requests_running{{{POD}}}": ((9, 37), (2, 23)),
            f"vllm:num_requests_waiting{{{POD}}}": ((0, 38), *climbing(1, 20, 22)),
            'gateway_upstream_timeouts_total{upstream="{s}-0"}': counted((0, 40), (6, 20)),
            f"DCGM_FI_DEV_GPU_UTIL{{{GPU}}}": ((84, 37), (0, 23)),
        },
        cited=("iteration_tokens_total_count", "GPU_UTIL"),
        never=("network_retransmission", "dependency_failure"),
    ),
    # A model server that names only its model: microseconds are cumulative, four instances, nothing batched.
    "score-trt": Site(
        alert="p95 over 50 ms", cause="traffic_surge",
        series={
            'nv_inference_request_success{model="score"}': counted((12_000, 8), (18_000, 8), (24_000, 10)),
            'nv_inference_exec_count{model="score"}': counted((12_000, 8), (18_000, 8), (24_000, 10)),
            'nv_inference_queue_duration_us{model="score"}': counted(
                (0.7e6, 8), (9e6, 8), *((1.15e9 * n, 1) for n in range(1, 11))
            ),
            'nv_inference_compute_infer_duration_us{model="score"}': counted((1.164e8, 8), (1.746e8, 8), (2.328e8, 10)),
            'nv_model_instances{model="score"}': ((4, 26),),
            f"svc:latency_seconds:p95{{{OWN}}}": ((0.011, 8), (0.014, 8), *climbing(0.11, 0.56, 10)),
        },
        cited=("nv_inference_compute_infer_duration_us", "9.7 ms", "queue", "nv_inference_exec_count"),
        never=("gpu_hardware_fault", "gpu_clock_throttling"),
    ),
}  # fmt: skip


def minutes(site: Site) -> int:
    return max(sum(count for _, count in steps) for steps in site.series.values())


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One real server with the blocks of all sites."""
    samples = [
        f"{name.replace('{s}', service)} {value} {START.timestamp() + 60 * at:.0f}"
        for service, site in SITES.items()
        for name, steps in site.series.items()
        for at, value in enumerate(value for value, count in steps for _ in range(count))
    ]
    with serving(tmp_path_factory.mktemp("tsdb"), samples) as url:
        wait_ready(url)
        yield url


class PodLogs:
    """A log store whose streams carry the pod only."""

    def __init__(self, service: str, lines: Sequence[tuple[int, str]]) -> None:
        self._service, self._lines = service, lines

    async def lines(
        self, query: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[LogLine]:
        found = [
            LogLine(
                at_ns=round((START + timedelta(minutes=at)).timestamp()) * 10**9,
                labels={"pod": f"{self._service}-0"}, text=text,
            )
            for at, text in self._lines
            if f'pod=~"{self._service}' in query
        ]  # fmt: skip
        return Answer(items=tuple(found), query=query, window=window)

    async def volume(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        return Answer(items=(), query=query, window=window)


class Changes:
    def __init__(self, service: str, changes: Sequence[tuple[int, ChangeKind, str]]) -> None:
        self._found = [
            Change(
                id=f"c{at}",
                kind=kind,
                service=service,
                summary=text,
                at=START + timedelta(minutes=at),
            )
            for at, kind, text in changes
        ]

    async def between(self, start: datetime, end: datetime) -> Sequence[Change]:
        return [change for change in self._found if start <= change.at <= end]


async def diagnosed(url: str, service: str, site: Site, *, is_declared: bool = True) -> Diagnosis:
    alert = Symptom(id="alert", summary=Localized.verbatim(site.alert))
    async with httpx.AsyncClient(trust_env=False) as http:
        metrics = Prometheus(Connection(url=url, http=http))
        try:
            return await diagnose(
                DiagnosisRequest(
                    service=service,
                    at=START + timedelta(minutes=minutes(site) - 1),
                    symptoms=(alert,) if is_declared else (),
                    deadline_seconds=30,
                ),
                DiagnosisPorts(
                    inventory=Inventory(services={service: Service(name=service)}),
                    catalogue=CATALOGUE, clock=lambda: datetime.now(UTC), metrics=metrics,
                    logs=PodLogs(service, site.lines), changes=Changes(service, site.changes),
                ),
            )  # fmt: skip
        finally:
            await metrics.aclose()


@pytest.mark.parametrize("service", SITES)
async def test_the_cause_is_found_by_pod_labels_and_recording_rules(
    service: str, prometheus: str
) -> None:
    found = await diagnosed(prometheus, service, SITES[service])
    site = SITES[service]
    first = found.hypotheses[0]
    assert first.cause == site.cause
    reasons = {reason.ref for reason in first.supports}
    told = " ".join(
        f"{item.query} {item.summary.en}" for item in found.evidence if item.id in reasons
    )
    assert [text for text in site.cited if text not in told] == []
    blamed = {item.cause for item in found.hypotheses if item.probability > 0.1}
    assert not blamed & set(site.never)


@pytest.mark.parametrize("service", ["speech", "answer"])
async def test_what_logs_and_peers_show_needs_no_alert(service: str, prometheus: str) -> None:
    found = await diagnosed(prometheus, service, SITES[service], is_declared=False)
    assert found.symptoms
    assert found.hypotheses[0].cause == SITES[service].cause
    assert found.hypotheses[0].probability > 0.5


async def test_a_harmless_release_is_not_named_beside_the_change_that_did_it(
    prometheus: str,
) -> None:
    found = await diagnosed(prometheus, "draft", SITES["draft"])
    trigger = found.hypotheses[0].trigger
    assert trigger is not None
    assert trigger.change == "c13"
    order = {
        name: item.window
        for item in found.evidence
        for name in ("prompt_tokens", "preemptions")
        if name in item.query
    }
    assert set(order) == {"prompt_tokens", "preemptions"}


@pytest.mark.parametrize(("rule", "signal"), [("mean", "latency.client"), ("p95", "latency.tail")])
async def test_latency_is_seen_whichever_rule_a_site_records_of_it(
    tmp_path: Path, rule: str, signal: str
) -> None:
    steps = ((0.08, 30), (0.6, 20))
    site = Site(alert="", cause="", series={f"svc:latency_seconds:{rule}{{{OWN}}}": steps})
    samples = [
        f'svc:latency_seconds:{rule}{{service="front"}} {value} {START.timestamp() + 60 * at:.0f}'
        for at, value in enumerate(value for value, count in steps for _ in range(count))
    ]
    with serving(tmp_path, samples) as url:
        wait_ready(url)
        found = await diagnosed(url, "front", site, is_declared=False)
    assert [item.id for item in found.symptoms] == ["latency"]
    assert "80 ms → 600 ms" in found.symptoms[0].summary.en
    assert [item.plugin for item in found.evidence if item.is_abnormal] == [signal]


async def test_the_gpu_exporters_own_pod_is_never_the_workload(prometheus: str) -> None:
    found = await diagnosed(prometheus, "chat", SITES["chat"])
    told = " ".join(evidence.summary.en for evidence in found.evidence)
    assert "chat-0" in told
    assert "exporter-x1" not in told


async def test_another_services_pods_are_not_read(prometheus: str) -> None:
    calm = Site(alert="", cause="", series={"x": ((0, 41),)})
    found = await diagnosed(prometheus, "dra", calm)
    assert found.hypotheses[0].cause == "not_established"
    assert not found.evidence
