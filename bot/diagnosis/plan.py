"""What to ask of whom: queries with their placeholders filled, log selectors, probes with their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.cause import Catalogue, Cause, LogTest, Signal, Test, logs_of, signals_of
from bot.inventory import Service

_PLACEHOLDER = re.compile(r"\$(service|name|pods|node|host|container|others|w)\b")
_METRIC = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{")
_SERVICE_PROBES = frozenset(
    {
        "gpu_allocator", "process_memory", "service_sockets", "process_threads", "process_stacks",
        "service_config", "service_metrics", "model_artifact", "golden_set", "log_health",
        "trace_health", "burst_sample", "dependency_check",
    }
)  # fmt: skip
_HEAVY_PROBES = frozenset({"golden_set", "h2d_bandwidth"})
_SHORTEST_WORD = 3
"""Letters of a part of the service's name that may name its model. Basis: judgement: shorter parts are found in
everything.
"""

_ON_DEMAND = frozenset({"profile"})
"""Probes whose result is a file for a person; they rank nothing and run only when somebody asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The entity that is asked about, as label matchers.

    rate_seconds: window of `rate()`. Source: Prometheus' advice of at least four scrapes.
    """

    service: Service
    nodes: tuple[str, ...]
    rate_seconds: float

    def fill(self, query: str) -> str:
        """A PromQL or LogQL text with its placeholders filled."""
        return self._filled(query)

    def _filled(self, query: str, **instead: str) -> str:
        """The same, with `instead` for some of the placeholders."""
        name = _quote(self.service.name)
        own = ",".join(f'{key}="{_quote(value)}"' for key, value in self.service.matchers.items())
        nodes = any_of(self.nodes) or ".+"
        texts = {
            "service": own,
            "name": f'service="{name}"',
            "pods": self.pods,
            "node": f'node=~"{nodes}"',
            "host": f'Hostname=~"{nodes}"',
            "container": f'container="{name}"',
            "others": f'container!="{name}",container!=""',
            "w": f"{self.rate_seconds:g}s",
            **instead,
        }
        # In one pass, so that a name with a dollar in it is never read as a placeholder.
        return _PLACEHOLDER.sub(lambda found: texts[found[1]], query)

    def by_instance(self, query: str) -> str | None:
        """The same question where a site labels hosts by `instance` only; None when it names no node."""
        if "$node" not in query or not self.nodes:
            return None
        return self._filled(
            re.sub(r"by \(node(?=[,)])", "by (instance", query),
            node=f'instance=~"({any_of(self.nodes)})(:[0-9]+)?"',
        )

    def by_pod(self, query: str) -> tuple[str, ...]:
        """The same question where series carry only the pod: by its name, which begins with the service's.

        The GPU exporter's own pod is in `pod` and the workload in `exported_pod`, or the other way round where the
        scrape honours labels; so the workload's label is asked first.
        """
        if self.service.selectors or not re.search(r"\$(service|host)\b", query):
            return ()
        return tuple(
            self._filled(
                re.sub(r"by \((node|Hostname)(?=[,)])", f"by ({label}", query),
                service=f'{label}=~"{self.pods}"',
                host=f'{label}=~"{self.pods}"',
            )
            for label in (("exported_pod", "pod") if "$host" in query else ("pod",))
        )

    def by_model(self, query: str) -> tuple[str, ...]:
        """The same question to a model server that names only its model: by a model that the service's name contains."""
        if self.service.selectors or "$service" not in query or "nv_" not in query:
            return ()
        words = dict.fromkeys([self.service.name, *re.split(r"[-_.]", self.service.name)])
        models = any_of(word for word in words if len(word) >= _SHORTEST_WORD)
        return (self._filled(query, service=f'model=~"{models}"'),)

    def recorded(self, name: str) -> tuple[str, ...]:
        """A recording rule's series of this service."""
        own = dict.fromkeys((self.fill(f"{name}{{$service}}"), self.fill(f"{name}{{$name}}")))
        return (*own, *self.by_pod(f"{name}{{$service}}"))

    @property
    def pods(self) -> str:
        """A regular expression for the names of the service's pods."""
        return f"{any_of([self.service.name])}(-[a-z0-9]+)*"


def any_of(names: Iterable[str]) -> str:
    """A regular expression for any of the names, ready to stand between the quotes of a matcher."""
    # A hyphen outside a class needs no escape, and an escaped one only hurts the reader of the query.
    return "|".join(_quote(re.escape(name).replace("\\-", "-")) for name in names)


def metrics_in(query: str) -> frozenset[str]:
    """Names of the metrics that a query reads; empty when it selects by a pattern of names.

    >>> sorted(metrics_in('rate(a_total{$service}[$w]) / rate(b{x="1"}[5m])'))
    ['a_total', 'b']
    """
    return frozenset(name for name in _METRIC.findall(query) if name != "by")


def signals_needed(catalogue: Catalogue) -> tuple[Signal, ...]:
    """The signals that the causes ask for, and those that show symptoms; each once, by name."""
    wanted = {name for test in tests_of(catalogue.causes.values()) for name in signals_of(test)}
    return tuple(
        signal
        for name, signal in catalogue.signals.items()
        if signal.queries and (name in wanted or signal.symptom is not None)
    )


def log_tests(catalogue: Catalogue) -> tuple[LogTest, ...]:
    """The log patterns of all causes, each once."""
    found = {pattern for test in tests_of(catalogue.causes.values()) for pattern in logs_of(test)}
    return tuple(sorted(found, key=lambda test: (test.place.value, test.pattern, test.minimum)))


def tests_of(causes: Iterable[Cause]) -> tuple[Test, ...]:
    """Every test that the causes carry."""
    tests: list[Test] = []
    for cause in causes:
        tests.extend(rule.test for rule in cause.evidence)
        tests.extend(refuter.test for refuter in cause.refuters)
        tests.extend(link.test for link in cause.deeper if link.test is not None)
    return tuple(tests)


def probes_for(
    catalogue: Catalogue, service: str, *, heavy: bool
) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The probes to run on every node, with their arguments, by name."""
    names = sorted({finding.probe for finding in catalogue.findings.values()} - _ON_DEMAND)
    return tuple(
        (name, probe_args(name, service)) for name in names if heavy or name not in _HEAVY_PROBES
    )


def probe_args(probe: str, service: str) -> dict[str, Any]:
    """The arguments that a probe needs at least."""
    if probe in _SERVICE_PROBES:
        return {"service": service}
    return {"gpu": 0} if probe == "h2d_bandwidth" else {}


def is_heavy(probe: str) -> bool:
    """Whether a responder must approve each run."""
    return probe in _HEAVY_PROBES or probe in _ON_DEMAND


def log_selector(matchers: Mapping[str, str]) -> str:
    """A LogQL stream selector.

    >>> log_selector({"app": "a"})
    '{app="a"}'
    """
    return "{" + ",".join(f'{key}="{_quote(value)}"' for key, value in matchers.items()) + "}"


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
