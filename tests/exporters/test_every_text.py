"""Whatever people, alerts, logs, names and files hold: it is in every format once, it does nothing, no secret is in it."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from pypdf import PdfReader

from bot.domain.alert import Alert, AlertStatus
from bot.domain.instant import to_rfc3339
from bot.domain.postmortem import JudgementTopic
from bot.domain.projection import project
from bot.domain.text import Locale
from bot.domain.timeline import EntryKind
from bot.exporter import Export, ExportOptions
from bot.exporters import render_report
from bot.locales import templates_root
from bot.report.document import schema_text
from bot.report.html import write_html
from bot.report.outline import outline
from bot.report.pdf import write_pdf
from bot.report.redact import redact
from tests.conftest import examples
from tests.report.sample import HOSTILE, SECRETS, Case
from tests.report.sample_facts import BEGAN, SERVICE
from tests.report.sample_script import Script

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
VALIDATOR = Draft202012Validator(json.loads(schema_text()))
ACTIVE = {"script", "iframe", "object", "embed", "link", "base", "form", "img", "audio", "video"}
MARK = "Zq7"
"""In no text of ours, so that each entry can be counted by it."""

hostile = st.sampled_from(
    [
        *HOSTILE,
        "</p></td></tr></table><script src=//x.example></script>",
        "&lt;script&gt; {{ x }} ${y} <%= z %>",
        "![](https://t.example/a.png) <https://a.example> https://b.example/?a=b&c=d",
        "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u202b(rtl)\u202c",
        "👩‍👩‍👧‍👦 🇨🇳 ✊🏿 e\u0301 \u200b",
        "]]> <!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>",
        "' onmouseover='alert(1) \" autofocus onfocus=\"alert(2)",
        "| --- | :-: |\n|a|b|",
        "    indented code\n\tand a tab",
        "*" * 300,
        "字" * 3000,
        "a" * 5000,
    ]
)
texts = st.one_of(hostile, st.text(max_size=60))


class Seen(HTMLParser):
    """What a browser would act on, and what it would show."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.acts: list[str] = []
        self.text: list[str] = []
        self._quiet = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._quiet = tag == "style"
        for name, value in attrs:
            link = (value or "").strip().lower()
            if name.startswith("on") or link.startswith(("javascript:", "vbscript:", "file:")):
                self.acts.append(f"{name}={value}")

    def handle_endtag(self, tag: str) -> None:
        self._quiet = False

    def handle_data(self, data: str) -> None:
        if not self._quiet:
            self.text.append(data)


def case_of(said: list[str], name: str, title: str) -> Case:
    """An incident in which every place that a stranger can write to holds a strange text."""
    script = Script()
    alert = Alert(
        fingerprint="f1",
        status=AlertStatus.FIRING,
        labels={"alertname": title or "A", "service": SERVICE},
        annotations={"summary": title, "description": name},
        starts_at=BEGAN,
    )
    script.add(
        0, EntryKind.SYSTEM, f"{MARK}1;", op="opened", title=title, severity="sev2",
        services=[name or SERVICE], nodes=[], channel="C0ALERTS", locale="en", labels={},
    )  # fmt: skip
    script.add(
        1, EntryKind.ALERT, f"{MARK}2;", source="alertmanager", op="firing", alert=alert.to_json()
    )
    for number, text in enumerate(said, 3):
        script.say(
            number * 0.5, "U0ODD", f"{MARK}{number};{text}", permalink=name,
            files=[{"name": name, "size": 7, "mimetype": "text/plain"}],
        )  # fmt: skip
    n = len(script.entries)
    script.add(
        90, EntryKind.SYMPTOM, f"{MARK}{n + 1};", author="U0ODD", source="slack",
        id="S-1", metric=name, scope=title, since=to_rfc3339(BEGAN),
    )  # fmt: skip
    script.add(
        91, EntryKind.REPORT, title or "x", author="U0ODD", source="slack",
        op="edited", topic=JudgementTopic.IMPACT.value, state="draft",
    )  # fmt: skip
    entries = tuple(script.entries)
    return Case(entries=entries, incident=project("INC-9", entries), directory={"U0ODD": name})


def written(case: Case, *formats: str) -> dict[str, Export]:
    return render_report(case.compile(), formats, ExportOptions(locale=Locale.EN))


def seen_in(html: str) -> Seen:
    seen = Seen()
    seen.feed(html)
    seen.close()
    return seen


