"""What a changed line is able to do, in several languages and formats; each beside a twin that does nothing of it."""

from __future__ import annotations

import pytest

from bot.diagnosis.changes.diff import read_diff
from bot.diagnosis.changes.effects import effects_of
from bot.diagnosis.changes.trouble import Trouble


def able(diff: str, file: str = "app/main") -> frozenset[Trouble]:
    return frozenset(
        trouble for effect in effects_of(read_diff(diff), (file,)) for trouble in effect.troubles
    )


@pytest.mark.parametrize(
    ("diff", "trouble"),
    [
        ("-@lru_cache(maxsize=512)\n-def rates(day):\n+def rates(day):", Trouble.LOAD),
        ("-    with self._lock:\n-        self.total += n\n+    self.total += n", Trouble.RESULT),
        ("-for row in rows: handle(row)\n+await asyncio.gather(*map(handle, rows))", Trouble.CAPACITY),
        ("-  minimum: old\n+  ssl_protocols TLSv1.3;", Trouble.ACCESS),
        ("-  policy: Default\n+  dnsPolicy: ClusterFirst", Trouble.NAMES),
        ("-USER root\n+USER nobody", Trouble.ACCESS),
        ("-FROM python:3.11-slim\n+FROM python:3.13-alpine", Trouble.START),
        ("+CREATE INDEX orders_by_day ON orders (day);", Trouble.CAPACITY),
        ("-  name TEXT,\n+  name TEXT NOT NULL,", Trouble.FORMAT),
        ("-SELECT id FROM jobs WHERE day = $1\n+SELECT id FROM jobs", Trouble.LOAD),
        ('-region = "a"\n+region = os.environ["REGION"]', Trouble.START),
        ("-ctx, stop := context.WithTimeout(ctx, limit)\n+_ = limit", Trouble.TIMEOUT),
        ("-          cpu: 2\n+          cpu: 250m", Trouble.LOAD),
        ("-        memory: 4Gi\n+        memory: 512Mi", Trouble.MEMORY),
        ("-rate_limit: 500\n+rate_limit: 50", Trouble.CAPACITY),
        ("-precision: high\n+precision: float16", Trouble.RESULT),
    ],
)  # fmt: skip
def test_a_change_is_able_to_do_what_its_lines_say(diff: str, trouble: Trouble) -> None:
    assert trouble in able(diff)


@pytest.mark.parametrize(
    "diff",
    [
        "-    with self._lock:\n+    with self._lock:\n+        pass_on()",
        "-  cpu: 500m\n+  cpu: 0.5",
        "-SELECT id FROM jobs WHERE a = 1\n+SELECT id FROM jobs WHERE a = 1 AND b = 2",
        "-title = 'Rates'\n+title = 'Rates today'",
    ],
)
def test_a_harmless_twin_is_able_to_do_none_of_it(diff: str) -> None:
    assert not able(diff) & {Trouble.LOAD, Trouble.RESULT, Trouble.TIMEOUT, Trouble.CAPACITY}


def test_a_test_or_a_page_does_nothing_whatever_it_says() -> None:
    assert not able("-@lru_cache\n+x = 1", "tests/test_rates.py")
    assert not able("-FROM a:1\n+FROM b:2", "docs/images.md")
