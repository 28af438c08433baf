"""Proposed files lie beside the report as files that can be used; a page holds the rule and not its test's series."""

from __future__ import annotations

from dataclasses import replace

from bot.checklist.diffs import diff_of
from bot.domain.postmortem import MonitoringChange, MonitoringKind
from bot.domain.text import Locale, Localized
from bot.exporter import ExportOptions
from bot.exporters.markdown import markdown
from bot.report.document import document
from tests.report.sample import sample_case

RULE = "groups:\n  - name: g\n"
TEST = "tests:\n  - interval: 15s\n"
DIFF = diff_of("monitoring/inc-7-x.rules.yml", "", RULE) + diff_of(
    "monitoring/inc-7-x.test.yml", "", TEST
)


def test_bundle_holds_the_proposed_files_and_the_page_the_rule_alone():
    proposed = MonitoringChange(n=9, kind=MonitoringKind.ALERT, diff=DIFF, reason="why")
    report = replace(sample_case().compile(), monitoring_changes=(proposed,))
    written = markdown.export(report, ExportOptions(locale=Locale.EN))
    assert written.files["INC-7/monitoring/inc-7-x.rules.yml"].decode() == RULE
    assert written.files["INC-7/monitoring/inc-7-x.test.yml"].decode() == TEST
    assert written.files["INC-7/checklist.patch"].startswith(b"---")
    page = written.content.decode()
    assert "+groups:" in page and "interval: 15s" not in page


def test_reason_is_in_the_language_of_the_report():
    proposed = MonitoringChange(n=9, kind=MonitoringKind.ALERT, diff=DIFF, reason="why so")
    reasons = {9: Localized("why so", "为何如此")}
    report = replace(
        sample_case().compile(), monitoring_changes=(proposed,), checklist_reasons=reasons
    )
    page = markdown.export(report, ExportOptions(locale=Locale.ZH_CN)).content.decode()
    assert "为何如此" in page and "why so" not in page
    shown = document(report, Locale.ZH_CN)["monitoring_changes"]
    assert [item["reason"] for item in shown] == ["为何如此"]


def test_diff_that_is_none_stays_what_it_is():
    broken = MonitoringChange(n=9, kind=MonitoringKind.LOG, diff="+++ b/../../etc/passwd\n")
    report = replace(sample_case().compile(), monitoring_changes=(broken,))
    files = markdown.export(report, ExportOptions(locale=Locale.ZH_CN)).files
    assert "INC-7/monitoring/1.patch" in files
    assert not [name for name in files if ".." in name]
