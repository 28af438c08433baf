"""The dependency graph: who calls whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyGraph:
    """Components and the calls between them; both directions are ordered by name."""

    callees: Mapping[str, tuple[str, ...]]
    callers: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, calls: Iterable[tuple[str, str]], nodes: Iterable[str] = ()) -> DependencyGraph:
        """The graph of (caller, callee) pairs and of components that nobody was seen to call.

        >>> DependencyGraph.of([("shop", "cart"), ("shop", "pay")]).callees["shop"]
        ('cart', 'pay')
        """
        down: dict[str, set[str]] = {node: set() for node in nodes}
        up: dict[str, set[str]] = {node: set() for node in down}
        for caller, callee in calls:
            for node in (caller, callee):
                down.setdefault(node, set())
                up.setdefault(node, set())
            if caller != callee:
                down[caller].add(callee)
                up[callee].add(caller)
        return cls(
            callees={node: tuple(sorted(down[node])) for node in sorted(down)},
            callers={node: tuple(sorted(up[node])) for node in sorted(up)},
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """All components, by name."""
        return tuple(self.callees)

    def depth_from(self, entry: str | None) -> Mapping[str, int]:
        """Calls between `entry` (or the components that nobody calls) and each component; unreachable ones are left out."""
        starts = (
            (entry,)
            if entry in self.callees and entry is not None
            else tuple(node for node in self.nodes if not self.callers[node])
        )
        depth = dict.fromkeys(starts, 0)
        wave = list(starts)
        while wave:
            following: list[str] = []
            for node in wave:
                for callee in self.callees[node]:
                    if callee not in depth:
                        depth[callee] = depth[node] + 1
                        following.append(callee)
            wave = following
        return depth
