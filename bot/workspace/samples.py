"""Sample alerts, in the form that each sender really uses."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from bot.domain.instant import to_rfc3339
from bot.workspace.records import Json

SERVICE = "translate-api"
_EXPRESSION = (
    "histogram_quantile(0.99, sum by (le) (rate(request_duration_seconds_bucket[1m]))) > 0.3"
)


def alertmanager_webhook(at: datetime, *, is_resolved: bool = False) -> Json:
    """A body of the Alertmanager webhook, version 4."""
    labels = {
        "alertname": "InferenceLatencyHigh",
        "service": SERVICE,
        "severity": "critical",
        "quantile": "0.99",
    }
    status = "resolved" if is_resolved else "firing"
    fingerprint = hashlib.sha256(repr(sorted(labels.items())).encode()).hexdigest()[:16]
    annotations = {
        "summary": "P99 of translate-api is above 300 ms",
        "description": "P99 went from 80 ms to 600 ms; CPU, memory and network look normal.",
    }
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{labels["alertname"]}", service="{SERVICE}"}}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "rca-bot",
        "groupLabels": {"alertname": labels["alertname"], "service": SERVICE},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "http://alertmanager.example:9093",
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": to_rfc3339(at),
                "endsAt": to_rfc3339(datetime.now(UTC)) if is_resolved else "0001-01-01T00:00:00Z",
                "generatorURL": "http://prometheus.example:9090/graph?g0.expr=p99&g0.tab=1",
                "fingerprint": fingerprint,
            }
        ],
    }


def bot_message(bot_id: str) -> Json:
    """`text` and `attachments` of an alert as that app posts it in a channel."""
    match bot_id:
        case "B0GRAFANA":
            return {
                "text": "",
                "attachments": [
                    {
                        "color": "#D63232",
                        "fallback": "[FIRING:1] GPU clocks throttled gpu-1",
                        "title": "[FIRING:1] GPU clocks throttled (gpu-1 inference)",
                        "title_link": "http://grafana.example:3000/alerting/list",
                        "text": "**Firing**\n\nValue: A=1, C=1\nLabels:\n - alertname = GPU clocks throttled\n"
                        f" - service = {SERVICE}\n - node = gpu-1\n - severity = warning\n",
                        "footer": "Grafana v12.1.0",
                        "mrkdwn_in": ["text"],
                    }
                ],
            }
        case "B0PAGER":
            return {
                "text": "",
                "attachments": [
                    {
                        "color": "#AF251C",
                        "fallback": "Triggered #4711: P99 of translate-api is above 300 ms",
                        "pretext": "Triggered <http://pagerduty.example/incidents/Q4711|#4711>",
                        "title": "P99 of translate-api is above 300 ms",
                        "title_link": "http://pagerduty.example/incidents/Q4711",
                        "fields": [
                            {"title": "Service", "value": SERVICE, "short": True},
                            {"title": "Urgency", "value": "High", "short": True},
                        ],
                    }
                ],
            }
        case _:
            return {
                "text": "",
                "attachments": [
                    {
                        "color": "danger",
                        "fallback": f"[FIRING:1] InferenceLatencyHigh {SERVICE} (0.99 critical)"
                        " | http://alertmanager.example:9093/#/alerts?receiver=slack",
                        "title": f"[FIRING:1] InferenceLatencyHigh {SERVICE} (0.99 critical)",
                        "title_link": "http://alertmanager.example:9093/#/alerts?receiver=slack",
                        "text": "*Alert:* P99 of translate-api is above 300 ms\n"
                        f"*Expression:* `{_EXPRESSION.replace('>', '&gt;')}`",
                        "fields": [
                            {"title": "Service", "value": SERVICE, "short": True},
                            {"title": "Severity", "value": "critical", "short": True},
                        ],
                        "mrkdwn_in": ["fallback", "pretext", "text"],
                    }
                ],
            }
