"""Sample alerts as other apps post them in a channel, in the form that each really uses."""

from __future__ import annotations

from bot.workspace.records import Json

SERVICE = "translate-api"
_EXPRESSION = (
    "histogram_quantile(0.99, sum by (le) (rate(request_duration_seconds_bucket[1m]))) > 0.3"
)


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
