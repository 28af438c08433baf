"""The report of one recorded incident in both languages, as files for review: `make golden` plays it again.

`make golden OUT=FOLDER` writes every format into a folder, to look at, and leaves the files alone.

The incident is `tests/diagnosis/cases/INC-3.case`: metrics, logs, traces, changes and probes as they were collected. Five
people work on it in the local workspace, from the alert to the final report; the engine judges what was recorded. Only
run it after looking at what changed; the test beside it compares.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from bot.domain.postmortem import JudgementTopic, Postmortem
from bot.domain.text import Locale
from bot.exporter import Export, ExportOptions
from bot.exporters import render_report
from bot.jobs.reporting import compile_report
from bot.learning.case_folder import read_case
from bot.learning.cases import Case
from bot.report.rewrite import rewrite
from tests.conftest import redis_server
from tests.report.replayed import INCIDENT, Play, firing, played

FOLDER = Path(__file__).resolve().parent / "golden"
CASE = FOLDER.parent.parent / "diagnosis" / "cases" / "INC-3.case"
FORMATS = ("md", "json")
SLACK = "https://local.slack.example"
RECOVERS = timedelta(minutes=14)
"""After the alert: when the recording's calm minutes before the onset begin to play."""

LEAD, SRE, DEV, REVIEWER = "U0LEAD", "U0SRE", "U0DEV", "U0REVIEW"
SECRET = "xoxb-2233445566-pelicanReader"

WRITTEN = {
    JudgementTopic.IMPACT: (
        "pelican-qa answered a fifth fewer requests for 42 minutes and first tokens took three times as long; "
        "no request failed. 问答首字延迟约为平时的三倍，无请求失败。"
    ),
    JudgementTopic.WENT_WELL: "The disk probe named the file that was written, within the first minute.",
    JudgementTopic.WENT_BADLY: "GPU utilisation fell with the load and was read as a GPU problem at first.",
    JudgementTopic.PREVENTION: "Request payloads are logged only with sampling, and the log has its own volume.",
    JudgementTopic.LESSONS: "日志级别变更与代码发布同等对待：先灰度一台，再看磁盘写入量。",
}


async def compiled(redis_url: str, folder: Path) -> Postmortem:
    """The report of the recorded incident, worked on to its end."""
    case = await asyncio.to_thread(read_case, CASE)
    async with played(redis_url, folder, case, recovers_after=RECOVERS) as play:
        await _understand(play, case)
        await _test_and_mitigate(play)
        await _fix_and_close(play, case)
        await _write_up(play)
        report = await compile_report(play.services, INCIDENT)
        # All that differs from play to play: where the local workspace listens, and the ids of tests.
        named = {item.id: f"X-{n:06d}" for n, item in enumerate(report.experiments, 1)}
        report = rewrite(report, lambda text: named.get(text, text))
        return rewrite(report, lambda text: text.replace(play.slack_url, SLACK))


async def _understand(play: Play, case: Case) -> None:
    await play.webhook("alertmanager", firing(case.alert))
    await play.until(0.7)
    await play.say(LEAD, f"@rca role lead <@{LEAD}>")
    await play.press(LEAD, "rca.scope.confirm")
    await play.until(1.5)
    await play.say(
        SRE,
        "@rca symptom first token of pelican-qa takes 620 ms instead of 200 ms on gpu-b11 "
        "scope=pelican-qa since=2026-10-30T12:06:00Z",
    )
    await play.say(LEAD, "@rca step next")
    await play.until(2.2)
    seen = await play.say(DEV, "gpu-b11 的 GPU 利用率掉到 29 %，是不是 GPU 出问题了？")
    await play.until(2.6)
    edited = await play.say(SRE, "GPU clocks are fine, the GPU waits for input")
    await play.person(SRE).edit(
        "C0INCIDENTS",
        edited,
        "GPU clocks and temperatures are fine on both nodes: the GPU waits for input",
    )
    await play.person(LEAD).react("C0INCIDENTS", seen, "pushpin")
    await play.calm()


async def _test_and_mitigate(play: Play) -> None:
    await play.say(LEAD, "@rca step next")
    await play.until(4)
    await play.press(SRE, "rca.probe.run", lambda m: "log_health" in m.all_text)
    await play.until(5)
    await play.say(
        SRE,
        f"pulled the shipper's lag: curl -H 'Authorization: Bearer {SECRET}' http://10.12.0.31:3100/metrics "
        "| grep lag; it reads 400 MiB behind",
    )
    await play.until(6.5)
    await play.say(LEAD, "@rca mitigate half of the traffic of gpu-b11 goes to gpu-a01")
    await play.until(8)
    await play.say(
        LEAD,
        "@rca hypothesis reject concurrency_control_defect threads wait for the disk, not for a lock",
    )
    await play.until(9)
    await play.say(LEAD, "@rca hypothesis confirm log_write_surge")
    await play.until(11)


async def _fix_and_close(play: Play, case: Case) -> None:
    done = await play.say(
        DEV,
        "request logging of pelican-qa is back at INFO on gpu-b11, the old log file is truncated",
    )
    await play.until(11.5)
    await play.person(DEV).react("C0INCIDENTS", done, "hammer_and_wrench")
    await play.until(26)
    over = case.collected.request.at + timedelta(minutes=16)
    await play.webhook("alertmanager", firing(case.alert, over))
    await play.until(28)
    await play.press(LEAD, "rca.verify")
    await play.until(30)
    await play.say(LEAD, "@rca checklist show")
    await play.until(31)
    await play.say(LEAD, "@rca checklist accept 1")
    await play.until(33)
    todo = await play.say(LEAD, "日志目录独立分卷，payload 日志改为采样")
    await play.person(LEAD).react("C0INCIDENTS", todo, "ballot_box_with_check")
    await play.until(34)
    await play.say(
        LEAD, "@rca resolve logging is back at INFO, the symptom is gone since 20 minutes"
    )
    await play.until(36)


async def _write_up(play: Play) -> None:
    await play.say(LEAD, "@rca export md json")
    await play.until(40)
    await play.press(SRE, "rca.report.edit")
    await play.submit(SRE, {topic.value: text for topic, text in WRITTEN.items()})
    await play.until(45)
    await play.press(LEAD, "rca.action_item")
    due = {"text": "alert on bytes written per container", "owner": DEV, "due": "2026-11-06"}
    await play.submit(LEAD, due)
    await play.until(50)
    await play.press(REVIEWER, "rca.report.review")
    await play.until(55)
    await play.press(REVIEWER, "rca.report.final")
    await play.until(56)


def written(report: Postmortem) -> dict[str, bytes]:
    """File name to content, in both languages."""
    made = {}
    for locale in Locale:
        for suffix, export in exported(report, locale, FORMATS).items():
            made[f"{INCIDENT}.{locale.value}.{suffix}"] = export.content
    return made


def exported(report: Postmortem, locale: Locale, formats: tuple[str, ...]) -> dict[str, Export]:
    """The report in one language."""
    return render_report(report, formats, ExportOptions(locale=locale))


def _played_alone() -> Postmortem:
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as url:
        return asyncio.run(compiled(f"{url}/0", Path(folder)))


def main(out: Path) -> None:
    """Writes the golden files; with a folder named, every format of the report into it instead."""
    report = _played_alone()
    if out == FOLDER:
        for name, content in written(report).items():
            (out / name).write_bytes(content)
        return
    for locale in Locale:
        for export in exported(report, locale, ("md", "html", "json", "pdf")).values():
            for name, content in export.files.items():
                path = out / locale.value / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
