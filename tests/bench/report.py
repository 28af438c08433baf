"""A long incident as a report: 10,000 entries, 60 charts, 200 files; time and memory of each format, and of compiling."""

import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import psutil

from bot.domain.postmortem import Postmortem
from bot.domain.projection import project
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.exporter import ExportOptions
from bot.exporters import render_report
from bot.report.charts import draw
from bot.report.redact import redact
from tests.report.sample import DIRECTORY, Case, sample_case
from tests.report.sample_chart import chart_spec
from tests.report.sample_script import Script

ENTRIES, CHARTS, FILES = 10_000, 60, 200
SAID = (
    "p95 of gpu-{node} is {n} ms now | the queue keeps growing, nobody knows why",
    "看过 gpu-{node} 的日志了：没有错误，批次大小 {n}，显存还剩 12 GiB",
    "restarted replica {node}; `kubectl -n inference get pods` shows {n} restarts since noon",
)


def long_case(entries: int = ENTRIES, charts: int = CHARTS, files: int = FILES) -> Case:
    """The sample incident, talked about for a long time."""
    script = Script()
    script.entries = list(sample_case().entries)
    blobs: dict[str, bytes] = {}
    drawn = [draw(chart_spec(f"c{n}", panels=1 + n % 3), Locale.EN) for n in range(min(charts, 3))]
    for n in range(charts):
        chart = drawn[n % 3]
        blobs |= {f"c{n}.svg": chart.svg, f"c{n}.csv": chart.csv, f"c{n}.png": chart.png}
        title = Localized(f"Chart {n}", f"图表 {n}")
        script.add(
            1000 + n,
            EntryKind.CHART,
            title,
            chart=f"c{n}",
            title=title.to_json(),
            alt=title.to_json(),
            png=f"c{n}.png",
            svg=f"c{n}.svg",
        )
    for n in range(entries - len(script.entries)):
        held = {"name": f"trace-{n}.json", "size": 20_000 + n, "mimetype": "application/json"}
        script.say(
            1100 + n * 3,
            ("U0LIN", "U0SAM", "U0PRIYA")[n % 3],
            SAID[n % 3].format(node=n % 8, n=n),
            permalink=f"https://example.slack.com/archives/C0/p{n}",
            files=[held] if n < files else [],
        )
    found = tuple(script.entries)
    return Case(entries=found, incident=project("INC-7", found), directory=DIRECTORY, charts=blobs)


def _peak(pid: int, stop: threading.Event, into: list[int]) -> None:
    """Resident bytes of a process with its children, at the worst moment."""
    root = psutil.Process(pid)
    while not stop.wait(0.05):
        total = 0
        for process in (root, *root.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        into[0] = max(into[0], total)


def _cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime


def _write(report: Postmortem, formats: tuple[str, ...]) -> tuple[float, float, int]:
    """Wall seconds, processor seconds of all processes, bytes of the files."""
    began, cpu = time.perf_counter(), _cpu_seconds()
    written = render_report(report, formats, ExportOptions(locale=Locale.ZH_CN))
    size = sum(len(content) for item in written.values() for content in item.files.values())
    return time.perf_counter() - began, _cpu_seconds() - cpu, size


def _measured() -> Iterator[str]:
    stop, peak = threading.Event(), [0]
    watch = threading.Thread(target=_peak, args=(os.getpid(), stop, peak), daemon=True)
    watch.start()
    took = {}
    for entries in (ENTRIES // 4, ENTRIES // 2, ENTRIES):
        case = long_case(entries)
        best = min(_compile_seconds(case) for _ in range(3))
        took[entries] = best
    per_entry = {entries: seconds / entries * 1e6 for entries, seconds in took.items()}
    yield "compile: " + ", ".join(
        f"{entries} entries {seconds:.2f} s ({per_entry[entries]:.0f} µs each)"
        for entries, seconds in took.items()
    )
    yield f"compile: cost of an entry at {ENTRIES} over that at {ENTRIES // 4}: " + (
        f"{per_entry[ENTRIES] / per_entry[ENTRIES // 4]:.2f} (1 is linear)"
    )
    case = long_case()
    began, cpu_began = time.perf_counter(), _cpu_seconds()
    report = redact(case.compile())
    compiled, compile_cpu = time.perf_counter() - began, _cpu_seconds() - cpu_began
    seconds, cpu, size = _write(report, ("md", "html", "json"))
    yield (
        f"compile + redact + Markdown + HTML + JSON: {compiled + seconds:.1f} s wall (goal 5), "
        f"{compile_cpu:.1f} + {cpu:.1f} s of processor, {size >> 20} MiB of files"
    )
    seconds, cpu, size = _write(report, ("pdf",))
    yield (
        f"PDF: {seconds:.1f} s wall (goal 30), {cpu:.1f} s of processor in two processes, {size >> 20} MiB; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    stop.set()
    watch.join()
    yield f"memory of all processes together at the worst moment: {peak[0] >> 20} MiB (goal 1024)"


def _compile_seconds(case: Case) -> float:
    began = time.perf_counter()
    case.compile()
    return time.perf_counter() - began


def _lines() -> list[str]:
    return list(_measured())


async def run() -> list[str]:
    """In a process of its own, so that the memory is the report's alone."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_lines).result()
