"""What a checklist is, and what an incident would change in it.

A checklist is YAML in `templates/checklists/`; a team's own file of the same name takes its place:

    id: inference-latency
    title: {en: …, zh-CN: …}
    matches: [latency, p99, 延迟]      # words of the symptoms that it is for; none: for any incident
    items:                             # last, since accepted changes are appended
      - id: cpu-waits
        step: information
        probe: host_cpu                # optional: the probe that answers it
        query: …                       # or PromQL, with `above: NUMBER` or `below: NUMBER` as what is abnormal
        learned_from: INC-7            # optional: the incident that taught it
        text: {en: …, zh-CN: …}
"""

from __future__ import annotations

from bot.checklist.diffs import apply_change
from bot.checklist.proposing import Background, fitting, propose_for
from bot.checklist.reading import (
    Checklist,
    ChecklistItem,
    lint,
    load_checklists,
    parse_checklist,
    shipped_checklists,
)

__all__ = [
    "Background",
    "Checklist",
    "ChecklistItem",
    "apply_change",
    "fitting",
    "lint",
    "load_checklists",
    "parse_checklist",
    "propose_for",
    "shipped_checklists",
]
