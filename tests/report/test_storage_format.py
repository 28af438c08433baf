"""Whatever a text holds, the page stays well-formed, its elements are ours, and the words are all there."""

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.report.blocks import (
    Card,
    Cards,
    Details,
    Diff,
    Facts,
    Figure,
    Items,
    Page,
    Paragraph,
    Row,
    Section,
    Span,
    Subhead,
    Table,
    Tone,
)
from bot.report.plain import visible
from bot.report.storage_format import write_storage
from tests.conftest import examples

TEXT = st.text(max_size=60) | st.sampled_from(
    [
        "]]>",
        "<ac:link>",
        "&nbsp;",
        "{html}",
        "\x00\ufffe\ud800",
        '" onclick="x',
        "<!--",
        "a\r\nb",
        "]]" * 5,
    ]
)
OURS = {
    *("page", "p", "h2", "h3", "table", "tbody", "tr", "th", "td", "ul", "li", "hr", "br", "em"),
    *("strong", "code", "span", "a"),
    *(f"{{urn:ac}}{name}" for name in ("structured-macro", "parameter", "rich-text-body")),
    *(f"{{urn:ac}}{name}" for name in ("plain-text-body", "link", "plain-text-link-body", "image")),
    "{urn:ri}attachment",
}


def page_of(text: str, tone: Tone, href: str | None) -> Page:
    spans = (Span(text, tone, href), Span("\n"), Span(text))
    blocks = (
        Paragraph(spans=spans, tone=tone),
        Subhead(text=text, anchor="here"),
        Facts(rows=((text, spans), (text, ()))),
        Cards(cards=(Card(title=text, body=spans),)),
        Table(caption=text, columns=(text,), rows=(Row(cells=(spans,), anchor="there"),)),
        Items(items=(spans,)),
        Figure(name="chart", caption=text, alt=text, svg=b"<svg/>", csv=b"a"),
        Diff(text=text),
        Details(summary=text, text=text),
    )
    section = Section(id="here", title=text, blocks=blocks)
    badges = (Span(text, tone),)
    return Page(
        id="INC-1",
        title=text,
        subtitle=text,
        badges=badges,
        lang="en",
        zone="UTC",
        footer=text,
        sections=(section,),
    )


@settings(max_examples=examples(100), deadline=None)
@given(
    text=TEXT,
    tone=st.sampled_from(list(Tone)),
    href=st.sampled_from(
        [None, "#there", "https://x.example/?a=1&b=2", "javascript:alert(1)", '#"><x']
    )
    | st.text(max_size=20),
)
def test_any_text_is_inert_and_all_there(text, tone, href):
    body, files = write_storage(page_of(text, tone, href))
    page = ElementTree.fromstring(f'<page xmlns:ac="urn:ac" xmlns:ri="urn:ri">{body}</page>')
    assert {element.tag for element in page.iter()} <= OURS
    for link in page.iter("a"):
        assert link.get("href", "").startswith(("http://", "https://"))
    # XML folds line ends, and a link shows its words on one line.
    said = " ".join("".join(page.itertext()).split())
    for line in visible(text).split("\n"):
        assert " ".join(line.split()) in said
    assert set(files) == {"chart.svg", "chart.csv"}
