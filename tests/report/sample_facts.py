"""What the sample incident found out: evidence, the ranking, changes, the checklist's diff, probe results."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.change import Change, ChangeKind
from bot.domain.evidence import (
    Evidence,
    EvidenceSource,
    digest_of,
)
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.domain.hypothesis import (
    NOT_ESTABLISHED,
    Contribution,
    Hypothesis,
    Missing,
    Trigger,
)
from bot.domain.instant import Window
from bot.domain.text import Localized

BEGAN = datetime(2026, 11, 30, 11, 2, 10, tzinfo=UTC)
OPENED = datetime(2026, 11, 30, 11, 4, 0, 464000, tzinfo=UTC)
SERVICE = "translate-api"
NODE = "gpu-1"
CAUSE = "pinned_memory_contention"


def evidence(
    source: EvidenceSource, plugin: str, en: str, zh: str, query: str, *, samples: int, **rest: Any
) -> Evidence:
    """A citable observation over the half hour before the opening."""
    return Evidence(
        source=source,
        plugin=plugin,
        summary=Localized(en, zh),
        query=query,
        window=Window.before(OPENED, 1800),
        samples=samples,
        digest=digest_of([en, query]),
        **rest,
    )


P99 = evidence(
    EvidenceSource.METRICS,
    "prometheus",
    "P99 of translate-api rose from 80 ms to 612 ms",
    "translate-api 的 P99 由 80 ms 升至 612 ms",
    'histogram_quantile(0.99, sum by (le) (rate(request_duration_seconds_bucket{service="translate-api"}[30s])))',
    samples=720,
    component=SERVICE,
)
COPY = evidence(
    EvidenceSource.TRACES,
    "jaeger",
    "89 % of a slow request is spent waiting for the staging buffer; compute is unchanged",
    "慢请求有 89 % 的时间在等待暂存缓冲区；计算时间没有变化",
    "service=translate-api minDuration=300ms",
    samples=40,
    component=SERVICE,
)
LOGS = evidence(
    EvidenceSource.LOGS,
    "loki",
    "Application log: no error, usual rate",
    "应用日志：没有错误，速率正常",
    '{service="translate-api"} |= "error"',
    samples=0,
    is_abnormal=False,
)
EVENT = evidence(
    EvidenceSource.EVENTS,
    "changes",
    "Pool mode was set to per-request three days earlier",
    "三天前缓冲池模式被改为按请求分配",
    "changes since 7d",
    samples=2,
)
ALLOCATOR = evidence(
    EvidenceSource.PROBE,
    "gpu_allocator",
    "Host allocation takes 11.8 ms per request, all behind one lock",
    "每个请求的主机内存分配耗时 11.8 ms，全部排在同一把锁之后",
    "gpu_allocator service=translate-api",
    samples=1,
    node=NODE,
    finding="gpu.host_alloc_slow",
)
CPU = evidence(
    EvidenceSource.PROBE,
    "host_cpu",
    "CPU pressure 0.4 %: the processors are idle enough",
    "CPU 压力 0.4 %：处理器足够空闲",
    "host_cpu",
    samples=1,
    node=NODE,
    finding="cpu.ok",
    is_abnormal=False,
)


def hypotheses() -> tuple[Hypothesis, ...]:
    """A ranking with one that stands, one that falls and the honest alternative."""
    pinned = Hypothesis(
        cause=CAUSE,
        title=Localized(
            "Pinned-memory allocation blocked by lock contention", "锁页内存分配被锁竞争阻塞"
        ),
        probability=0.83,
        node=NODE,
        component=SERVICE,
        chain=(CAUSE,),
        supports=(
            Contribution(
                source=EvidenceSource.TRACES, summary=COPY.summary, ref=COPY.id, weight=1.9
            ),
            Contribution(
                source=EvidenceSource.PROBE, summary=ALLOCATOR.summary, ref=ALLOCATOR.id, weight=2.4
            ),
        ),
        missing=(
            Missing(
                what=Localized("GPU copy engine profile", "GPU 拷贝引擎剖析"),
                why=Localized("profiling was not approved", "剖析未获批准"),
            ),
        ),
        trigger=Trigger(change="chg-pool", summary=EVENT.summary),
        explains=("S1",),
    )
    cpu = Hypothesis(
        cause="cpu_contention",
        title=Localized("CPU contention", "CPU 争用"),
        probability=0.09,
        node=NODE,
        supports=(
            Contribution(
                source=EvidenceSource.METRICS, summary=P99.summary, ref=P99.id, weight=0.3
            ),
        ),
        against=(
            Contribution(source=EvidenceSource.PROBE, summary=CPU.summary, ref=CPU.id, weight=-1.8),
        ),
        explains=("S1",),
    )
    unknown = Hypothesis(
        cause=NOT_ESTABLISHED, title=Localized("Not established", "未能确定"), probability=0.08
    )
    return (pinned, cpu, unknown)


CHANGES = (
    Change(
        id="chg-pool",
        kind=ChangeKind.CONFIG,
        service=SERVICE,
        summary="staging pool: preallocated -> per-request",
        at=OPENED - timedelta(days=3),
        by="deploy-bot",
    ),
    Change(
        id="chg-gw",
        kind=ChangeKind.DEPLOY,
        service="gateway",
        summary="gateway 2.14.1 | canary <50 %>",
        at=OPENED - timedelta(hours=1),
        by="argocd",
        url="https://ci.example/run/7",
    ),
)

DIFF = """--- a/checklists/inference-latency.yaml
+++ b/checklists/inference-latency.yaml
@@ -11,3 +11,6 @@
   - id: traces
     text:
       en: "Where in a slow request does the time go?"
+  - id: allocator   # INC-7
+    text:
+      en: "Run gpu_allocator on each node of the service."
"""


def probe(name: str, status: ProbeStatus = ProbeStatus.OK, **rest: Any) -> ProbeResult:
    """A probe result of the sample's node."""
    return ProbeResult(
        probe=name,
        node=NODE,
        status=status,
        started_at=OPENED + timedelta(seconds=20),
        duration_seconds=0.412,
        **rest,
    )
