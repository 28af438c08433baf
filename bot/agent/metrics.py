"""The agent's own Prometheus metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST


class AgentMetrics:
    """Labels are words of closed sets only, so that no caller can grow them."""

    CONTENT_TYPE = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.runs = Counter(
            "rca_agent_probe_runs",
            "Probe runs by outcome.",
            ["probe", "status"],
            registry=self._registry,
        )
        self.seconds = Histogram(
            "rca_agent_probe_duration_seconds",
            "Time from accepting a probe to its answer.",
            ["probe"],
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=self._registry,
        )
        self.refused = Counter(
            "rca_agent_requests_refused",
            "Requests that ran nothing, by reason.",
            ["reason"],
            registry=self._registry,
        )
        self.unaudited = Counter(
            "rca_agent_audit_lines_lost",
            "Audit lines that could not be written to their file; no probe runs meanwhile.",
            registry=self._registry,
        )
        self.hung = Gauge(
            "rca_agent_children_hung",
            "Probe processes that outlived their deadline and are still there.",
            registry=self._registry,
        )

    def page(self) -> bytes:
        """The exposition text."""
        page: bytes = generate_latest(self._registry)
        return page
