"""A synthetic incident with everything in it: two languages, an edit, a withheld message, hostile texts, secrets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.alert import Alert, AlertStatus
from bot.domain.change import Change, ChangeKind
from bot.domain.evidence import (
    BlindSpot,
    ChartMark,
    ChartPanel,
    ChartSpec,
    Evidence,
    EvidenceSource,
    Gap,
    Sample,
    Series,
    digest_of,
)
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.hypothesis import (
    NOT_ESTABLISHED,
    Contribution,
    Hypothesis,
    Layer,
    LayerState,
    LayerVerdict,
    Missing,
    Trigger,
)
from bot.domain.incident import Incident
from bot.domain.instant import Window, to_rfc3339
from bot.domain.postmortem import Postmortem
from bot.domain.projection import project
from bot.domain.text import Locale, Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Entry, EntryKind, Revision
from bot.report.compile import compile_postmortem

BEGAN = datetime(2026, 11, 30, 11, 2, 10, tzinfo=UTC)
OPENED = datetime(2026, 11, 30, 11, 4, 0, 464000, tzinfo=UTC)
SERVICE = "translate-api"
NODE = "gpu-1"
CAUSE = "pinned_memory_contention"
DIRECTORY = {"U0LIN": "林岚", "U0PRIYA": "Priya <Rao>", "U0SAM": "Sam | O'Neil"}
WITHHELD_TEXT = "the customer Umbrella Corp is on fire"

HOSTILE = (
    "p95 | p99 rose",
    "a \\| b and trailing backslash \\",
    "line one\nline two\n\n# not a heading",
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "[click](javascript:alert(3)) and ![i](http://tracker.example/p.png)",
    "```\nunclosed fence",
    "---\n| x | y |\n|---|---|",
    "<!-- comment --> &lt;b&gt; &amp;",
    "=cmd|' /C calc'!A0",
    "~~struck~~ __init__ *args **kwargs {{ 7*7 }} {% raw %}",
    "https://grafana.example/d/x?from=1&to=2|tail",
    "\ufeff weird breaks\rcarriage \u202etxt.exe",
    "1. not a list\n+ nor this\n- or this\nSetext\n======",
    "</td></table></svg></style><style>*{display:none}</style>",
    "half a pair \ud83d and $E=mc^2$",
)
SECRETS = (
    "xoxb-1111-2222-abcdefGHIJKL",
    "hunter2secret9",
    "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJVMCJ9.c2lnbmF0dXJlLWhlcmU",
    "lin.lan@corp.example",
    "10.20.30.40",
    "ghp_abcdefghijklmnopqrstuvwx0123456789",
)
SECRET_TEXT = (
    f"token {SECRETS[0]}, db password={SECRETS[1]}, then {SECRETS[1]} again; Authorization: Bearer {SECRETS[2]}; "
    f"mail {SECRETS[3]} from {SECRETS[4]}:5432 and {SECRETS[5]}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a compile needs."""

    entries: tuple[Entry, ...]
    incident: Incident
    directory: Mapping[str, str]
    charts: Mapping[str, bytes] = field(default_factory=dict)

    def compile(self, zone: str = "Asia/Shanghai") -> Postmortem:
        """The postmortem of this case."""
        return compile_postmortem(
            self.incident,
            self.entries,
            directory=self.directory,
            charts=self.charts,
            zone=zone,
            version="0.1.0",
        )


class Script:
    """Writes a timeline: each entry some seconds after the opening, numbered in order of writing."""

    def __init__(self, opened_at: datetime = OPENED) -> None:
        self.opened_at = opened_at
        self.entries: list[Entry] = []

    def add(
        self,
        seconds: float,
        kind: EntryKind,
        text: Localized | str | None,
        *,
        author: str = SYSTEM_AUTHOR,
        source: str = SYSTEM_AUTHOR,
        history: tuple[Revision, ...] = (),
        corrects: int | None = None,
        permalink: str | None = None,
        **data: Any,
    ) -> int:
        """Appends one entry and returns its seq."""
        seq = len(self.entries) + 1
        self.entries.append(
            Entry(
                seq=seq,
                kind=kind,
                at=self.opened_at + timedelta(seconds=seconds),
                author=author,
                source=source,
                text=Localized.verbatim(text) if isinstance(text, str) else text,
                permalink=permalink,
                corrects=corrects,
                history=history,
                data=data,
            )
        )
        return seq

    def say(self, seconds: float, author: str, text: str | None, **rest: Any) -> int:
        """A person's message in the thread."""
        return self.add(seconds, EntryKind.MESSAGE, text, author=author, source="slack", **rest)


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


