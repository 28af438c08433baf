"""The people on an incident."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a responder answers for."""

    LEAD = "lead"
    SCRIBE = "scribe"
    REVIEWER = "reviewer"


class Severity(StrEnum):
    """How bad it is, worst first."""

    SEV1 = "sev1"
    SEV2 = "sev2"
    SEV3 = "sev3"
    SEV4 = "sev4"