@settings(
    max_examples=examples(25, 500), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(st.lists(texts, min_size=1, max_size=4), texts, texts)
@example([*HOSTILE], "a/../../b|`c`.png", "<b>t</b> | x")
def test_every_entry_is_there_once_and_does_nothing(said: list[str], name: str, title: str) -> None:
    case = case_of(said, name, title)
    marks = [f"{MARK}{n};" for n in range(1, len(said) + 4)]
    made = written(case, "md", "html", "json")
    rendered = PARSER.render(made["md"].content.decode())
    section = rendered.partition('id="timeline"')[2].partition("<h2>")[2].partition("<h2>")[0]
    page = made["html"].content.decode()
    table = page.partition('<section id="timeline"')[2].partition("</section>")[0]
    timeline = json.loads(made["json"].content)["timeline"]
    for mark in marks:
        assert seen_in(section).text and "".join(seen_in(section).text).count(mark) == 1, mark
        assert "".join(seen_in(table).text).count(mark) == 1, mark
        assert sum((line["text"] or "").startswith(mark) for line in timeline) == 1, mark
    for html in (rendered, page):
        seen = seen_in(html)
        assert seen.acts == []
        assert not ACTIVE & seen.tags
    VALIDATOR.validate(json.loads(made["json"].content))
    for files in made.values():
        for path in files.files:
            assert re.fullmatch(r"INC-9(\.\w+|/[\w.-]+)", path), path


def test_twice_the_same_bytes_and_no_difference_by_the_order_of_reading() -> None:
    case = case_of(list(HOSTILE), "n|n", "t<t>")
    turned = Case(
        entries=tuple(reversed(case.entries)), incident=case.incident, directory=case.directory
    )
    assert written(case, "md", "html", "json") == written(turned, "md", "html", "json")


PLACES = (
    "token=%s", "%s", "see https://u:%s@h.example/x", "Authorization: Bearer %s", "`%s`", "密码：%s",
)  # fmt: skip


def test_masked_secret_is_in_no_export_of_any_format() -> None:
    said = [place % secret for place in PLACES[:2] for secret in SECRETS]
    case = case_of(said, f"log-{SECRETS[0]}.txt", f"disk of {SECRETS[4]}, ask {SECRETS[3]}")
    # The last of them is a word of its own only in one place; learned there, it is masked everywhere.
    made = written(case, "md", "html", "json", "pdf")
    for suffix, export in made.items():
        for path, content in export.files.items():
            assert not any(secret in path for secret in SECRETS), path
            text = (
                "".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)
                if suffix == "pdf"
                else content.decode()
            )
            squeezed = re.sub(r"\s", "", text).replace("\\", "")
            for secret in SECRETS:
                assert secret not in squeezed, (suffix, path, secret)


def test_pdf_of_strange_scripts_and_endless_words_is_written_and_does_nothing() -> None:
    said = [
        *HOSTILE,
        "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 नमस्ते สวัสดี 𠜎 👩‍👩‍👧",
        "x" * 20_000,
        "\n".join("line" for _ in range(400)),
        "| a | b |\n" * 50,
    ]
    report = redact(case_of(said, "n", "t").compile())
    content = write_pdf(report, Locale.EN)
    assert content.startswith(b"%PDF-")
    reader = PdfReader(io.BytesIO(content))
    pages = reader.pages
    assert not {"/OpenAction", "/AA", "/AcroForm"} & set(reader.trailer["/Root"])
    assert not {"/JavaScript", "/EmbeddedFiles"} & set(reader.trailer["/Root"].get("/Names", {}))
    for page in pages:
        for link in page.get("/Annots", ()):
            action = link.get_object().get("/A", {"/S": "/URI", "/URI": "https://"})
            assert action["/S"] == "/URI"
            assert str(action["/URI"]).startswith(("https://", "http://"))
    said_of = "\n".join(page.extract_text() for page in pages)
    assert 60 < said_of.count("x" * 40) < 200
    assert re.search(r"shortened on paper:\s+120\d\d\s+more", said_of)


def test_paper_loads_nothing_but_what_it_holds() -> None:
    page = write_html(
        outline(redact(case_of(list(HOSTILE), "n", "t").compile()), Locale.EN), is_paged=True
    )
    sources = re.findall(r'\ssrc="([^"]{0,30})', page)
    assert all(source.startswith("data:image/") for source in sources)
    assert "<script" not in page
    assert templates_root().is_dir()
