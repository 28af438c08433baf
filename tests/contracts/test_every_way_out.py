"""What every way out of the bot keeps to, each format and each target: every entry once and in order, no secret, no act.

A new exporter or target is found by itself; `seen_in` has to know how its file is read.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

import bot.exporters
import bot.targets
from bot.domain.action_item import ActionItem
from bot.domain.postmortem import Postmortem
from bot.domain.projection import project
from bot.domain.text import Locale, Localized
from bot.exporter import Export, Exporter, ExportOptions
from bot.registry import collect
from bot.target import Target
from bot.targets import packed
from tests.report.sample import HOSTILE, SECRET_TEXT, SECRETS, Case, sample_case
from tests.report.sample_script import Script

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 40"><text x="9" y="30" font-size="12">node %s</text></svg>'
BLOBS = {
    "deciding.svg": (SVG % SECRETS[4]).encode(),
    "deciding.en.svg": (SVG % SECRETS[5]).encode(),
    "deciding.zh-CN.svg": (SVG % SECRETS[0]).encode(),
    "deciding.csv": f"time,node {SECRETS[4]}\n2026-11-30T08:15:00Z,1\n".encode(),
}
WAYS: dict[str, Callable[[Postmortem, ExportOptions], Export]] = {
    **{name: item.export for name, item in collect(bot.exporters, Exporter).items()},
    **{
        name: lambda report, options, name=name: packed(name, report, options, "key").export
        for name, item in collect(bot.targets, Target).items()
        if item.write is not None
    },
}
every = pytest.mark.parametrize("way", WAYS)


def spoken(count: int) -> tuple[Case, list[str]]:
    """An incident with so many messages, each with a word of its own, and these words by the time of their messages."""
    script = Script()
    script.entries = list(sample_case(charts=BLOBS).entries)
    told = []
    for n in range(count):
        seconds = 800 + (n * 7) % count * 2.5
        # The order of arrival is not the order of the clock, as when an old message is brought in late.
        script.say(seconds, "U0SAM", f"Zq{n}x {HOSTILE[n % len(HOSTILE)]}")
        told.append((seconds, f"Zq{n}x"))
    entries = tuple(script.entries)
    case = replace(
        sample_case(charts=BLOBS), entries=entries, incident=project("INC-7", entries), charts=BLOBS
    )
    return case, [word for _, word in sorted(told)]


@cache
def written(way: str, locale: Locale) -> Export:
    case, _ = spoken(40)
    return WAYS[way](case.compile(), ExportOptions(locale=locale))


class _Shown(HTMLParser):
    """What a browser shows, and what it would act on."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.acts: list[str] = []
        self._is_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_style = tag == "style"
        if tag in {"script", "iframe", "object", "embed", "form", "base", "link"}:
            self.acts.append(tag)
        for name, value in attrs:
            link = (value or "").strip().lower()
            if name.startswith("on") or link.startswith(("javascript:", "vbscript:", "file:")):
                self.acts.append(f"{tag} {name}={value}")
            if name == "src" and not link.startswith("data:image/"):
                self.acts.append(f"{tag} loads {value}")

    def handle_endtag(self, tag: str) -> None:
        self._is_style = False

    def handle_data(self, data: str) -> None:
        if not self._is_style:
            self.text.append(data)


def seen_in(name: str, content: bytes) -> tuple[str, list[str]]:
    """The text that a reader of this file sees, and whatever in it would act."""
    if name.endswith(".pdf"):
        shown = subprocess.run(
            ["pdftotext", "-raw", "-", "-"], input=content, capture_output=True, check=True
        )
        acts = re.findall(
            rb"/(?:JavaScript|JS|Launch|OpenAction|EmbeddedFile|SubmitForm)\b", content
        )
        return shown.stdout.decode(), [act.decode() for act in acts]
    text = content.decode()
    if name.endswith(".storage.xml"):
        root = ElementTree.fromstring(f'<page xmlns:ac="urn:ac" xmlns:ri="urn:ri">{text}</page>')
        text = re.sub(r"<!\[CDATA\[.*?\]\]>", "", text, flags=re.DOTALL)
        return "".join(root.itertext()), _shown(text).acts
    if name.endswith(".md"):
        page = _shown(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
        # The pictures of the bundle lie beside it; a reader loads these and nothing else.
        own = re.compile(r"img loads INC-7/[\w.-]+\.(svg|png)")
        return "".join(page.text), [act for act in page.acts if not own.fullmatch(act)]
    if name.endswith((".html", ".svg")):
        page = _shown(text)
        return "".join(page.text), page.acts
    assert name.endswith((".json", ".csv", ".patch", ".yaml", ".yml")), f"how is {name} read?"
    return text, []


def _shown(html: str) -> _Shown:
    page = _Shown()
    page.feed(html)
    page.close()
    return page


@every
def test_every_entry_is_there_once_and_in_the_order_of_the_clock(way):
    _, words = spoken(40)
    export = written(way, Locale.EN)
    text, _ = seen_in(export.main, export.content)
    assert re.findall(r"Zq\d+x", text) == words


@every
@pytest.mark.parametrize("locale", list(Locale))
def test_no_file_acts_and_no_secret_is_in_any(way, locale):
    for name, content in written(way, locale).files.items():
        text, acts = seen_in(name, content)
        assert acts == [], name
        # A page wraps where it likes, and Markdown puts backslashes before its own signs.
        squeezed = re.sub(r"[\s\\]", "", text + name)
        assert not [secret for secret in SECRETS if secret in squeezed], name


@pytest.mark.parametrize("name", collect(bot.targets, Target))
def test_action_items_leave_without_secrets(name):
    case = sample_case()
    item = ActionItem(n=1, text=Localized.verbatim(f"renew: {SECRET_TEXT}"), owner="U0LIN")
    incident = replace(case.incident, action_items=(item,), title=f"disk of {SECRETS[4]}")
    report = replace(case, incident=incident).compile()
    parcel = packed(name, report, ExportOptions(locale=Locale.EN), "key")
    said = f"{parcel.title} {parcel.action_items}"
    assert "[masked-" in parcel.title
    assert "renew" in said
    assert not [secret for secret in SECRETS if secret in said]
