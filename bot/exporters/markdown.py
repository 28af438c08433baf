"""Markdown (CommonMark with GitHub's tables), with its drawings and their data as files beside it."""

from __future__ import annotations

from bot.domain.postmortem import Postmortem
from bot.exporter import Export, Exporter, ExportOptions
from bot.report.markdown import write_markdown
from bot.report.outline import outline
from bot.report.proposal_files import proposal_files
from bot.report.redact import redact
from bot.report.wording import safe_name


def export(report: Postmortem, options: ExportOptions) -> Export:
    """The Markdown file `<id>.md`, and in the folder `<id>/` each chart as an image and its data as CSV.

    Proposed changes of the monitoring and of the checklist lie there too, as files that can be used as they are.
    """
    stem = safe_name(report.header.id)
    masked = redact(report)
    text, attachments = write_markdown(outline(masked, options.locale), folder=stem)
    main = f"{stem}.md"
    proposed = proposal_files(masked, stem)
    return Export(main=main, files={main: text.encode(), **attachments, **proposed})


markdown = Exporter(
    name="markdown", suffix="md", media_type="text/markdown; charset=utf-8", export=export
)
