"""HTML: one file that works offline, prints well, follows the reader's light or dark theme and holds no script."""

from __future__ import annotations

from bot.domain.postmortem import Postmortem
from bot.exporter import Export, Exporter, ExportOptions
from bot.report.html import write_html
from bot.report.outline import outline
from bot.report.redact import redact
from bot.report.wording import safe_name


def export(report: Postmortem, options: ExportOptions) -> Export:
    """One HTML file with its charts inside."""
    page = write_html(outline(redact(report), options.locale))
    name = f"{safe_name(report.header.id)}.html"
    return Export(main=name, files={name: page.encode()})


html = Exporter(name="html", suffix="html", media_type="text/html; charset=utf-8", export=export)
