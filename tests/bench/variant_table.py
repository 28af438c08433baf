"""Faults of kinds that no recorded case shows: what each does to the signals, what probes and logs tell, what it is called.

What a fault does is taken from what is known of its mechanism, never from what the rules ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.change import ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What happens to one signal: times `by`, plus `plus`, to `level`; `after` seconds late; on the sick node only."""

    signal: str
    by: float = 1.0
    plus: float = 0.0
    level: float | None = None
    after: float = 0.0
    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One fault; `engine` is what the base must serve with, `chain` what it should be called."""

    name: str
    engine: str
    chain: tuple[str, ...]
    effects: tuple[Effect, ...]
    findings: Mapping[str, tuple[str, str]]
    lines: tuple[tuple[str, str], ...] = ()
    change: tuple[ChangeKind, str, str] | None = None
    rhythm: bool = False


def e(signal: str, by: float = 1.0, **rest: float | bool) -> Effect:
    return Effect(signal=signal, by=by, **rest)  # type: ignore[arg-type]


SLOW = (
    e("latency.client", 2.2),
    e("latency.tail", 3.0),
    e("latency.server", 2.2),
    e("latency.first_token", 3.0),
)
SLIGHTLY = (e("latency.client", 1.6), e("latency.tail", 1.9), e("latency.server", 1.6))
STARVED = (
    e("gpu.busy", 0.4),
    e("gpu.power", 0.6),
    e("engine.progress", 0.6),
    e("throughput.answers", 0.75),
    e("load.inflight", 4),
)
IDLE_OUTSIDE = (*STARVED, e("latency.client", 4), e("latency.tail", 5))
FAILING = (e("errors.ratio", level=0.09), e("throughput.answers", 0.9))


def variants() -> tuple[Variant, ...]:
    """Each with its causes by what is known of it."""
    return (
        Variant(
            name="longer prompts fill the KV cache", engine="vllm", chain=("gpu_memory_exhausted",),
            effects=(*SLOW, e("input.length", 3.2, everywhere=True), e("engine.cache", level=0.985), e("engine.preemptions", plus=0.4),
                     e("engine.waiting", plus=24), e("phase.queue", 30), e("phase.prefill", 2.6), e("phase.compute", 1.25)),
            findings={}, lines=(("service", "Sequence group 8812 is preempted by RECOMPUTE mode because there is not enough KV cache space"),),
            change=(ChangeKind.CONFIG, "gateway", "open route /v1/documents for long context clients"),
        ),
        Variant(
            name="longer prompts, no logs of it", engine="vllm", chain=("gpu_memory_exhausted",),
            effects=(*SLOW, e("input.length", 2.4, everywhere=True), e("engine.cache", level=0.99), e("engine.preemptions", plus=0.2),
                     e("engine.waiting", plus=12), e("phase.queue", 15), e("phase.prefill", 2.0)),
            findings={},
        ),
        Variant(
            name="cap of sequences too high", engine="vllm", chain=("batch_size_misconfigured",),
            effects=(*SLOW, e("engine.running", 1.9), e("engine.cache", level=0.99), e("engine.preemptions", plus=0.5), e("phase.compute", 1.5)),
            findings={"service_config": ("svc.batch_limit", "max_num_seqs 512, was 96 at the previous start")},
            change=(ChangeKind.CONFIG, "@", "raise --max-num-seqs from 96 to 512"),
        ),
        Variant(
            name="NaN after a cast to float16", engine="vllm", chain=("numeric_overflow",),
            effects=(e("quality.ratio", 0.35), e("input.cut_off", level=0.93), e("engine.tokens_per_request", 4)),
            findings={"golden_set": ("model.nan_output", "31 of 40 answers are one repeated token, logits NaN")},
            lines=(("service", "Casting torch.bfloat16 to torch.float16."),),
            change=(ChangeKind.CONFIG, "@", "set --dtype half for the new pool"),
        ),
        Variant(
            name="NaN, golden set not allowed", engine="vllm", chain=("numeric_overflow",),
            effects=(e("quality.ratio", 0.35), e("input.cut_off", level=0.93), e("engine.tokens_per_request", 4)),
            findings={"golden_set": ("", "")}, lines=(("service", "WARNING sampler: probability tensor contains inf, nan"),),
        ),
        Variant(
            name="CPU stolen by the hypervisor", engine="generic", chain=("cpu_contention",),
            effects=(*SLIGHTLY, e("host.cpu_steal", level=0.24), e("host.cpu_pressure", level=0.36), e("phase.frontend", 2.4), e("host.load", 1.6)),
            findings={"host_cpu": ("cpu.steal", "steal 24 % over 10 s")},
        ),
        Variant(
            name="CPU stolen, no agent", engine="triton", chain=("cpu_contention",),
            effects=(*SLIGHTLY, e("host.cpu_steal", level=0.2), e("host.cpu_pressure", level=0.3), e("phase.frontend", 2.2)),
            findings={"*": ("", "")},
        ),
        Variant(
            name="power cap lowered", engine="vllm", chain=("gpu_clock_throttling",),
            effects=(*SLIGHTLY, e("gpu.clock", 0.66), e("gpu.power", 0.6), e("gpu.temperature", 0.92), e("phase.compute", 1.5), e("phase.prefill", 1.5), e("gpu.busy", 1.1)),
            findings={"gpu_state": ("gpu.clock_below_expected", "SM clock 940 MHz under load, usual 1410; power limit 200 W")},
            change=(ChangeKind.INFRA, "@node", "lower the power limit of the rack to 200 W"),
        ),
        Variant(
            name="thermal, one GPU of many", engine="generic", chain=("gpu_clock_throttling",),
            effects=(*SLIGHTLY, e("gpu.clock", 0.72), e("gpu.temperature", plus=22), e("phase.compute", 1.42)),
            findings={"gpu_state": ("gpu.throttle_thermal", "HW thermal slowdown for 71 % of the last 3 s")},
        ),
        Variant(
            name="lossy uplink", engine="triton", chain=("network_retransmission",),
            effects=(e("latency.client", 2.0), e("latency.tail", 3.0), e("net.retransmits", level=0.055), e("net.timeouts", plus=14), e("net.drops", plus=40)),
            findings={"host_network": ("net.retransmit", "5.5 % of segments sent again over 10 s, all on bond0")},
        ),
        Variant(
            name="link at a lower generation", engine="triton", chain=("pcie_link_degraded",),
            effects=(*SLIGHTLY, e("phase.h2d", 3.6), e("gpu.link_in", 0.55)),
            findings={"gpu_link": ("gpu.pcie_gen_degraded", "GPU 0 at Gen1 x16 in 8 of 8 samples under load"), "h2d_bandwidth": ("gpu.h2d_slow", "2.9 GB/s, reference 24")},
        ),
        Variant(
            name="a new language", engine="vllm", chain=("input_feature_drift",),
            effects=(e("quality.ratio", 0.82), e("input.prefix_hits", 0.4, everywhere=True), e("input.length", 1.6, everywhere=True)),
            findings={}, lines=(("service", "language detector: unexpected locale pt for 22 % of inputs"),),
        ),
        Variant(
            name="int4 weights", engine="vllm", chain=("quantization_accuracy_loss",),
            effects=(e("quality.ratio", 0.85), e("gpu.memory", 0.62, everywhere=True), e("phase.compute", 0.72, everywhere=True)),
            findings={"service_config": ("svc.quantized", "effective flags: --quantization awq"), "golden_set": ("model.golden_mismatch", "9 of 40 answers differ")},
            change=(ChangeKind.MODEL, "@", "serve the AWQ int4 build"),
        ),
        Variant(
            name="adapter swapped in place", engine="vllm", chain=("model_hot_reload_bug",),
            effects=(*FAILING, e("gpu.memory", plus=6000)),
            findings={"model_artifact": ("model.changed_after_start", "adapter file 12 s older than the onset, newer than the process")},
            lines=(("service", "adapter legal-v9 reloaded weights in place"),),
            change=(ChangeKind.MODEL, "@", "swap adapter legal-v9 in place"),
        ),
        Variant(
            name="a peer answers 5xx at once", engine="generic", chain=("dependency_failure",),
            effects=(*FAILING, e("peer.errors", plus=3.0)), findings={}, lines=tuple([("service", "call to store returned 503")] * 5),
        ),
        Variant(
            name="a peer slowed down", engine="vllm", chain=("dependency_failure",),
            effects=(*IDLE_OUTSIDE, e("peer.latency", 16)), findings={},
        ),
        Variant(
            name="connection pool never refilled", engine="generic", chain=("concurrency_control_defect",),
            effects=(*IDLE_OUTSIDE, e("process.files", 1.5), e("process.cpu", 0.5)),
            findings={"process_stacks": ("proc.deadlock", "31 tasks wait for a connection of the pool, none is lent out; same frames in 5 of 5 samples")},
            lines=(("service", "worker pool exhausted: 64 of 64 slots taken, oldest for 611 s"),),
        ),
        Variant(
            name="journal suppresses", engine="vllm", chain=("missing_logs",), effects=(e("logs.lines", 0.0), e("logs.bytes", 0.0)),
            findings={"log_health": ("log.suppressed", "journald suppressed 48211 messages of the unit in 5 min")},
            lines=(("node", "Suppressed 48211 messages from harbor.service"),),
        ),
        Variant(
            name="throttled in bursts", engine="vllm", chain=("coarse_metrics",),
            effects=(e("latency.tail", 3.2), e("latency.client", 1.45), e("host.cpu_throttled", level=0.09)),
            findings={"burst_sample": ("metric.hidden_burst", "20 Hz for 10 s: all quota used within 60 ms of every period")},
        ),
        Variant(
            name="sampling set to nought", engine="generic", chain=("missing_traces",),
            effects=(e("spans.received", 0.02), e("traces.count", 0.0)),
            findings={"trace_health": ("trace.not_configured", "no exporter endpoint in the environment")},
            change=(ChangeKind.CONFIG, "@", "head sampling ratio 0"),
        ),
        Variant(
            name="compaction on the data disk", engine="generic", chain=("data_loading_blocked", "disk_io_saturation"),
            effects=(*IDLE_OUTSIDE, e("disk.latency", 40), e("disk.written", 30), e("host.io_pressure", level=0.34), e("host.blocked", plus=9, after=60), e("phase.frontend", 9, after=90)),
            findings={"host_disk": ("disk.latency_high", "nvme0n1 write latency 140 ms"), "process_threads": ("proc.blocked_io", "8 of 12 loader threads in D")},
        ),
        Variant(
            name="uncorrectable ECC", engine="triton", chain=("gpu_hardware_fault",),
            effects=(*FAILING, e("gpu.xid", level=94), e("gpu.busy", 0.02)),
            findings={"gpu_errors": ("gpu.ecc_uncorrected", "2 uncorrectable errors, row 0x1f pending")},
            lines=(("node", "NVRM: Xid (PCI:0000:65:00): 94, pid=771, Contained ECC error"),),
        ),
        Variant(
            name="a notebook on the GPU", engine="generic", chain=("gpu_memory_neighbour",),
            effects=(*FAILING, e("gpu.memory", plus=14_000), e("gpu.memory_free", 0.05)),
            findings={"gpu_processes": ("gpu.foreign_process", "pid 4411 (ipykernel) holds 13.6 GiB on GPU 0")},
            lines=(("service", "CUDA out of memory. Tried to allocate 96.00 MiB. Process 4411 has 13.61 GiB memory in use."),),
        ),
        Variant(
            name="tenant campaign", engine="triton", chain=("traffic_surge",),
            effects=(*SLOW, e("load.requests", 2.4, everywhere=True), e("throughput.answers", 1.9, everywhere=True), e("engine.progress", 1.9, everywhere=True),
                     e("phase.queue", 40, everywhere=True), e("engine.waiting", plus=30, everywhere=True), e("gpu.busy", level=97, everywhere=True), e("load.refused", plus=2)),
            findings={"service_metrics": ("svc.queue_growing", "waiting requests growing")},
        ),
        Variant(
            name="collective hangs, GPUs spin", engine="vllm", chain=("engine_frozen",),
            effects=(*SLOW, *FAILING, e("errors.timeouts", plus=2), e("engine.progress", 0.0, everywhere=True), e("gpu.busy", level=100, everywhere=True), e("load.inflight", 5), e("engine.waiting", plus=30)),
            findings={}, lines=(("service", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8812, OpType=ALLREDUCE)"),),
        ),
        Variant(
            name="tokenizer under one lock", engine="vllm", chain=("lock_contention",),
            effects=(*IDLE_OUTSIDE, e("host.switches", 4.2), e("phase.frontend", 7), e("process.cpu", 0.8)),
            findings={"process_stacks": ("proc.lock_contention", "24 threads in tokenizer.encode, one mutex, holder changes")},
        ),
        Variant(
            name="tokenizer under one lock, no agent", engine="generic", chain=("lock_contention",),
            effects=(*IDLE_OUTSIDE, e("host.switches", 4.2), e("phase.frontend", 7), e("process.cpu", 0.8)), findings={"*": ("", "")},
        ),
        Variant(
            name="network file system stalls", engine="triton", chain=("data_loading_blocked",),
            effects=(*IDLE_OUTSIDE, e("phase.frontend", 10), e("host.blocked", plus=7)),
            findings={"process_threads": ("proc.blocked_io", "6 loader threads in D, nfs_wait_bit_killable")},
        ),
        Variant(
            name="fragmented, slow and no OOM", engine="generic", chain=("gpu_memory_fragmentation",),
            effects=(*SLIGHTLY, e("allocator.retries", plus=0.6), e("allocator.unused", 4), e("allocator.unused_share", level=0.34)),
            findings={"gpu_allocator": ("gpu.fragmentation", "reserved - allocated 23 GiB (31 % of reserved)")},
        ),
        Variant(
            name="worker segments fill /dev/shm", engine="generic", chain=("shared_memory_exhausted",),
            effects=(*FAILING, *SLIGHTLY, e("host.shared_memory_free", 0.001)),
            findings={"process_memory": ("mem.shm_full", "/dev/shm 100 % used in the service's namespace")},
            lines=(("service", "RuntimeError: unable to write to file </torch_991_2>: No space left on device (28), /dev/shm"),),
        ),
        Variant(
            name="the usual evening", engine="vllm", chain=("not_established",), rhythm=True,
            effects=(e("load.requests", 1.5, everywhere=True), e("latency.client", 1.4), e("throughput.answers", 1.5, everywhere=True), e("gpu.busy", 1.15, everywhere=True)),
            findings={},
        ),
        Variant(name="slow and nothing else", engine="triton", chain=("not_established",), effects=SLIGHTLY, findings={}),
        Variant(name="errors and nothing else", engine="vllm", chain=("not_established",), effects=FAILING, findings={}),
        Variant(
            name="quality falls and nothing else", engine="vllm", chain=("not_established",), effects=(e("quality.ratio", 0.8),), findings={"golden_set": ("", "")},
        ),
    )  # fmt: skip
