"""What every exporter keeps to: named as its file, the same bytes twice, no secret, nothing withheld, safe file names."""

from __future__ import annotations

import io
import re
from functools import cache

import pytest
from pypdf import PdfReader

import bot.exporters
from bot.domain.text import Locale
from bot.errors import CommandError
from bot.exporter import Export, Exporter, ExportOptions
from bot.exporters import exporter_for, exporters, render_in_worker, render_report, report_worker
from bot.registry import collect
from bot.report.redact import redact
from tests.report.sample import HOSTILE, SECRETS, WITHHELD_TEXT, sample_case

KNOWN = collect(bot.exporters, Exporter)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text x="1">node 10.20.30.40</text></svg>'
BLOBS = {
    "deciding.svg": SVG,
    "deciding.csv": b"time,node 10.20.30.40\n2026-11-30T08:15:00Z,1\n",
}

every = pytest.mark.parametrize("exporter", KNOWN.values(), ids=list(KNOWN))


def written(exporter: Exporter, **rest) -> Export:
    case = sample_case(charts=BLOBS, **rest)
    return exporter.export(case.compile(), ExportOptions(locale=case.incident.locale))


@cache
def usual(exporter: Exporter) -> Export:
    """The established incident, written once for the tests that only read it."""
    return written(exporter)


def readable(export: Export) -> str:
    """All texts of an export, white space squeezed out, since a page wraps where it likes."""
    texts = []
    for name, content in export.files.items():
        if name.endswith(".pdf"):
            texts += [page.extract_text() for page in PdfReader(io.BytesIO(content)).pages]
        else:
            texts.append(content.decode())
    return re.sub(r"\s", "", "".join(texts))


def test_there_are_the_four_formats_of_the_contract():
    assert set(exporters()) >= {"md", "html", "pdf", "json"}
    assert len({item.suffix for item in KNOWN.values()}) == len(KNOWN)
    assert exporter_for("MD") is exporter_for("markdown")


def test_unknown_format_is_a_clear_answer():
    with pytest.raises(CommandError, match=r"no report format docx; there are: .*md"):
        exporter_for("docx")


@every
def test_twice_the_same_bytes(exporter):
    assert written(exporter) == usual(exporter)


@every
def test_no_secret_leaves(exporter):
    said = readable(usual(exporter))
    for secret in SECRETS:
        assert secret not in said
    assert "[masked-" in said.replace("\\", "")


@every
def test_withheld_text_is_in_no_file(exporter):
    assert re.sub(r"\s", "", WITHHELD_TEXT) not in readable(usual(exporter))


@every
def test_files_stay_in_their_folder(exporter):
    export = usual(exporter)
    assert export.main in export.files
    for name in export.files:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?", name)
    assert export.main.endswith(f".{exporter.suffix}")


@every
def test_no_message_is_lost(exporter):
    said = readable(usual(exporter)).replace("\\", "").replace("&#39;", "'")
    for word in (
        "onerror=alert(2)",
        "|tail",
        "calc'!A0",
        "trailing",
        "unclosed",
        "carriage",
        "KVcache",
    ):
        assert word in said, word
    assert len(HOSTILE) > 10


@every
def test_unfounded_incident_is_a_report_too(exporter):
    for locale in Locale:
        assert written(exporter, locale=locale, is_established=False).content


@every
def test_redacted_report_is_written_as_it_is(exporter):
    report = sample_case(charts=BLOBS).compile()
    options = ExportOptions(locale=Locale.EN)
    assert exporter.export(redact(report), options) == usual(exporter)


async def test_worker_writes_the_same_files():
    report = sample_case(charts=BLOBS).compile()
    options = ExportOptions(locale=Locale.ZH_CN)
    try:
        there = await render_in_worker(report, ["md", "html", "json"], options)
    finally:
        report_worker().close()
    assert there == render_report(report, ["md", "html", "json"], options)
