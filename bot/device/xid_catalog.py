"""What several sources say about an Xid code. They disagree, so all are given and none is preferred.

Sources, as read in 2026: NVIDIA's Xid catalogue (immediate action), leptonai/gpud (class), Azure/azurehpc-health-checks
(codes that fail a node), NVIDIA/k8s-device-plugin (codes that it ignores as application faults).
"""

from __future__ import annotations

from dataclasses import dataclass

CATALOG_VERSION = "2026-11"


@dataclass(frozen=True, slots=True)
class Classification:
    """One source's word on a code."""

    source: str
    catalog_version: str
    verdict: str


_ACTIONS: dict[str, tuple[int, ...]] = {
    "RESTART_APP": (
        8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 85, 94,
        *range(126, 136),
    ),
    "IGNORE": (37, 38, 43, 44, 63, 66, 67, 92, 121, 137, 157, 160, 161),
    "RESET_GPU": (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158),
    "WORKFLOW": (45, 48, 74, *range(144, 151), 154),
    "CHECK_MECHANICALS": (54,),
    "UPDATE_SWFW": (78,),
    "RESTART_BM": (79,),
    "CONTACT_SUPPORT": (142,),
    "RESTART_VM": (151,),
    "CHECK_UVM": (159,),
}  # fmt: skip
_GPUD: dict[str, tuple[int, ...]] = {
    "fatal": (
        32, 38, 44, 46, 48, 60, 62, 63, 64, 66, 67, 68, 69, 74, 78, 79, 95, 110, 119, 120, 121, 140, 143,
    ),
    "fatal, only the application is to be restarted": (94,),
    "warning": (
        8, 37, 39, 40, 41, 54, 70, 71, 72, 75, 76, 77, 80, 85, 109, *range(126, 137), 142, 154, 157,
        159, 160, 161, 168, 171,
    ),
    "warning, check application and GPU": (13, 31),
    "warning, check application": (43, 137),
    "warning, ignored": (45, 92),
    "warning, reboot": (*range(144, 152), 155, 156, 158, 167, 169, 172),
    "mostly for information": (162, 163, 164, 165),
}  # fmt: skip
_AZURE_FAIL = frozenset({48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 119, 120})
_PLUGIN_IGNORED = frozenset({13, 31, 43, 45, 68, 109})
_HARDWARE_ACTIONS = {
    "RESET_GPU",
    "RESTART_BM",
    "CHECK_MECHANICALS",
    "CONTACT_SUPPORT",
    "RESTART_VM",
}


def classify(code: int) -> tuple[Classification, ...]:
    """Every source's word, "not listed" included.

    >>> [item.verdict for item in classify(43)]
    ['IGNORE', 'warning, check application', 'not in the fail list', 'ignored as application']
    """
    action = _action(code)
    return (
        Classification("nvidia-catalog", CATALOG_VERSION, action or "not listed"),
        Classification("gpud", CATALOG_VERSION, _listed(_GPUD, code) or "not listed"),
        Classification(
            "azurehpc",
            CATALOG_VERSION,
            "fails the node" if code in _AZURE_FAIL else "not in the fail list",
        ),
        Classification(
            "k8s-device-plugin",
            CATALOG_VERSION,
            "ignored as application" if code in _PLUGIN_IGNORED else "unhealthy where delivered",
        ),
    )


def needs_hands(code: int) -> bool:
    """True where NVIDIA's own action goes beyond restarting the application; an unknown code does."""
    action = _action(code)
    return action is None or action in _HARDWARE_ACTIONS or code in {48, 74}


def _action(code: int) -> str | None:
    return _listed(_ACTIONS, code)


def _listed(table: dict[str, tuple[int, ...]], code: int) -> str | None:
    return next((verdict for verdict, codes in table.items() if code in codes), None)
