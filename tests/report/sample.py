"""A synthetic incident with everything in it: two languages, an edit, a withheld message, hostile texts, secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from bot.domain.alert import Alert, AlertStatus
from bot.domain.evidence import (
    BlindSpot,
    EvidenceSource,
    Gap,
)
from bot.domain.finding import Finding, FindingSeverity, ProbeStatus
from bot.domain.hypothesis import (
    Layer,
    LayerState,
    LayerVerdict,
    Trigger,
)
from bot.domain.incident import Incident
from bot.domain.instant import to_rfc3339
from bot.domain.postmortem import Postmortem
from bot.domain.projection import project
from bot.domain.text import Locale, Localized
from bot.domain.timeline import Entry, EntryKind, Revision
from bot.report.compile import compile_postmortem
from tests.report.sample_facts import (
    ALLOCATOR,
    BEGAN,
    CAUSE,
    CHANGES,
    COPY,
    CPU,
    DIFF,
    EVENT,
    LOGS,
    NODE,
    OPENED,
    P99,
    SERVICE,
    hypotheses,
    probe,
)
from tests.report.sample_script import Script

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
