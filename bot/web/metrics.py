"""The bot's own Prometheus metrics, prefix `rca_bot_`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One registry per process, so that two bots in one test do not share counters."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.webhooks = Counter(
            "rca_bot_webhooks_total",
            "Webhook deliveries by sender and answer.",
            ["sender", "status"],
            registry=self.registry,
        )
        self.alerts = Counter(
            "rca_bot_alert_groups_total",
            "Alert notifications by what became of them.",
            ["outcome"],
            registry=self.registry,
        )
        self.webhook_seconds = Histogram(
            "rca_bot_webhook_seconds",
            "Time until a webhook was durable and answered.",
            registry=self.registry,
        )
        self.queue_lanes = Gauge(
            "rca_bot_queue_lanes", "Lanes with work in them.", registry=self.registry
        )
        self.overdue_timers = Gauge(
            "rca_bot_overdue_timers",
            "Follow-up timers that nobody ran in time; NaN while Redis does not answer.",
            registry=self.registry,
        )
        self.slack_up = Gauge(
            "rca_bot_slack_up",
            "1 when the last call to Slack succeeded, 0 when not, NaN before the first.",
            registry=self.registry,
        )
        self.slack_up.set(float("nan"))

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)