def sample_case(
    *,
    locale: Locale = Locale.EN,
    is_established: bool = True,
    charts: Mapping[str, bytes] | None = None,
    hostile: tuple[str, ...] = HOSTILE,
) -> Case:
    """The latency incident from the first alert to the resolve (or to an honest `not_established`)."""
    script = Script()
    _open(script, locale)
    _collect(script)
    _talk(script, hostile)
    if is_established:
        _conclude(script, charts or {})
    entries = tuple(script.entries)
    return Case(
        entries=entries,
        incident=project("INC-7", entries),
        directory=DIRECTORY,
        charts=dict(charts or {}),
    )


def _open(script: Script, locale: Locale) -> None:
    alert = Alert(
        fingerprint="f1",
        status=AlertStatus.FIRING,
        labels={"alertname": "TranslateP99High", "service": SERVICE},
        annotations={"summary": "P99 above 300 ms <b>for 5 s</b>"},
        starts_at=BEGAN,
    )
    script.add(
        0,
        EntryKind.SYSTEM,
        Localized("Incident opened", "事件已开启"),
        op="opened",
        title="translate-api P99 above 300 ms",
        severity="sev2",
        services=[SERVICE],
        nodes=[NODE],
        channel="C0ALERTS",
        locale=locale.value,
        labels={"service": SERVICE},
    )
    script.add(
        -0.464,
        EntryKind.ALERT,
        Localized("Alert TranslateP99High is firing", "告警 TranslateP99High 触发"),
        source="alertmanager",
        op="firing",
        alert=alert.to_json(),
    )
    script.add(
        1,
        EntryKind.SYSTEM,
        Localized("Thread attached", "已建立讨论串"),
        op="attached",
        thread_ts="1796036641.000100",
    )
    script.add(
        2,
        EntryKind.STEP,
        Localized("Step 1: symptom", "第一步：症状"),
        op="entered",
        step="symptom",
    )
    script.add(
        95,
        EntryKind.SYMPTOM,
        "翻译接口 P99 由 80 ms 升到 600 ms，全部租户",
        author="U0LIN",
        source="slack",
        id="S1",
        metric="translate_p99",
        scope="translate-api, all tenants",
        since=to_rfc3339(BEGAN),
    )


