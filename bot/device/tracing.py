"""How a service exports its spans: allow-listed settings, exporter counters, and connections to a collector."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.device.endpoints import host_and_port
from bot.device.exposition import Exposition
from bot.device.proc import ProcRoot
from bot.device.sockets import TcpSocket
from bot.errors import ProbeError

# Source: OpenTelemetry specification, SDK environment variables. Headers are left out: they hold credentials.
_VARIABLES = (
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_BSP_MAX_QUEUE_SIZE",
)
# vLLM, TGI, SGLang (whose flag is spelt both ways) and Triton, in this order.
_FLAGS = re.compile(
    r"^--(otlp-traces-endpoint|otlp-endpoint|o[lt]{2}p-traces-endpoint|trace-config)$"
)
_ENGINE = re.compile(
    r"(?:^|[/ .])(vllm|sglang|text-generation-(?:launcher|router)|tritonserver)(?=$|[ /.])"
)
_PLAIN = re.compile(r"^[A-Za-z0-9._,-]{1,64}$")
_URL = re.compile(r"(?:https?|grpc)://[^\s,]+")
_COLLECTOR_PORTS = {"4317", "4318", "14250", "14268", "9411"}
"""Ports that OTLP, Jaeger and Zipkin collectors listen on by default."""
_SENT = (
    "otel_sdk_exporter_span_exported_total",
    "otelcol_exporter_sent_spans_total",
    "otelcol_exporter_sent_spans",
    "rca_span_exporter_sent_total",
)
_FAILED = (
    "otelcol_exporter_send_failed_spans_total",
    "otelcol_exporter_send_failed_spans",
    "rca_span_exporter_failed_total",
)
_LOST = (
    "otel_sdk_processor_span_processed_total",
    "otelcol_exporter_enqueue_failed_spans_total",
    "otelcol_exporter_enqueue_failed_spans",
    "rca_span_exporter_dropped_total",
)


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """What the service was told. `endpoint` is host and port only; `shown` what may be repeated.

    `engine` names an inference server whose tracing can be set by flag and environment only.
    """

    shown: Mapping[str, str]
    endpoint: str | None
    switched_off_by: str | None
    engine: str | None

    @property
    def is_configured(self) -> bool:
        """Somebody meant it to export."""
        return self.switched_off_by is None and (
            self.endpoint is not None or "OTEL_TRACES_EXPORTER" in self.shown
        )


@dataclass(frozen=True, slots=True)
class ExporterCounts:
    """Spans since the process's start: accepted by the collector, refused by it, and dropped before it."""

    sent: float
    failed: float
    dropped: float

    def since(self, before: ExporterCounts) -> ExporterCounts:
        """What came in between; the totals where a counter restarted."""
        change = ExporterCounts(
            self.sent - before.sent, self.failed - before.failed, self.dropped - before.dropped
        )
        return self if min(change.sent, change.failed, change.dropped) < 0 else change

    @property
    def spans(self) -> float:
        """All that were to be exported."""
        return self.sent + self.failed + self.dropped

    @property
    def accepted_ratio(self) -> float | None:
        """0..1; None where nothing was to be exported."""
        return self.sent / self.spans if self.spans > 0 else None


def trace_settings(proc: ProcRoot, pids: Iterable[int]) -> TraceSettings:
    """Settings of all processes together; one that exits in between is passed over.

    Raises:
        ProbeError: no process's environment may be read.
    """
    shown: dict[str, str] = {}
    endpoint: str | None = None
    engine: str | None = None
    failure: ProbeError | None = None
    is_read = False
    for pid in pids:
        try:
            text = proc.text(pid, "environ")
        except ProbeError as error:
            failure = error
            continue
        is_read = True
        found = _variables(text)
        with contextlib.suppress(ProbeError):
            command = proc.command_line(pid)
            found |= _flags(command)
            engine = engine or _engine(command)
        for name, value in found.items():
            address = _endpoint(value)
            endpoint = endpoint or address
            shown[name] = address or (value if _PLAIN.match(value) else "not shown")
    if not is_read and failure is not None:
        raise failure
    return TraceSettings(shown, endpoint, _switch(shown), engine)


def exporter_counts(page: Exposition) -> ExporterCounts | None:
    """The exporter's own counters; None where the page has none of them."""
    sent = failed = dropped = 0.0
    is_told = False
    for sample in page.samples:
        # The SDK tells failures by a label on the same counter.
        has_error = bool(sample.labels.get("error_type") or sample.labels.get("error.type"))
        if sample.name in _SENT:
            is_told = True
            if has_error:
                failed += sample.value
            else:
                sent += sample.value
        elif sample.name in _FAILED:
            is_told = True
            failed += sample.value
        elif sample.name in _LOST and (has_error or not sample.name.startswith("otel_sdk")):
            is_told = True
            dropped += sample.value
    return ExporterCounts(sent, failed, dropped) if is_told else None


def collector_peers(sockets: Iterable[TcpSocket], endpoint: str | None) -> tuple[str, ...]:
    """Peers of established connections that are the endpoint's port, or a collector's usual one."""
    target = host_and_port(f"tcp://{endpoint}") if endpoint else None
    ports = {str(target[1])} if target else _COLLECTOR_PORTS
    return tuple(
        sorted(
            {
                item.peer
                for item in sockets
                if item.state == "ESTABLISHED" and item.peer.rpartition(":")[2] in ports
            }
        )
    )


def _variables(environ: str) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in environ.split("\0"))
    return {name: value for name, _, value in pairs if name in _VARIABLES and value}


def _engine(command: Iterable[str]) -> str | None:
    found = _ENGINE.search(" ".join(list(command)[:4]))
    return found.group(1) if found else None


def _flags(command: Iterable[str]) -> dict[str, str]:
    words = list(command)
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        flag, has_value, value = word.partition("=")
        # Triton writes `--trace-config opentelemetry,url=ADDRESS`, so a blank may stand where `=` would.
        if _FLAGS.match(flag):
            follows = words[index + 1] if index + 1 < len(words) else ""
            found[flag.lstrip("-")] = value if has_value else follows
    return found


def _endpoint(value: str) -> str | None:
    """Host and port of an address; user and path stay on the node."""
    match = _URL.search(value)
    address = match.group() if match else f"tcp://{value}" if ":" in value else ""
    target = host_and_port(address)
    return f"{target[0]}:{target[1]}" if target else None


def _switch(shown: Mapping[str, str]) -> str | None:
    if shown.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return "OTEL_SDK_DISABLED=true"
    if shown.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return "OTEL_TRACES_EXPORTER=none"
    if shown.get("OTEL_TRACES_SAMPLER", "").lower() == "always_off":
        return "OTEL_TRACES_SAMPLER=always_off"
    return None
