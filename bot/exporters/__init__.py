"""One exporter per file; this door collects and runs them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache

from bot.domain.postmortem import Postmortem
from bot.domain.text import Localized
from bot.errors import CommandError, Reason
from bot.exporter import Export, Exporter, ExportOptions
from bot.locales import say
from bot.registry import collect
from bot.report.redact import redact
from bot.report.redaction_rules import DEFAULT_RULES, Rule
from bot.report.worker import RenderWorker

RENDER_TIMEOUT_SECONDS = 180.0
"""A PDF of a long incident takes half a minute on two busy cores; more than this means that it hangs."""


@cache
def exporters() -> Mapping[str, Exporter]:
    """All exporters by the word that people type: the suffix of their file."""
    found = collect(sys.modules[__name__], Exporter)
    return {exporter.suffix: exporter for exporter in found.values()}


def exporter_for(word: str) -> Exporter:
    """The exporter with this suffix or name.

    Raises:
        CommandError: there is no such format; the text lists those that there are.
    """
    known = exporters()
    for exporter in known.values():
        if word.lower() in (exporter.suffix, exporter.name):
            return exporter
    formats = ", ".join(known)
    text: Localized = say("report.unknown_format", word=word, formats=formats)
    raise CommandError(text, reason=Reason.NOT_FOUND)


def render_report(
    report: Postmortem,
    formats: Sequence[str],
    options: ExportOptions,
    rules: Sequence[Rule] = DEFAULT_RULES,
) -> dict[str, Export]:
    """The report in each of `formats` (suffixes), redacted once by `rules`.

    It blocks, for seconds where a PDF is asked for: run it in a worker process or thread, never on the event loop. All
    arguments and results can be pickled.

    Raises:
        CommandError: a format that does not exist; nothing is written then.
    """
    chosen = [exporter_for(word) for word in formats]
    safe = redact(report, rules)
    return {exporter.suffix: exporter.export(safe, options) for exporter in chosen}


async def render_in_worker(
    report: Postmortem,
    formats: Sequence[str],
    options: ExportOptions,
    *,
    timeout_seconds: float = RENDER_TIMEOUT_SECONDS,
) -> dict[str, Export]:
    """`render_report` in the one worker process that writes reports, so that the event loop never waits.

    Raises:
        CommandError: a format that does not exist.
        BotError: the worker took longer than `timeout_seconds`, or died twice.
    """
    for word in formats:
        exporter_for(word)
    return await report_worker().run(
        render_report, report, formats, options, timeout_seconds=timeout_seconds
    )


@cache
def report_worker() -> RenderWorker:
    """The worker that writes reports; its owner closes it at the end of the process."""
    return RenderWorker(name="report")