def _collect(script: Script) -> None:
    gap = Gap(
        source=EvidenceSource.METRICS,
        plugin="prometheus",
        query="DCGM_FI_PROF_PCIE_RX_BYTES",
        reason="empty",
        detail="no series of this name",
        node=NODE,
    )
    spot = BlindSpot(
        what=Localized("PCIe traffic of the GPU", "GPU 的 PCIe 流量"),
        why=Localized("the exporter publishes no such series", "导出器没有提供该序列"),
    )
    layers = (
        LayerVerdict(
            layer=Layer.RUNTIME,
            state=LayerState.ABNORMAL,
            why=Localized("waits in the buffer pool", "在缓冲池中等待"),
        ),
        LayerVerdict(
            layer=Layer.HOST,
            state=LayerState.CLEAN,
            why=Localized("CPU, memory and disk clean", "CPU、内存、磁盘正常"),
        ),
        LayerVerdict(
            layer=Layer.NETWORK,
            state=LayerState.NOT_CHECKED,
            why=Localized("no probe answered", "没有探针应答"),
        ),
    )
    script.add(
        22,
        EntryKind.EVIDENCE,
        Localized("Evidence collected", "证据已收集"),
        evidence=[item.to_json() for item in (P99, COPY, LOGS, EVENT, ALLOCATOR, CPU)],
        gaps=[gap.to_json()],
        sources={"metrics": "ok", "logs": "empty", "traces": "ok", "events": "ok", "probes": "ok"},
        layers=[item.to_json() for item in layers],
        blind_spots=[spot.to_json()],
    )
    script.add(
        23,
        EntryKind.PROBE,
        Localized(
            "gpu_allocator on gpu-1: host allocation slow", "gpu-1 上的 gpu_allocator：主机分配缓慢"
        ),
        purpose="collection",
        result=probe(
            "gpu_allocator",
            findings=(
                Finding(
                    id="gpu.host_alloc_slow",
                    severity=FindingSeverity.WARNING,
                    summary="11.8 ms per host allocation",
                    value=11.8,
                    unit="ms",
                    threshold=1.0,
                ),
            ),
            data={"host_alloc_mean_ms": 11.8, "note": "</script> | `x`"},
        ).to_json(),
    )
    script.add(
        24,
        EntryKind.PROBE,
        Localized("gpu_errors on gpu-1: denied", "gpu-1 上的 gpu_errors：无权限"),
        purpose="collection",
        result=probe(
            "gpu_errors", ProbeStatus.DENIED, error="NVML: insufficient permissions"
        ).to_json(),
    )
    script.add(
        25,
        EntryKind.CHANGE,
        Localized("2 changes in 7 days", "7 天内有 2 项变更"),
        changes=[item.to_json() for item in CHANGES],
        since=to_rfc3339(OPENED - timedelta(days=7)),
    )
    script.add(
        26,
        EntryKind.HYPOTHESIS,
        Localized("3 hypotheses ranked", "已排列 3 个假设"),
        op="ranked",
        hypotheses=[item.to_json() for item in hypotheses()],
    )


def _talk(script: Script, hostile: tuple[str, ...]) -> None:
    for number, text in enumerate(hostile):
        script.say(
            100 + number,
            "U0PRIYA",
            text,
            permalink=f"https://example.slack.com/archives/C0/p{number}",
        )
    script.say(130, "U0SAM", SECRET_TEXT)
    script.say(
        131,
        "U0LIN",
        "<@U0PRIYA> 请看 KV cache；<@U0GONE> 也看一下",
        permalink="javascript:alert(9)",
    )
    wrong = script.say(140, "U0LIN", "延迟从 19:05 开始")
    script.say(150, "U0LIN", "更正：从 19:02 开始", corrects=wrong)
    script.say(
        160,
        "U0SAM",
        "GPU clocks look normal",
        history=(
            Revision(
                text=Localized.verbatim("GPU clocks look odd"),
                replaced_at=OPENED + timedelta(seconds=170),
            ),
        ),
    )
    script.say(
        180,
        "U0SAM",
        None,
        history=(
            Revision(
                text=Localized.verbatim(WITHHELD_TEXT), replaced_at=OPENED + timedelta(seconds=181)
            ),
        ),
    )


