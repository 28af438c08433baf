"""Sample alerts as each sender posts them to a webhook, firing and over."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

from bot.domain.instant import to_rfc3339
from bot.workspace.records import Json
from bot.workspace.samples import SERVICE


class Sample(Protocol):
    """Makes a body: when the alert began, and whether it is over by now."""

    def __call__(self, at: datetime, *, is_resolved: bool = False) -> Json: ...


def _alertmanager(at: datetime, *, is_resolved: bool = False) -> Json:
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


def _grafana(at: datetime, *, is_resolved: bool = False) -> Json:
    """A body of Grafana's unified alerting webhook."""
    name, node = "GPU clocks throttled", "gpu-1"
    labels = {"alertname": name, "service": SERVICE, "node": node, "severity": "warning"}
    status = "resolved" if is_resolved else "firing"
    annotations = {"summary": f"SM clock of {node} is 40 % below what it should be"}
    return {
        "version": "1",
        "groupKey": f'{{}}/{{}}:{{alertname="{name}"}}',
        "truncatedAlerts": 0,
        "status": status,
        "state": "ok" if is_resolved else "alerting",
        "receiver": "rca-bot",
        "orgId": 1,
        "title": f"[{status.upper()}:1] {name} ({node} inference)",
        "message": "",
        "groupLabels": {"alertname": name},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "http://grafana.example:3000/",
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": to_rfc3339(at),
                "endsAt": to_rfc3339(datetime.now(UTC)) if is_resolved else "0001-01-01T00:00:00Z",
                "generatorURL": "http://grafana.example:3000/alerting/grafana/bdx1/view",
                "silenceURL": "http://grafana.example:3000/alerting/silence/new",
                "fingerprint": hashlib.sha256(repr(sorted(labels.items())).encode()).hexdigest()[
                    :16
                ],
                "values": {"A": 1140.0, "C": 1},
                "valueString": f"[ var='A' labels={{node={node}}} value=1140 ], [ var='C' labels={{}} value=1 ]",
            }
        ],
    }


def _pagerduty(at: datetime, *, is_resolved: bool = False) -> Json:
    """A body of PagerDuty's webhook, version 3."""
    what = "resolved" if is_resolved else "triggered"
    page = "https://pagerduty.example/incidents/Q4711"
    return {
        "event": {
            "id": f"01SAMPLE{what.upper()}",
            "event_type": f"incident.{what}",
            "resource_type": "incident",
            "occurred_at": to_rfc3339(datetime.now(UTC) if is_resolved else at),
            "agent": None,
            "client": None,
            "data": {
                "id": "Q4711",
                "type": "incident",
                "self": "https://api.pagerduty.example/incidents/Q4711",
                "html_url": page,
                "number": 4711,
                "status": what,
                "incident_key": None,
                "created_at": to_rfc3339(at),
                "title": f"{SERVICE}: requests wait 600 ms",
                "service": {"id": "PSVC1", "summary": SERVICE, "type": "service_reference"},
                "assignees": [],
                "teams": [],
                "priority": None,
                "urgency": "high",
                "resolve_reason": None,
            },
        }
    }


WEBHOOKS: Mapping[str, Sample] = MappingProxyType(
    {"alertmanager": _alertmanager, "grafana": _grafana, "pagerduty": _pagerduty}
)
