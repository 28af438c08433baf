"""Who is affected, proposed from labels and series; and what a vague symptom leaves open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

from bot.domain.evidence import Series
from bot.domain.incident import Scope
from bot.domain.text import Localized
from bot.locales import say

_NODE = ("node", "Hostname", "kubernetes_node", "host")
_REPLICA = ("exported_pod", "pod", "replica", "instance")
_MODEL = ("model_name", "model", "exported_model")
_TENANT = ("tenant", "tenant_id", "customer", "org")

_MEASURED = re.compile(
    r"\d+(\.\d+)?\s*(ms|s|sec|秒|毫秒|%|percent|x|倍|/s|rps|qps|5\d\d)|\b5\d\d\b|\bx\s?\d|from .+ to |从.+到",
    re.IGNORECASE,
)
_THING = re.compile(
    r"latenc|p\d\d|ttft|tpot|time ?out|error|5xx|5\d\d|fail|quality|accura|garbage|nan|throughput|tokens?/s"
    r"|queue|oom|crash|restart|stuck|hang|延迟|耗时|超时|错误|报错|失败|质量|准确|乱码|吞吐|排队|崩溃|重启|卡住|显存",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"\b(node|gpu|pod|replica|tenant|customer|model|region|cluster|all|every|only)\b"
    r"|节点|副本|租户|客户|模型|机房|集群|所有|全部|仅|只有",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(since|from|at|after|before|yesterday|today|ago)\b.*\d|\d{1,2}:\d{2}|\b(yesterday|this morning|last night)\b"
    r"|从?\s*\d+\s*点|自.+起|昨天|今早|刚才|\d+\s*(分钟|小时|天)前",
    re.IGNORECASE,
)


class Open(StrEnum):
    """What a symptom must say and does not."""

    WHAT = "what"
    SCOPE = "scope"
    SINCE = "since"

    @property
    def question(self) -> Localized:
        """The question for the responder."""
        return say(f"diagnosis.vague.{self.value}")


def propose_scope(labels: Mapping[str, str], series: Iterable[Series] = ()) -> Scope:
    """Nodes, replicas, models and tenants that an alert's labels and abnormal series name; a person confirms.

    An exporter's own pod is never a victim: where a series carries `exported_pod`, that is the workload.
    """
    sources = [labels, *(one.labels for one in series)]

    def of(keys: tuple[str, ...]) -> tuple[str, ...]:
        found = []
        for source in sources:
            value = next((source[key] for key in keys if source.get(key)), None)
            if value and value not in found:
                found.append(value)
        return tuple(sorted(found))

    nodes = set(of(_NODE))
    if not nodes:
        nodes = {value.rsplit(":", 1)[0] for value in of(("instance",))}
    return Scope(
        nodes=tuple(sorted(nodes)),
        replicas=of(_REPLICA),
        models=of(_MODEL),
        tenants=of(_TENANT),
    )


def vague(
    text: str,
    *,
    metric: str | None = None,
    scope: str | None = None,
    since: datetime | None = None,
) -> tuple[Open, ...]:
    """What a declared symptom leaves open.

    >>> [item.value for item in vague("it is slow")]
    ['what', 'scope', 'since']
    >>> vague("P99 latency 80 ms to 600 ms on all nodes since 20:10")
    ()
    """
    found: list[Open] = []
    if metric is None and not (_THING.search(text) and _MEASURED.search(text)):
        found.append(Open.WHAT)
    if not scope and not _WHO.search(text):
        found.append(Open.SCOPE)
    if since is None and not _WHEN.search(text):
        found.append(Open.SINCE)
    return tuple(found)