def _conclude(script: Script, charts: Mapping[str, bytes]) -> None:
    experiment = {
        "id": "x1",
        "cause": CAUSE,
        "probe": "process_stacks",
        "node": NODE,
        "args": {"service": SERVICE},
    }
    for name, title in (
        ("symptom", Localized("P99 of translate-api", "translate-api 的 P99")),
        ("deciding", Localized("Deciding evidence", "决定性证据")),
    ):
        _chart(script, 200, name, title, charts)
    script.add(
        240,
        EntryKind.EXPERIMENT,
        Localized("Test planned: process_stacks", "已安排实验：process_stacks"),
        author="U0LIN",
        op="planned",
        query=None,
        predicted=Localized(
            "most threads wait in the pool's acquire", "多数线程停在缓冲池的 acquire"
        ).to_json(),
        would_refute=Localized("threads run or wait elsewhere", "线程在运行或停在别处").to_json(),
        **experiment,
    )
    script.add(
        262,
        EntryKind.EXPERIMENT,
        Localized("14 of 16 threads wait in acquire", "16 个线程中有 14 个停在 acquire"),
        op="finished",
        id="x1",
        result=Localized(
            "14 of 16 threads wait in acquire", "16 个线程中有 14 个停在 acquire"
        ).to_json(),
        verdict="as_predicted",
        evidence=[ALLOCATOR.id],
    )
    script.add(
        280,
        EntryKind.HYPOTHESIS,
        "CPU pressure is 0.4 %, so not this",
        author="U0SAM",
        source="slack",
        op="rejected",
        cause="cpu_contention",
    )
    script.add(
        290,
        EntryKind.MITIGATION,
        "drained half of the traffic to gpu-2",
        author="U0PRIYA",
        source="slack",
        captured=["process_stacks", "gpu_allocator"],
    )
    script.add(
        400,
        EntryKind.HYPOTHESIS,
        Localized("Root cause confirmed", "根因已确认"),
        author="U0LIN",
        op="confirmed",
        cause=CAUSE,
        chain=["h2d_copy_slow", CAUSE],
        explains=["S1"],
        trigger=Trigger(
            change="chg-pool",
            summary=Localized(
                "The evening peak met the per-request buffer pool of three days ago",
                "晚高峰遇上了三天前改成按请求分配的缓冲池",
            ),
        ).to_json(),
        deep_cause=Localized(
            "Every request registers pinned memory under one allocator lock; at peak load the requests queue for it",
            "每个请求都在同一把分配器锁内注册锁页内存；高峰时请求排队等锁",
        ).to_json(),
        prevention=Localized(
            "Preallocate the staging pool; alert on host allocation time; load-test pool changes at peak rate",
            "预分配暂存缓冲池；对主机内存分配时间设告警；缓冲池改动须按高峰流量压测",
        ).to_json(),
        evidence=[COPY.id, ALLOCATOR.id],
    )
    script.add(
        500,
        EntryKind.ACTION,
        "rolled out the preallocated pool",
        author="U0LIN",
        source="slack",
        op="fix",
    )
    _chart(script, 620, "recovery", Localized("Before and after the fix", "修复前后对比"), charts)
    script.add(
        630,
        EntryKind.ACTION,
        Localized("The symptom is gone", "症状已消失"),
        op="verified",
        verified=True,
        evidence=[P99.id],
    )
    script.add(
        640,
        EntryKind.CHECKLIST,
        Localized("INC-7: gpu_allocator decided the case", "INC-7：由 gpu_allocator 定案"),
        op="proposed",
        n=1,
        checklist="inference-latency",
        diff=DIFF,
    )
    script.add(650, EntryKind.CHECKLIST, "", author="U0LIN", source="slack", op="accepted", n=1)
    script.add(
        660,
        EntryKind.ACTION,
        "为主机内存分配时间加告警",
        author="U0LIN",
        source="slack",
        op="added",
        n=1,
        owner="U0PRIYA",
        due="2026-12-07",
    )
    script.add(
        700,
        EntryKind.ALERT,
        Localized("Alert TranslateP99High resolved", "告警 TranslateP99High 恢复"),
        source="alertmanager",
        op="resolved",
        alert=Alert(
            fingerprint="f1",
            status=AlertStatus.RESOLVED,
            labels={"alertname": "TranslateP99High", "service": SERVICE},
            annotations={"summary": "P99 above 300 ms <b>for 5 s</b>"},
            starts_at=BEGAN,
            ends_at=BEGAN + timedelta(minutes=13, seconds=2),
        ).to_json(),
    )
    script.add(
        760,
        EntryKind.SYSTEM,
        Localized("Resolved", "已解决"),
        author="U0LIN",
        source="slack",
        op="status",
        status="resolved",
    )


def _chart(
    script: Script, seconds: float, name: str, title: Localized, charts: Mapping[str, bytes]
) -> None:
    script.add(
        seconds,
        EntryKind.CHART,
        title,
        chart=name,
        title=title.to_json(),
        alt=Localized(f"{title.en}: from 80 to 612 ms", f"{title.zh}：由 80 至 612 ms").to_json(),
        png=f"{name}.png" if f"{name}.png" in charts else None,
        svg=f"{name}.svg" if f"{name}.svg" in charts else None,
    )


