"""The proposed files of a report's monitoring changes, to lie beside it; and as much of them as a page should hold."""

from __future__ import annotations

from bot.checklist.diffs import files_of
from bot.domain.postmortem import Postmortem
from bot.errors import CommandError

_SECOND_FILE = "\n--- /dev/null\n+++ b/"


def proposal_files(report: Postmortem, folder: str) -> dict[str, bytes]:
    """Each proposed file of the monitoring, and one patch of the checklist changes, by path within `folder`.

    A diff that masking has broken stays a diff.
    """
    found: dict[str, bytes] = {}
    for number, item in enumerate(report.monitoring_changes, 1):
        try:
            files = files_of(item.diff)
        except CommandError:
            files = {f"monitoring/{number}.patch": item.diff}
        found.update({f"{folder}/{path}": text.encode() for path, text in files.items()})
    if diffs := [item.diff for item in report.checklist_changes if item.diff]:
        found[f"{folder}/checklist.patch"] = "".join(diffs).encode()
    return found


def shown_diff(diff: str) -> str:
    """The first file of a diff: a rule belongs on the page, the series of its test beside it."""
    end = diff.find(_SECOND_FILE)
    return diff if end < 0 else diff[: end + 1]
