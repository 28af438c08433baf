"""The incident as an append-only list of typed, dated entries.

What each kind of entry carries in `data` (JSON values only; every text that a person wrote is in `text`, never in
`data`, so that it can be withheld when its author deletes it):

| kind | data |
| --- | --- |
| system | `op` = opened (`title`, `severity`, `services`, `nodes`, `channel`, `locale`, `labels`, `source`), attached (`thread_ts`, `card_ts`), status (`status`), scope (`nodes`, `replicas`, `models`, `tenants`, `confirmed`), truncated (`delivered`, `left_out`), recurrence (`recurrence_of`), storm_member (`storm`), storm (`members`: list of `id`, `title`), similar (`similar`: list of Precedent), recurrences (`by`, `days`, `incidents`), drill (`cause`, `seed`, `case`), note |
| alert | `op` = firing, repeated, resolved, refired, joined, acknowledged, silenced; `alert` (Alert), `group_key`, `source`; hearing (`is_known`, `silenced`: Silence by fingerprint) |
| message | `ts`, `files` |
| reaction | `ts`, `emoji`, `meaning`, `target` (seq), `removed` |
| symptom | `id`, `metric`, `scope`, `since`; the statement is the text |
| evidence | `evidence` (list of Evidence), `gaps` (list of Gap), `sources`, `layers`, `blind_spots`, `changes_since`; `person` evidence is its text |
| probe | `result` (ProbeResult) or `results` (list of them), `purpose` = asked, experiment, capture, collection, checklist; a file that was left (`purpose` = artefact): `probe`, `node`, `artefact` (`blob`, `bytes`, `sha256`, `media_type`; empty where it was not fetched) |
| change | `changes` (list of Change), `since` |
| hypothesis | `op` = ranked (`hypotheses`), added (`cause`, `title`), moved (`cause`, `to`), rejected (`cause`; the reason is the text), confirmed (`cause`, `explains`, `trigger`, `deep_cause`, `prevention`) |
| experiment | `op` = planned (`id`, `cause`, `probe`, `node`, `args`, `query`, `predicted`, `would_refute`), finished (`id`, `result`, `verdict`, `evidence`) |
| step | `op` = entered, passed, back, skipped; `step` |
| gate | `step`, `missing` (list of Localized); passed in spite of it: the reason is the text |
| mitigation | `captured` (probe names), `skipped` |
| role / severity | `role`, `user` / `severity` |
| chart | `chart`, `title`, `alt`, `png` and `svg` (blob names; `ChartRef` says what lies beside the SVG), `panels` |
| report | `formats`, `state`; `op` = edited (`topic`, `state`; the words are the text), cited (`claim`, `evidence`, `state`), reviewed (`state`), final (`state`), reopened (`state`), delivered (`target`, `url`) |
| checklist | `op` = proposed (`n`, `kind`, `checklist`, `diff`), edited (`n`, `diff`), accepted (`n`, `version`), declined (`n`; the reason is the text), none (nothing to propose), used (`used`: UsedChecklist), procedure (`procedure`: UsedProcedure), checked (`checks`: list of CheckRun), rolled_back (`checklist`, `to`, `version`) |
| action | `op` = added (`n`, `owner`, `due`), done (`n`), dropped (`n`), linked (`n`, `url`, `status`), fix (text), verified (`verified`, `evidence`) |
| followup | `op` = due (`anchor`), snoozed (`until`), stopped; `followup` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.domain.text import Localized

SYSTEM_AUTHOR = "rca-bot"

WITHHELD = Localized("(withheld by its author)", "（作者已撤回）")
"""What stands where the words of an entry were, in what was made of them."""


def is_person(author: str) -> bool:
    """Whether a person wrote an entry: not this bot, and no other app (`B…`) whose message was captured."""
    is_app = author.startswith("B") and author[1:].isalnum() and author.isupper()
    return author not in (SYSTEM_AUTHOR, "unknown", "") and not is_app


class EntryKind(StrEnum):
    """The closed set of the JSON export."""

    ALERT = "alert"
    MESSAGE = "message"
    REACTION = "reaction"
    SYMPTOM = "symptom"
    EVIDENCE = "evidence"
    PROBE = "probe"
    CHANGE = "change"
    HYPOTHESIS = "hypothesis"
    EXPERIMENT = "experiment"
    STEP = "step"
    GATE = "gate"
    MITIGATION = "mitigation"
    ROLE = "role"
    SEVERITY = "severity"
    CHART = "chart"
    REPORT = "report"
    CHECKLIST = "checklist"
    ACTION = "action"
    FOLLOWUP = "followup"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry before it has a place in the timeline.

    author: a Slack user id, or `rca-bot`. source: what it came through (`slack`, `alertmanager`, `engine`, …).
    corrects: seq of the entry that this one corrects.
    """

    kind: EntryKind
    at: datetime
    text: Localized
    author: str = SYSTEM_AUTHOR
    source: str = SYSTEM_AUTHOR
    permalink: str | None = None
    corrects: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """An earlier wording of an entry, and until when it stood."""

    text: Localized
    replaced_at: datetime

    def to_json(self) -> dict[str, Any]:
        """`{"text", "replaced_at"}`."""
        return {"text": self.text.to_json(), "replaced_at": to_rfc3339(self.replaced_at)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the timeline. `seq` is unique and gapless from 1; `text` is None once its author deleted it."""

    seq: int
    kind: EntryKind
    at: datetime
    author: str
    source: str
    text: Localized | None
    permalink: str | None = None
    corrects: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[Revision, ...] = ()

    @property
    def is_withheld(self) -> bool:
        """Whether the author deleted the message that this entry came from."""
        return self.text is None

    @property
    def op(self) -> str:
        """The `op` of `data`, or an empty string."""
        return str(self.data.get("op", ""))

    def body_json(self) -> dict[str, Any]:
        """Everything but the text, which is stored beside the stream."""
        return {
            "seq": self.seq,
            "kind": self.kind.value,
            "at": to_rfc3339(self.at),
            "author": self.author,
            "source": self.source,
            "permalink": self.permalink,
            "corrects": self.corrects,
            "data": dict(self.data),
        }

    @classmethod
    def from_json(
        cls,
        body: Mapping[str, Any],
        text: Localized | None,
        history: tuple[Revision, ...] = (),
    ) -> Entry:
        """Reads `body_json`'s shape; the text comes from beside it."""
        return cls(
            seq=int(body["seq"]),
            kind=EntryKind(body["kind"]),
            at=parse_rfc3339(body["at"]),
            author=body["author"],
            source=body["source"],
            text=text,
            permalink=body.get("permalink"),
            corrects=body.get("corrects"),
            data=dict(body.get("data") or {}),
            history=history,
        )
