"""The section of plain facts: ids, scope, people, spans of time, versions, durations with their definitions."""

from __future__ import annotations

from bot.domain.instant import Window
from bot.domain.postmortem import SCHEMA, DurationName
from bot.report.blocks import Facts, Inline, Row, Section, Table, Tone
from bot.report.clock import duration_text
from bot.report.wording import Wording, plain


def facts_section(words: Wording) -> Section:
    """Everything about the incident that is no judgement, and its durations with their definitions."""
    report = words.report
    header = report.header
    scope = header.scope
    none = plain(words.t("fact.none"), Tone.MUTED)
    rows: list[tuple[str, Inline]] = [
        (words.t("fact.id"), plain(header.id)),
        (words.t("fact.title"), plain(header.title)),
        (words.t("fact.severity"), plain(header.severity.value)),
        (words.t("fact.status"), plain(words.t(f"badge.status.{header.status.value}"))),
        (words.t("fact.state"), plain(words.t(f"badge.state.{header.state.value}"))),
        (words.t("fact.services"), plain(words.listed(header.services)) or none),
    ]
    parts = {
        "nodes": scope.nodes,
        "replicas": scope.replicas,
        "models": scope.models,
        "tenants": scope.tenants,
    }
    rows += [
        (words.t(f"fact.{key}"), plain(words.listed(names)))
        for key, names in parts.items()
        if names
    ]
    if any(parts.values()):
        state = "scope_confirmed" if scope.is_confirmed else "scope_proposed"
        rows.append((words.t("fact.scope_state"), plain(words.t(f"fact.{state}"))))
    roles = words.listed(
        words.labelled(f"fact.role.{role}", name) for role, name in header.roles.items()
    )
    rows += [
        (words.t("fact.roles"), plain(roles) or none),
        (words.t("fact.began"), plain(words.stamp(header.began_at)) or none),
        (words.t("fact.opened"), plain(words.stamp(header.opened_at))),
        (
            words.t("fact.ended"),
            plain(words.stamp(header.ended_at)) or plain(words.t("fact.ongoing")),
        ),
        (
            words.t("fact.resolved"),
            plain(words.stamp(header.resolved_at)) or plain(words.t("fact.ongoing")),
        ),
    ]
    if report.recurrences:
        rows.append((words.t("fact.recurrence"), _recurrences(words)))
    if report.precedents:
        alike = words.listed(item.id for item in report.precedents)
        rows.append((words.t("fact.precedents"), plain(words.t("fact.alike", ids=alike))))
    if header.began_at and header.ended_at:
        span = (header.ended_at - header.began_at).total_seconds()
        text = duration_text(max(0.0, span), words.locale)
        rows.append((words.t("fact.impact_duration"), plain(text)))
    rows += _windows(words)
    thread = f"{header.channel} / {header.thread_ts}" if header.thread_ts else header.channel
    rows += [
        (words.t("fact.alerts"), plain(str(header.alert_notifications))),
        (words.t("fact.thread"), plain(thread, Tone.CODE)),
        (words.t("fact.zone"), plain(report.zone)),
        (words.t("fact.version"), plain(f"rca-bot {report.version}")),
        (words.t("fact.schema"), plain(SCHEMA, Tone.CODE)),
    ]
    blocks = (Facts(rows=tuple(rows)), _durations(words))
    return Section(id="facts", title=words.t("section.facts"), blocks=blocks)


def _windows(words: Wording) -> list[tuple[str, Inline]]:
    """What span the evidence covers, and what span was searched for changes."""
    report = words.report
    rows: list[tuple[str, Inline]] = []
    spans = [item.evidence.window for item in report.evidence]
    if spans:
        whole = Window(min(span.start for span in spans), max(span.end for span in spans))
        rows.append((words.t("fact.evidence_window"), plain(words.clock.span(whole))))
    if report.changes_window is not None:
        rows.append(
            (words.t("fact.changes_window"), plain(words.clock.span(report.changes_window)))
        )
    return rows


def _recurrences(words: Wording) -> Inline:
    said = [
        words.t(
            f"fact.recurred_{item.by}",
            count=item.count,
            days=item.days,
            ids=words.listed(item.incidents),
        )
        for item in words.report.recurrences
    ]
    return plain("\n".join(said))


def _durations(words: Wording) -> Table:
    rows = []
    for name in DurationName:
        seconds = words.report.durations.get(name)
        value = (
            plain(words.t("durations.none"), Tone.MUTED)
            if seconds is None
            else plain(duration_text(seconds, words.locale))
        )
        cells = (
            plain(words.t(f"durations.{name.value}")),
            value,
            plain(words.t(f"definition.{name.value}"), Tone.MUTED),
        )
        rows.append(Row(cells=cells))
    columns = tuple(words.t(f"durations.{key}") for key in ("name", "value", "definition"))
    return Table(
        caption=words.t("durations.caption"), columns=columns, rows=tuple(rows), widths=(28, 18, 54)
    )
