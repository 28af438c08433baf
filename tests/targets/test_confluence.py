"""One page an incident, whatever goes wrong on the way; nobody else's page is ever touched."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from xml.etree import ElementTree

import httpx
import pytest

from bot.domain.text import Locale
from bot.errors import DeliveryError, Reason
from bot.exporter import Export
from bot.report.blocks import Details, Page, Row, Section, Span, Table
from bot.report.storage_format import write_storage
from bot.targets import targets
from bot.targets._fitting import RAW_CHARACTERS, ROWS, fitted
from bot.targets._http import wait_of
from tests.report.sample import HOSTILE, SECRETS, WITHHELD_TEXT
from tests.targets.rig import KEY, Killed, Memory, deliver, parcel, settings_of
from tests.targets.servers import TOKEN, CloudServer, DataCenterServer, Fault

TITLE = parcel("confluence").title


@pytest.fixture(params=[CloudServer, DataCenterServer], ids=["cloud", "data_center"])
def server(request):
    made = request.param()
    yield made
    assert made.misshapen == []
    made.close()


@pytest.fixture
def settings(server, tmp_path):
    is_cloud = isinstance(server, CloudServer)
    lines = {"url": server.url, "space": "OPS"}
    lines |= {"kind": "cloud", "user": "bot@acme.example"} if is_cloud else {"kind": "data_center"}
    return settings_of(tmp_path, "confluence", lines)


def well_formed(body: str) -> ElementTree.Element:
    names = 'xmlns:ac="urn:ac" xmlns:ri="urn:ri"'
    return ElementTree.fromstring(f"<page {names}>{body}</page>")


def only(server):
    assert len(server.pages) == 1, [page.title for page in server.pages.values()]
    return next(iter(server.pages.values()))


async def test_report_becomes_a_page_with_its_charts_data_and_labels(server, settings):
    done = await deliver(settings, "confluence", parcel("confluence"), Memory())
    page = only(server)
    assert page.title == TITLE
    assert page.body == well_formed_body(page.body)
    assert page.labels == {"rca-bot", KEY}
    assert {"02-deciding.svg", "02-deciding.csv", "INC-7.json", "checklist.patch"} <= set(
        page.files
    )
    assert set(re.findall(r'ri:filename="([^"]+)"', page.body)) <= set(page.files)
    assert done.is_changed
    assert done.url is not None and done.url.startswith(server.url) and page.id in done.url


def well_formed_body(body: str) -> str:
    well_formed(body)
    return body


async def test_second_delivery_of_the_same_report_sends_nothing(server, settings):
    progress = Memory()
    await deliver(settings, "confluence", parcel("confluence"), progress)
    before = len(server.asked)
    done = await deliver(settings, "confluence", parcel("confluence"), progress)
    assert not done.is_changed
    assert {item.method for item in server.asked[before:]} == {"GET"}
    assert only(server).version == 1


async def test_changed_report_renews_the_same_page_and_only_the_changed_file(server, settings):
    progress = Memory()
    first = parcel("confluence")
    await deliver(settings, "confluence", first, progress)
    files = {**first.export.files, "02-deciding.csv": b"time,value\n"}
    files[first.export.main] += b"<p>more</p>"
    later = replace(
        first, title="INC-7 · renamed", export=Export(main=first.export.main, files=files)
    )
    done = await deliver(settings, "confluence", later, progress)
    page = only(server)
    assert (page.title, page.version) == ("INC-7 · renamed", 2)
    assert page.body.endswith("<p>more</p>")
    assert page.files["02-deciding.csv"] == b"time,value\n"
    assert page.file_versions["02-deciding.csv"] == 2
    assert page.file_versions["02-deciding.svg"] == 1
    assert "2" in done.text.en


async def test_lost_answer_to_the_creation_makes_no_second_page(server, settings):
    path = r"/api/v2/pages$" if isinstance(server, CloudServer) else r"/rest/api/content$"
    server.faults.append(Fault("POST", path, None, done=True))
    progress = Memory()
    with pytest.raises(DeliveryError) as caught:
        await deliver(settings, "confluence", parcel("confluence"), progress)
    assert caught.value.reason is Reason.REFUSED
    await deliver(settings, "confluence", parcel("confluence"), progress)
    assert "02-deciding.svg" in only(server).files


async def test_killed_after_any_step_goes_on_from_there(server, settings):
    """The process dies at each write of its progress in turn: the step before it is done, but not remembered."""
    step = 0
    while True:
        step += 1
        server.pages.clear()
        progress = Memory()
        progress.dies_at = step
        try:
            await deliver(settings, "confluence", parcel("confluence"), progress)
        except Killed:
            progress.dies_at = -1
            await deliver(settings, "confluence", parcel("confluence"), progress)
            page = only(server)
            assert page.labels == {"rca-bot", KEY}
            assert set(page.files) == set(parcel("confluence").export.files) - {"INC-7.storage.xml"}
            continue
        break
    assert step > 8


async def test_everything_forgotten_the_page_is_found_by_its_label(server, settings):
    await deliver(settings, "confluence", parcel("confluence"), Memory())
    moved = replace(parcel("confluence"), title="INC-7 · another title since")
    await deliver(settings, "confluence", moved, Memory())
    assert only(server).title == "INC-7 · another title since"


async def test_page_of_the_same_title_by_somebody_else_is_left_alone(server, settings):
    theirs = server.add(TITLE.upper(), "<p>mine</p>")
    progress = Memory()
    await deliver(settings, "confluence", parcel("confluence"), progress)
    await deliver(settings, "confluence", replace(parcel("confluence"), title="INC-7"), progress)
    assert (theirs.body, theirs.version, theirs.labels) == ("<p>mine</p>", 1, set())
    ours = next(page for page in server.pages.values() if page is not theirs)
    assert len(server.pages) == 2
    assert KEY in ours.title


async def test_page_that_appears_while_ours_is_being_made_is_the_one(server, settings):
    """A create that timed out may still happen, after we looked and before we try again."""
    asked = server.titled
    looks = []

    def too_early(title):
        looks.append(title)
        return [] if len(looks) == 1 else asked(title)

    server.titled = too_early
    server.add(TITLE, f"<p>{KEY}</p>")
    await deliver(settings, "confluence", parcel("confluence"), Memory())
    assert only(server).version == 2


async def test_title_of_any_characters_and_length_is_taken(server, settings):
    title = "INC-7 · half \ud83d a pair\u202e\n" + "长" * 400
    progress = Memory()
    for _ in range(2):
        await deliver(settings, "confluence", replace(parcel("confluence"), title=title), progress)
    page = only(server)
    assert len(page.title) <= 255
    assert page.title.startswith("INC-7 · half <U+D83D> a pair<U+202E> 长")
    assert page.version == 1


async def test_link_of_a_cloud_page_is_the_sites_own(tmp_path):
    server = CloudServer()
    try:
        server.links = {"base": "https://acme.atlassian.example/wiki"}
        lines = {"url": server.url, "space": "OPS", "kind": "cloud"}
        own = settings_of(tmp_path, "confluence", lines)
        done = await deliver(own, "confluence", parcel("confluence"), Memory())
    finally:
        server.close()
    assert done.url is not None
    assert done.url.startswith("https://acme.atlassian.example/wiki/spaces/OPS/pages/")


async def test_deleted_page_is_made_again(server, settings):
    progress = Memory()
    await deliver(settings, "confluence", parcel("confluence"), progress)
    server.pages.clear()
    await deliver(settings, "confluence", parcel("confluence"), progress)
    assert "INC-7.json" in only(server).files


async def test_version_conflict_is_read_again_and_tried_once(server, settings):
    progress = Memory()
    await deliver(settings, "confluence", parcel("confluence"), progress)
    page = only(server)
    page.version = 7  # a person saved it meanwhile
    server.faults.append(Fault("PUT", rf"/{page.id}$", 409, body={"message": "stale"}))
    changed = replace(parcel("confluence"), title="INC-7 · again")
    done = await deliver(settings, "confluence", changed, progress)
    assert page.version == 8
    assert "history" in done.text.en
    server.faults.append(Fault("PUT", rf"/{page.id}$", 409, times=2, body={"message": "stale"}))
    with pytest.raises(DeliveryError) as caught:
        await deliver(settings, "confluence", replace(changed, title="INC-7 · third"), progress)
    assert caught.value.reason is Reason.CONFLICT


@pytest.mark.parametrize(
    ("status", "reason", "word"),
    [
        (401, Reason.UNAUTHORISED, "token"),
        (403, Reason.UNAUTHORISED, "right to write"),
        (404, Reason.NOT_FOUND, "address"),
        (413, Reason.UNSUPPORTED, "too large"),
        (429, Reason.RATE_LIMITED, "again"),
        (500, Reason.REFUSED, "again"),
        (503, Reason.REFUSED, "again"),
        (302, Reason.NOT_FOUND, "moved"),
    ],
)
async def test_each_refusal_is_one_line_that_says_what_to_do(
    server, settings, status, reason, word
):
    echo = {"message": f"no\nBearer {TOKEN} here"}
    headers = {"retry-after": "17"} if status == 429 else {}
    server.faults.append(Fault("POST", "", status, body=echo, headers=headers))
    with pytest.raises(DeliveryError) as caught:
        await deliver(settings, "confluence", parcel("confluence"), Memory())
    message = str(caught.value)
    assert caught.value.reason is reason
    assert word in message
    assert "\n" not in message
    assert TOKEN not in message
    if status == 429:
        assert caught.value.retry_after_seconds == 17


async def test_answer_in_another_shape_is_said_so(server, settings):
    server.faults.append(Fault("GET", "", 200, body={"hello": "world"}, times=9))
    with pytest.raises(DeliveryError, match="documented shape") as caught:
        await deliver(settings, "confluence", parcel("confluence"), Memory())
    assert caught.value.reason is Reason.MALFORMED


async def test_unknown_space_names_the_setting(server, tmp_path):
    kind = "cloud" if isinstance(server, CloudServer) else "data_center"
    lines = {"url": server.url, "space": "NOPE", "kind": kind}
    wrong = settings_of(tmp_path, "confluence", lines)
    async with httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(DeliveryError, match=r"no space NOPE"):
            await targets()["confluence"].check(wrong, http)


async def test_check_says_that_the_space_answers(server, settings):
    async with httpx.AsyncClient(trust_env=False) as http:
        assert "OPS" in await targets()["confluence"].check(settings, http)
    assert server.pages == {}


def test_hostile_texts_are_inert_and_nothing_secret_is_in_any_file():
    for locale in Locale:
        export = parcel("confluence", locale=locale).export
        body = export.content.decode()
        page = well_formed(body)
        # The macros and elements are ours; none came out of a text.
        names = {element.tag.rpartition("}")[2] for element in page.iter()}
        assert not names & {"script", "img", "style", "iframe"}
        macros = {element.get("{urn:ac}name") for element in page.iter("{urn:ac}structured-macro")}
        assert macros <= {
            "toc",
            "status",
            "info",
            "note",
            "tip",
            "warning",
            "code",
            "expand",
            "anchor",
        }
        for link in page.iter("a"):
            assert link.get("href", "").startswith(("http://", "https://"))
        everything = b"\n".join(export.files.values()).decode()
        for secret in SECRETS:
            assert secret not in everything
        assert WITHHELD_TEXT not in everything
        said = "".join(page.itertext())
        assert "onerror=alert(2)" in said
    assert len(HOSTILE) > 10


def test_code_cannot_end_its_own_section():
    text = "]]></ac:plain-text-body><ac:structured-macro ac:name='html'>"
    section = Section(id="s", title="t", blocks=(Details(summary="<b>", text=text),))
    body, _ = write_storage(_page(section))
    assert text in "".join(well_formed(body).itertext())


def test_very_long_report_is_cut_on_the_page_and_whole_in_the_files():
    rows = tuple(Row(cells=((Span(str(n)),),)) for n in range(ROWS + 3))
    raw = Details(summary="raw", text="x" * (RAW_CHARACTERS + 1))
    section = Section(
        id="s", title="t", blocks=(Table(caption="c", columns=("n",), rows=rows), raw)
    )
    page, is_whole = fitted(_page(section), Locale.EN)
    body, _ = write_storage(page)
    assert not is_whole
    assert body.count("<tr>") == ROWS + 1
    assert "3 more rows" in body
    assert "1 raw results" in body


def _page(*sections: Section) -> Page:
    return Page(
        id="INC-1",
        title="t",
        subtitle="s",
        badges=(),
        lang="en",
        zone="UTC",
        footer="f",
        sections=sections,
    )


def test_every_way_to_say_when_to_come_back():
    now = datetime(2026, 11, 30, tzinfo=UTC)
    said = {
        "date": {"retry-after": format_datetime(now + timedelta(seconds=90), usegmt=True)},
        "seconds": {"retry-after": "7"},
        "reset": {
            "x-ratelimit-remaining": "0",
            "x-ratelimit-reset": str(int(now.timestamp()) + 50),
        },
        "left": {"x-ratelimit-remaining": "5", "x-ratelimit-reset": "1"},
        "nonsense": {"retry-after": "soon"},
        "past": {"retry-after": format_datetime(now - timedelta(hours=1), usegmt=True)},
        "never": {"retry-after": "99999999"},
    }
    waits = {
        name: wait_of(httpx.Response(429, headers=headers), now) for name, headers in said.items()
    }
    assert waits == {
        "date": 90, "seconds": 7, "reset": 50, "left": None, "nonsense": None, "past": 1, "never": 3600,
    }  # fmt: skip
