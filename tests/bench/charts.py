"""A chart of six series of 720 points against pygal drawn by resvg, and how long the event loop is held up meanwhile.

Both are one thread that computes, so processor time is compared: it holds on a machine that does other things as well.

The peer is installed into a throw-away environment, so that nothing of it stays.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path

from bot.domain.text import Locale
from bot.report.charts import chart_worker, draw_in_worker
from tests.bench.charts_spec import POINTS, SERIES, STEP, spec

GOAL = 1.8
ROUNDS = 3
PEER = f"""
import json, math, random, statistics, time
import pygal, resvg_py
random.seed(1)
data = [("gpu%d" % s, [(1_760_000_000 + {STEP} * i, 60 + 10 * s + 8 * math.sin(i / 40 + s) + 3 * random.random())
        for i in range({POINTS})]) for s in range({SERIES})]
def draw():
    chart = pygal.XY(show_dots=False, width=1000, height=500, title="GPU temperature", js=[],
                     x_value_formatter=lambda x: time.strftime("%H:%M", time.gmtime(x)))
    for name, values in data:
        chart.add(name, values)
    return resvg_py.svg_to_bytes(svg_string=chart.render().decode())
draw()
taken = []
for _ in range(12):
    began = time.process_time(); draw(); taken.append((time.process_time() - began) * 1e3)
print(json.dumps([statistics.median(taken)]))
"""
OURS = """
import json, statistics, time
from zoneinfo import ZoneInfo
from bot.domain.text import Locale
from bot.report.charts.painter import shared_painter
from tests.bench.charts_spec import spec
painter, chart = shared_painter(), spec()
def middle(work):
    work(chart, Locale.EN, ZoneInfo("UTC"))
    taken = []
    for _ in range(12):
        began = time.process_time(); work(chart, Locale.EN, ZoneInfo("UTC")); taken.append((time.process_time() - began) * 1e3)
    return statistics.median(taken)
print(json.dumps([middle(painter.paint_png), middle(painter.paint)]))
"""


async def run() -> list[str]:
    with tempfile.TemporaryDirectory() as home:
        peer = await _environment(Path(home))
        if peer is None:
            return ["pygal and resvg-py could not be installed; no comparison"]
        pairs = [
            (await _medians([sys.executable, "-c", OURS]), await _medians([str(peer), "-c", PEER]))
            for _ in range(ROUNDS)
        ]
    ours, with_svg = (min(pair[0][at] for pair in pairs) for at in (0, 1))
    theirs = min(pair[1][0] for pair in pairs)
    ratio = statistics.median(their[0] / our[0] for our, their in pairs)
    verdict = "met" if ratio >= GOAL else "MISSED"
    held = await _held_up()
    return [
        f"{SERIES} series x {POINTS} points, PNG: {ours:.0f} ms of processor time ({with_svg:.0f} ms with the report's "
        f"SVG); pygal to resvg, PNG: {theirs:.0f} ms; "
        f"{ratio:.2f} x as fast (goal {GOAL}: {verdict}; best of {ROUNDS} medians of 12, ratio in the same run)",
        f"event loop held up while a chart is drawn in the worker: {held:.1f} ms at most",
    ]


async def _environment(home: Path) -> Path | None:
    await asyncio.to_thread(venv.create, home / "venv", with_pip=True)
    python = home / "venv/bin/python"
    install = await asyncio.create_subprocess_exec(
        str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "pygal", "resvg-py",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return python if await install.wait() == 0 else None


async def _medians(command: Sequence[str]) -> list[float]:
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    return [float(value) for value in json.loads(out)]


async def _held_up() -> float:
    """Longest pause of a task that wakes every 2 ms, in milliseconds, while charts are drawn."""
    chart, longest, done = spec(), 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not done.is_set():
            await asyncio.sleep(0.002)
            now = time.perf_counter()
            longest, last = max(longest, now - last - 0.002), now

    await draw_in_worker(chart, Locale.EN)
    watching = asyncio.create_task(watch())
    for _ in range(5):
        await draw_in_worker(chart, Locale.EN)
    done.set()
    await watching
    chart_worker().close()
    return longest * 1000
