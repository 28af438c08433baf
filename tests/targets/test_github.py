"""One issue an action item, opened once, closed when it is done; nobody is pinged by what an alert said."""

import re
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.action_item import ActionItem, ActionStatus
from bot.domain.text import Locale, Localized
from bot.errors import DeliveryError, Reason
from bot.target import Parcel
from bot.targets import targets
from bot.targets._github_issues import content_of
from tests.conftest import examples
from tests.targets.rig import KEY, Killed, Memory, deliver, settings_of
from tests.targets.servers import TOKEN, Fault, GithubServer

HOSTILE = (
    "@everyone see #1 and GH-2, acme/other#3 <script>alert(1)</script> `x` | --> [l](javascript:1)"
)


def item(n: int, text: str | None, **rest) -> ActionItem:
    return ActionItem(n=n, text=Localized.verbatim(text) if text is not None else None, **rest)


def parcel(*items: ActionItem, **rest) -> Parcel:
    values = {"incident": "INC-7", "key": KEY, "title": "INC-7 · slow", "locale": Locale.EN}
    return Parcel(**{**values, **rest}, action_items=items)


FIRST = item(1, "Add an alert for the pool", owner="Lin", due="2026-12-07")
SECOND = item(2, "Preallocate the pool")


@pytest.fixture
def server():
    made = GithubServer()
    yield made
    assert made.misshapen == []
    made.close()


@pytest.fixture
def own(server, tmp_path):
    return settings_of(tmp_path, "github", {"repository": "acme/ops", "api": server.url})


async def test_each_action_item_becomes_one_issue_with_owner_and_date(server, own):
    done = await deliver(own, "github", parcel(FIRST, SECOND), Memory())
    assert [issue["title"] for issue in server.issues.values()] == [
        "INC-7: Add an alert for the pool",
        "INC-7: Preallocate the pool",
    ]
    body = server.issues[1]["body"]
    assert "Owner: Lin" in body and "2026" in body
    assert server.issues[1]["labels"] == [{"name": "rca-bot"}]
    assert done.links == {
        1: "https://github.example/acme/ops/issues/1",
        2: "https://github.example/acme/ops/issues/2",
    }
    assert "2 opened" in done.text.en


async def test_again_nothing_is_opened_or_changed(server, own):
    progress = Memory()
    await deliver(own, "github", parcel(FIRST, SECOND), progress)
    before = len(server.asked)
    done = await deliver(own, "github", parcel(FIRST, SECOND), progress)
    assert len(server.asked) == before
    assert not done.is_changed
    assert set(done.links) == {1, 2}


@pytest.mark.parametrize(
    ("status", "reason"),
    [(ActionStatus.DONE, "completed"), (ActionStatus.DROPPED, "not_planned")],
)
async def test_item_that_is_over_closes_its_issue_and_opens_none(server, own, status, reason):
    progress = Memory()
    await deliver(own, "github", parcel(FIRST), progress)
    over = replace(FIRST, status=status)
    await deliver(own, "github", parcel(over, replace(SECOND, status=status)), progress)
    assert len(server.issues) == 1
    assert (server.issues[1]["state"], server.issues[1]["state_reason"]) == ("closed", reason)
    await deliver(own, "github", parcel(FIRST), progress)
    assert server.issues[1]["state"] == "open"


async def test_issue_that_a_person_closed_over_there_stays_closed(server, own):
    progress = Memory()
    await deliver(own, "github", parcel(FIRST), progress)
    server.issues[1]["state"] = "closed"
    await deliver(own, "github", parcel(replace(FIRST, owner="Priya")), progress)
    assert server.issues[1]["state"] == "closed"
    assert "Priya" in server.issues[1]["body"]


async def test_item_that_its_author_took_back_is_wiped_and_closed(server, own):
    progress = Memory()
    await deliver(own, "github", parcel(FIRST), progress)
    await deliver(own, "github", parcel(replace(FIRST, text=None), item(2, None)), progress)
    assert len(server.issues) == 1
    assert "pool" not in server.issues[1]["title"] + server.issues[1]["body"]
    assert server.issues[1]["state"] == "closed"


@pytest.mark.parametrize("may_label", [True, False])
async def test_lost_answer_to_the_creation_opens_no_second_issue(server, own, may_label):
    server.may_label = may_label
    server.faults.append(Fault("POST", "/issues$", None, done=True))
    progress = Memory()
    with pytest.raises(DeliveryError):
        await deliver(own, "github", parcel(FIRST, SECOND), progress)
    await deliver(own, "github", parcel(FIRST, SECOND), progress)
    assert len(server.issues) == 2
    assert [issue["state"] for issue in server.issues.values()] == ["open", "open"]


async def test_killed_after_any_step_opens_no_second_issue(server, own):
    step = 0
    while True:
        step += 1
        server.issues.clear()
        progress = Memory()
        progress.dies_at = step
        try:
            await deliver(own, "github", parcel(FIRST, SECOND), progress)
        except Killed:
            progress.dies_at = -1
            done = await deliver(own, "github", parcel(FIRST, SECOND), progress)
            assert len(server.issues) == 2
            assert set(done.links) == {1, 2}
            continue
        break
    assert step > 8


