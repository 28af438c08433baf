"""A scope in words: which nodes, replicas, models and tenants are hit."""

from __future__ import annotations

from bot.domain.incident import Scope
from bot.domain.text import Localized, listed
from bot.locales import say


def scope_words(scope: Scope) -> tuple[Localized, ...]:
    """One phrase for each part that is known, `nodes: gpu-1, gpu-2`; none where nothing is."""
    parts = {
        "nodes": scope.nodes,
        "replicas": scope.replicas,
        "models": scope.models,
        "tenants": scope.tenants,
    }
    return tuple(
        say(f"incident.scope.{name}", names=listed(items)) for name, items in parts.items() if items
    )