def chart_spec(name: str = "deciding", *, panels: int = 3, step: float = 5.0) -> ChartSpec:
    """A chart of the incident: latency, phases and CPU on one axis, with a gap, a baseline and crowded marks."""
    window = Window(BEGAN - timedelta(minutes=12), BEGAN + timedelta(minutes=18))
    fixed = BEGAN + timedelta(minutes=11)

    def curve(
        low: float, high: float, *, gap: tuple[int, int] = (0, 0), phase: float = 0.0
    ) -> tuple[Sample, ...]:
        samples = []
        count = int(window.seconds / step)
        for index in range(count + 1):
            at = window.start + timedelta(seconds=index * step)
            rise = min(1.0, max(0.0, (at - BEGAN).total_seconds() / 90))
            if at > fixed:
                rise = max(0.0, 1 - (at - fixed).total_seconds() / 60)
            wave = 1 + 0.05 * math.sin(index / 3 + phase) + 0.03 * math.sin(index / 1.3)
            value = (low + (high - low) * rise) * wave
            samples.append(Sample(at=at, value=None if gap[0] <= index < gap[1] else value))
        return tuple(samples)

    def series(name: str, unit: str, samples: tuple[Sample, ...], **labels: str) -> Series:
        return Series(name=name, labels=labels, unit=unit, samples=samples, step_seconds=step)

    gap = (int(840 / step), int(930 / step))
    all_panels = (
        ChartPanel(
            title=Localized("Request latency, P99", "请求延迟 P99"),
            unit="s",
            series=(series("p99", "s", curve(0.08, 0.6, gap=gap), service=SERVICE),),
            query=P99.query,
            source="Prometheus",
            baseline_low=0.07,
            baseline_high=0.095,
            threshold=0.3,
            evidence_id=P99.id,
        ),
        ChartPanel(
            title=Localized("Time by phase, mean", "各阶段平均耗时"),
            unit="s",
            series=(
                series("phase", "s", curve(0.004, 0.33), phase="h2d_wait"),
                series("phase", "s", curve(0.031, 0.033, phase=1), phase="compute"),
                series("phase", "s", curve(0.006, 0.0065, phase=2), phase="tokenize"),
            ),
            query='avg by (phase) (rate(phase_duration_seconds_sum{service="translate-api"}[30s]))',
            source="Prometheus",
            evidence_id=COPY.id,
        ),
        ChartPanel(
            title=Localized("CPU pressure, waiting share", "CPU 压力（等待占比）"),
            unit="ratio",
            series=(series("cpu", "ratio", curve(0.004, 0.005), node=NODE),),
            query="rate(node_pressure_cpu_waiting_seconds_total[30s])",
            source="Prometheus",
            baseline_low=0.002,
            baseline_high=0.008,
            threshold=0.1,
        ),
    )
    return ChartSpec(
        id=name,
        title=Localized("Pinned-memory contention: deciding evidence", "锁页内存争用：决定性证据"),
        window=window,
        panels=all_panels[:panels],
        marks=(
            ChartMark(
                at=BEGAN - timedelta(minutes=8),
                label=Localized("deploy gateway 2.14.1", "部署 gateway 2.14.1"),
                kind="change",
            ),
            ChartMark(
                at=BEGAN + timedelta(seconds=40),
                label=Localized("alert TranslateP99High", "告警 TranslateP99High"),
                kind="alert",
            ),
            ChartMark(
                at=BEGAN + timedelta(seconds=110),
                label=Localized("incident opened", "事件开启"),
                kind="alert",
            ),
            ChartMark(
                at=fixed,
                label=Localized("fix: preallocated pool", "修复：预分配缓冲池"),
                kind="fix",
            ),
        ),
        onset=Window(BEGAN - timedelta(seconds=15), BEGAN + timedelta(seconds=20)),
    )