async def test_everything_forgotten_issues_are_found_by_label_beyond_the_first_page(server, own):
    await deliver(own, "github", parcel(FIRST), Memory())
    for n in range(130):
        server.open(title=f"other {n}", body=f"noise {n}", labels=["rca-bot"])
    server.open(title="a copy", body=server.issues[1]["body"], labels=["rca-bot"])
    done = await deliver(own, "github", parcel(FIRST), Memory())
    assert done.links == {1: "https://github.example/acme/ops/issues/1"}
    assert len(server.issues) == 132


async def test_issue_that_somebody_deleted_is_not_opened_again(server, own):
    progress = Memory()
    await deliver(own, "github", parcel(FIRST), progress)
    server.deleted.add(1)
    for owner in ("A", "B"):
        await deliver(own, "github", parcel(replace(FIRST, owner=owner)), progress)
    assert server.count("POST", "/issues$") == 1
    assert server.count("PATCH", "") == 1


async def test_hostile_text_neither_mentions_links_nor_acts(server, own):
    other = parcel(item(1, HOSTILE), item(2, "x" * 500 + "\nsecond line"))
    await deliver(own, "github", other, Memory())
    body = server.issues[1]["body"]
    assert "@everyone" not in body and "#1" not in body and "GH-2" not in body
    assert "<script" not in body and "[l](" not in body
    assert body.count("-->") == 1
    assert len(server.issues[2]["title"]) == 256
    assert "\n" not in server.issues[2]["title"]


@settings(max_examples=examples(100), deadline=None)
@given(text=st.text(max_size=300) | st.sampled_from(["@a", "#12", "x@b.c", "-->", "GH-1", "\n#7"]))
def test_any_text_makes_a_valid_issue_that_mentions_nobody(text):
    content = content_of(parcel(), item(1, text))
    assert 0 < len(content.title) <= 256
    assert not [letter for letter in content.title if unicodedata.category(letter) in ("Cc", "Cs")]
    rest = content.body.split("\n", 1)[1]
    assert not re.search(r"@[A-Za-z0-9_-]|#\d|\bGH-\d|<(?!br>)", rest.replace("&#8203;", "\u200b"))


@pytest.mark.parametrize(
    ("status", "headers", "body", "reason", "wait"),
    [
        (403, {"retry-after": "30"}, {"message": "x"}, Reason.RATE_LIMITED, 30),
        (
            403,
            {},
            {"message": "You have exceeded a secondary rate limit."},
            Reason.RATE_LIMITED,
            60,
        ),
        (429, {}, None, Reason.RATE_LIMITED, 60),
        (403, {}, {"message": "Resource not accessible"}, Reason.UNAUTHORISED, None),
        (401, {}, {"message": "Bad credentials"}, Reason.UNAUTHORISED, None),
        (404, {}, {"message": "Not Found"}, Reason.NOT_FOUND, None),
        (410, {}, {"message": "Issues are disabled for this repo"}, Reason.UNSUPPORTED, None),
        (422, {}, {"message": "Validation Failed"}, Reason.MALFORMED, None),
        (502, {}, None, Reason.REFUSED, None),
        (301, {"location": "https://elsewhere.example"}, None, Reason.NOT_FOUND, None),
    ],
)
async def test_each_refusal_has_its_reason(server, own, status, headers, body, reason, wait):
    server.faults.append(Fault("POST", "", status, headers=headers, body=body))
    with pytest.raises(DeliveryError) as caught:
        await deliver(own, "github", parcel(FIRST), Memory())
    assert (caught.value.reason, caught.value.retry_after_seconds) == (reason, wait)
    assert TOKEN not in str(caught.value)


async def test_primary_limit_waits_for_its_reset(server, own):
    reset = str(int(datetime.now(UTC).timestamp()) + 1000)
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    server.faults.append(Fault("POST", "", 403, headers=headers))
    with pytest.raises(DeliveryError) as caught:
        await deliver(own, "github", parcel(FIRST), Memory())
    assert caught.value.reason is Reason.RATE_LIMITED
    assert 900 < (caught.value.retry_after_seconds or 0) <= 1000


async def test_without_action_items_nothing_is_asked_but_the_list(server, own):
    done = await deliver(own, "github", parcel(), Memory())
    assert not done.is_changed
    assert "ballot_box" in done.text.en
    assert server.count("POST", "") == 0


async def test_check_tells_a_wrong_token(server, own, tmp_path):
    async with httpx.AsyncClient(trust_env=False) as http:
        assert "acme/ops" in await targets()["github"].check(own, http)
        wrong = settings_of(
            tmp_path,
            "github",
            {"repository": "acme/ops", "api": server.url},
            RCA_GITHUB_TOKEN="nope",
        )
        with pytest.raises(DeliveryError, match="token"):
            await targets()["github"].check(wrong, http)
