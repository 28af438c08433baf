"""JSON in the published shape `rca-bot/postmortem/1`; `templates/report/postmortem.schema.json` describes it."""

from __future__ import annotations

import json as standard_json

from bot.domain.postmortem import Postmortem
from bot.exporter import Export, Exporter, ExportOptions
from bot.report.document import document
from bot.report.redact import redact
from bot.report.wording import safe_name


def export(report: Postmortem, options: ExportOptions) -> Export:
    """One JSON file."""
    value = document(redact(report), options.locale)
    text = standard_json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    name = f"{safe_name(report.header.id)}.json"
    return Export(main=name, files={name: f"{text}\n".encode()})


json = Exporter(name="json", suffix="json", media_type="application/json", export=export)
