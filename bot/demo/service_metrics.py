"""The Prometheus series of the demo service, under the names that a TorchServe-like Python service uses."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from bot.demo.accelerator import Accelerator
from bot.demo.pinned_pool import PinnedBufferPool
from bot.demo.pipeline import Stage, StageTime
from bot.demo.spans import SpanExporter

LATENCY_BUCKETS = (
    0.005, 0.01, 0.025, 0.04, 0.05, 0.06, 0.065, 0.07, 0.075, 0.08, 0.085, 0.09, 0.1, 0.12, 0.15, 0.2,
    0.25, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 1.0, 1.5, 2.5, 5.0, 10.0,
)  # fmt: skip
_STAGE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_STANDIN_RESERVED_BYTES = 6_442_450_944
_STANDIN_ALLOCATED_BYTES = 6_174_015_488


class ServiceMetrics:
    """Counts what the service does; `exposition` is the body of `GET /metrics`."""

    def __init__(
        self, *, model: str, pool: PinnedBufferPool, accelerator: Accelerator, spans: SpanExporter
    ) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        ProcessCollector(registry=registry)
        registry.register(_AllocatorCollector(pool, spans))
        self.requests = Counter(
            "http_server_requests", "Requests answered.", ["code"], registry=registry
        )
        self.duration = Histogram(
            "http_server_request_duration_seconds",
            "Time from the first byte read to the answer.",
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.active = Gauge("app_active_workers", "Requests in a worker now.", registry=registry)
        self.request_bytes = Histogram(
            "app_request_bytes",
            "Size of the request body.",
            buckets=(200, 500, 1_000, 2_000, 10_000, 50_000),
            registry=registry,
        )
        self._stages = Histogram(
            "app_stage_duration_seconds",
            "Time spent in each stage of a request.",
            ["stage"],
            buckets=_STAGE_BUCKETS,
            registry=registry,
        )
        self._inferences = Counter(
            "ts_inference_requests", "Inferences run.", ["model_name"], registry=registry
        ).labels(model)
        self._queue_time = Counter(
            "ts_queue_latency_microseconds",
            "Time that requests waited for a slot of the device.",
            ["model_name"],
            registry=registry,
        ).labels(model)
        self._inference_time = Counter(
            "ts_inference_latency_microseconds",
            "Time in copy and forward pass.",
            ["model_name"],
            registry=registry,
        ).labels(model)
        depth = Gauge("app_queue_depth", "Requests waiting for the device.", registry=registry)
        depth.set_function(lambda: accelerator.waiting)

    def observe_stages(self, stages: tuple[StageTime, ...]) -> None:
        """Books the stages of one answered request."""
        self._inferences.inc()
        for item in stages:
            self._stages.labels(item.stage.value).observe(item.seconds)
            match item.stage:
                case Stage.WAIT_SLOT:
                    self._queue_time.inc(item.seconds * 1e6)
                case Stage.HOST_TO_DEVICE | Stage.FORWARD:
                    self._inference_time.inc(item.seconds * 1e6)
                case Stage.READ_INPUT | Stage.PREPROCESS | Stage.POSTPROCESS:
                    pass

    def exposition(self) -> bytes:
        """Prometheus text format."""
        return generate_latest(self._registry)


class _AllocatorCollector(Collector):
    """Allocator statistics, read at scrape time so that they agree with one another."""

    def __init__(self, pool: PinnedBufferPool, spans: SpanExporter) -> None:
        self._pool = pool
        self._spans = spans

    def collect(self) -> Iterator[Metric]:
        now = self._pool.statistics()
        yield CounterMetricFamily(
            "torch_host_alloc", "Host allocations that were pinned.", value=now.host_allocs
        )
        yield CounterMetricFamily(
            "torch_host_alloc_seconds",
            "Time that callers spent in pinned host allocations.",
            value=now.host_alloc_seconds,
        )
        yield GaugeMetricFamily(
            "torch_host_alloc_max_seconds",
            "Slowest pinned host allocation since the start.",
            value=now.slowest_host_alloc_seconds,
        )
        buffers = GaugeMetricFamily(
            "app_pinned_pool_buffers", "Staging buffers by state.", labels=["state"]
        )
        buffers.add_metric(["in_use"], now.buffers_in_use)
        buffers.add_metric(["ready"], now.buffers_ready)
        yield buffers
        yield from _standin_device_memory()
        yield CounterMetricFamily(
            "app_spans_exported", "Spans delivered to the collector.", value=self._spans.exported
        )
        yield CounterMetricFamily(
            "app_spans_dropped", "Spans that could not be delivered.", value=self._spans.dropped
        )


def _standin_device_memory() -> Iterator[Metric]:
    """The caching allocator of a device that is not there: flat, and labelled as a stand-in."""
    for name, text, value in (
        ("reserved", "Device memory reserved.", _STANDIN_RESERVED_BYTES),
        ("allocated", "Device memory in use.", _STANDIN_ALLOCATED_BYTES),
    ):
        family = GaugeMetricFamily(
            f"torch_cuda_memory_{name}_bytes", text, labels=["device", "standin"]
        )
        family.add_metric(["0", "true"], value)
        yield family
    retries = CounterMetricFamily(
        "torch_cuda_alloc_retries", "Device allocations retried.", labels=["device", "standin"]
    )
    retries.add_metric(["0", "true"], 0)
    yield retries
