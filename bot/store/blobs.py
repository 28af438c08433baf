"""Where the files of an incident are stored."""

from __future__ import annotations

_FORMATS = ("md", "html", "pdf", "json")


def blob_key(incident_id: str, name: str) -> str:
    """Where a file of an incident is stored."""
    return f"rca:inc:{incident_id}:blob:{name}"


def report_files(incident_id: str) -> tuple[str, ...]:
    """The names of all files that a report is handed over in."""
    return (*(f"{incident_id}.{suffix}" for suffix in _FORMATS), archive_name(incident_id, "md"))


def archive_name(incident_id: str, suffix: str) -> str:
    """The archive of a report with its images and data."""
    return f"{incident_id}-{suffix}.zip"
