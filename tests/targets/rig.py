"""What the target tests deliver, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import httpx

from bot.domain.text import Locale
from bot.exporter import ExportOptions
from bot.settings import Settings, load_settings
from bot.target import Delivered, Means, Parcel
from bot.targets import packed, targets
from tests.report.sample import sample_case
from tests.targets.servers import TOKEN

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
KEY = "rca-inc-7-0123456789"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text x="1">node 10.20.30.40</text></svg>'
BLOBS = {
    "deciding.svg": SVG,
    "deciding.csv": b"time,node 10.20.30.40\n2026-11-30T08:15:00Z,1\n",
}


class Killed(BaseException):
    """The process died here."""


class Memory:
    """Progress in memory; `dies_at` counts down, and at nought the process dies, before or after it was written."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.dies_at = -1
        self.puts = 0

    async def get(self, name: str) -> str | None:
        return self.values.get(name)

    async def put(self, name: str, value: str) -> None:
        self.puts += 1
        if self.puts == self.dies_at:
            raise Killed
        self.values[name] = value


@cache
def parcel(
    target: str, *, locale: Locale = Locale.EN, hostile: tuple[str, ...] | None = None
) -> Parcel:
    case = sample_case(charts=BLOBS, locale=locale, **({"hostile": hostile} if hostile else {}))
    return packed(target, case.compile(), ExportOptions(locale=locale), KEY)


def settings_of(
    tmp_path: Path, table: str, lines: Mapping[str, str], **environment: str
) -> Settings:
    body = [f"[{table}]", *(f'{name} = "{value}"' for name, value in lines.items())]
    path = tmp_path / "rca.toml"
    path.write_text("\n".join(body))
    tokens = {f"RCA_{table.upper()}_TOKEN": TOKEN}
    return load_settings(
        {"RCA_CONFIG": str(path), "RCA_DATA_DIR": str(tmp_path / "data"), **tokens, **environment}
    )


async def deliver(settings: Settings, target: str, what: Parcel, progress: Memory) -> Delivered:
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        means = Means(settings=settings, http=http, progress=progress, clock=lambda: NOW)
        return await targets()[target].deliver(what, means)
