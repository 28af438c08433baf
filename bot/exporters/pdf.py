"""PDF: the HTML report on A4 pages, numbered, charts as vectors, the fonts inside."""

from __future__ import annotations

from bot.domain.postmortem import Postmortem
from bot.exporter import Export, Exporter, ExportOptions
from bot.report.pdf import write_pdf
from bot.report.redact import redact
from bot.report.wording import safe_name


def export(report: Postmortem, options: ExportOptions) -> Export:
    """One PDF file; it takes seconds."""
    name = f"{safe_name(report.header.id)}.pdf"
    return Export(main=name, files={name: write_pdf(redact(report), options.locale)})


pdf = Exporter(name="pdf", suffix="pdf", media_type="application/pdf", export=export)
