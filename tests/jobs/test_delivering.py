"""What a team asked for gets there, once, however long a target is down; and people are told no more than they need."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.command import Call
from bot.domain.action_item import ActionStatus
from bot.domain.text import Locale
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, DeliveryError, Reason
from bot.exporter import ExportOptions
from bot.exporters import render_report, report_worker
from bot.incidents.responding import Via
from bot.jobs import delivering
from bot.jobs.delivering import DELIVER, MOST_TRIES, deliver_job, key_of, wait_after
from bot.jobs.reporting import compile_report
from bot.jobs.worker import Done, Later
from bot.settings import load_settings
from bot.store import queue
from commands.export import export
from tests.targets.servers import TOKEN, CloudServer, Fault, GithubServer
from tests.web.door import opened, payload


class Public:
    """Every channel but C0SECRET is public."""

    async def is_public(self, channel):
        return channel != "C0SECRET"

    async def is_member(self, channel, user):
        return False


@pytest.fixture(scope="module", autouse=True)
def worker():
    yield
    report_worker().close()


@pytest.fixture
def wiki():
    made = CloudServer()
    yield made
    assert made.misshapen == []
    made.close()


@pytest.fixture
def tracker():
    made = GithubServer()
    yield made
    assert made.misshapen == []
    made.close()


@pytest.fixture
async def door(redis_url, wiki, tracker, tmp_path):
    path = tmp_path / "rca.toml"
    path.write_text(
        f'[confluence]\nurl = "{wiki.url}"\nspace = "OPS"\nkind = "cloud"\n'
        f'[github]\nrepository = "acme/ops"\napi = "{tracker.url}"\nprivate = true\n'
    )
    environment = {
        "RCA_CONFIG": str(path),
        "RCA_CONFLUENCE_TOKEN": TOKEN,
        "RCA_GITHUB_TOKEN": TOKEN,
        "RCA_DATA_DIR": str(tmp_path),
    }
    loaded = load_settings(environment)
    tables = {name: getattr(loaded, name) for name in ("confluence", "github")}
    async with opened(redis_url, toml=tables, RCA_DATA_DIR=str(tmp_path)) as door:
        door.services = replace(door.services, members=Public())
        await door.take("alertmanager", payload("firing_and_resolved.json"))
        await drain(door)
        yield door


async def drain(door, tries=400):
    """Works off what is due now, deliveries for real; gives what each delivery came to."""
    handlers = delivering.handlers(door.services)
    outcomes = []
    for _ in range(tries):
        claim = await door.services.queue.claim(door.now[0])
        if claim is None:
            return outcomes
        outcome = Done()
        if claim.job.kind == DELIVER:
            outcome = await handlers[DELIVER](claim)
            outcomes.append(outcome)
        if isinstance(outcome, Later):
            step = queue.postpone(claim, outcome.until)
        else:
            step = queue.finish(claim, door.now[0])
        assert (await door.services.queue.settle(step, doing="test")).is_done
    raise AssertionError("jobs go round in circles")


async def ask(door, target="confluence", by="U0LEAD", once="ask"):
    await door.services.outbox.send(deliver_job("INC-1", target, by=by), once=once)


async def entries(door, op):
    found = (await door.services.journal.load("INC-1")).entries
    return [entry for entry in found if entry.op == op]


async def settle(door):
    """Runs deliveries until none is left, as long as the clock needs; keeps the posts that were queued."""
    handlers = delivering.handlers(door.services)
    posts, tries = [], 0
    while True:
        claim = await door.services.queue.claim(door.now[0])
        if claim is None:
            if not await door.jobs(DELIVER):
                return posts, tries
            door.pass_time(seconds=300)
            continue
        outcome = Done()
        if claim.job.kind == DELIVER:
            tries += 1
            outcome = await handlers[DELIVER](claim)
        elif claim.job.kind == "slack.post":
            posts.append(claim.job.payload["message"])
        later = isinstance(outcome, Later)
        step = queue.postpone(claim, outcome.until) if later else queue.finish(claim, door.now[0])
        assert (await door.services.queue.settle(step, doing="test")).is_done


async def test_page_is_made_and_its_link_comes_into_the_thread(door, wiki):
    await ask(door)
    posts, tries = await settle(door)
    assert tries == 1
    page = next(iter(wiki.pages.values()))
    assert page.title.startswith("INC-1 · ")
    assert [post["view"] for post in posts] == ["delivery"]
    assert posts[0]["context"]["url"].endswith(f"/pages/{page.id}")
    (entry,) = await entries(door, "delivered")
    assert (entry.kind, entry.author) == (EntryKind.REPORT, "U0LEAD")
    incident = await door.incident()
    assert incident.report_state == "draft"
    assert incident.report_formats == ("confluence",)
    assert key_of(incident) in page.body


async def test_asked_twice_without_news_the_page_stays_as_it_is(door, wiki):
    for n in range(3):
        await ask(door, once=f"n{n}")
        posts, _ = await settle(door)
    (page,) = wiki.pages.values()
    assert page.version == 1
    assert "already says this" in posts[-1]["context"]["text"]["en"]
    await door.services.responding.note("INC-1", "something new", via(door, "note"))
    await ask(door, once="after")
    await settle(door)
    assert page.version == 2
    # What was left out before is there now: the three deliveries are entries too.
    assert page.body.count("is up to date (version 1)") == 1
    assert page.body.count("already says this") == 2


async def test_short_outage_is_nobodys_business(door, wiki):
    wiki.faults.append(Fault("POST", "/pages$", 503, times=2))
    await ask(door)
    posts, tries = await settle(door)
    assert tries == 3
    assert [post["view"] for post in posts] == ["delivery"]
    assert len(wiki.pages) == 1


async def test_long_outage_is_said_once_and_the_report_still_gets_there(door, wiki):
    wiki.faults.append(Fault("*", "", 503, times=20))
    await ask(door)
    posts, tries = await settle(door)
    assert tries == 21
    assert [post["view"] for post in posts] == ["error", "delivery"]
    assert "tried again" in posts[0]["context"]["text"]["en"]
    assert "503" in posts[0]["context"]["text"]["en"]
    assert len(wiki.pages) == 1


async def test_server_that_says_when_is_asked_then(door, wiki):
    wiki.faults.append(Fault("GET", "", 429, headers={"retry-after": "600"}))
    began = door.now[0]
    await ask(door)
    (outcome,) = await drain(door)
    assert outcome.until == began + timedelta(seconds=600)
    assert len(await entries(door, "delivery")) == 1
    door.pass_time(seconds=599)
    assert await drain(door) == []
    door.pass_time(seconds=2)
    assert [type(item) for item in await drain(door)] == [Done]


def test_tries_go_on_for_about_a_day():
    waits = sum(wait_after(attempt) for attempt in range(1, MOST_TRIES))
    assert timedelta(hours=20) < timedelta(seconds=waits) < timedelta(hours=40)


async def test_asking_again_while_it_waits_tries_at_once(door, wiki):
    wiki.faults.append(Fault("GET", "", 429, headers={"retry-after": "3000"}))
    await export.run(call(door, "confluence", key="first"), door.services)
    assert [type(item) for item in await drain(door)] == [Later]
    assert await drain(door) == []
    await export.run(call(door, "confluence", key="second"), door.services)
    assert Done() in await drain(door)
    assert len(wiki.pages) == 1


async def test_last_failure_has_a_button_that_goes_on_where_it_stopped(door, wiki, monkeypatch):
    monkeypatch.setattr(delivering, "MOST_TRIES", 5)
    wiki.faults.append(Fault("PUT", "attachment$", 500, times=5))
    await ask(door)
    posts, tries = await settle(door)
    assert tries == 5
    last = posts[-1]
    assert "trying again goes on from there" in last["context"]["text"]["en"]
    button = last["buttons"][0]
    assert button["action_id"] == "rca.export"
    made = next(iter(wiki.pages.values()))
    await export.run(call(door, "", key="again", payload=button["payload"]), door.services)
    posts, _ = await settle(door)
    assert posts[-1]["view"] == "delivery"
    assert list(wiki.pages) == [made.id]
    assert "INC-1.json" in made.files
    assert wiki.count("POST", "/pages$") == 1


async def test_refused_token_is_said_at_once_with_what_to_do(door, wiki):
    wiki.faults.append(Fault("*", "", 401, times=9, body={"message": "nope"}))
    await ask(door)
    posts, tries = await settle(door)
    assert tries == 1
    text = posts[0]["context"]["text"]
    assert "Give the bot a token" in text["en"]
    assert "令牌" in text["zh-CN"]
    assert posts[0]["buttons"]
    assert TOKEN not in str(posts)


async def test_private_incident_goes_only_where_it_is_allowed(door, wiki, tracker):
    class Nobody(Public):
        async def is_public(self, channel):
            return False

    door.services = replace(door.services, members=Nobody())
    await ask(door)
    await ask(door, "github", once="two")
    posts, _ = await settle(door)
    assert wiki.asked == []
    refused = next(post for post in posts if post["view"] == "error")
    assert "private = true" in refused["context"]["text"]["en"]
    assert tracker.asked != []


async def test_slack_that_does_not_tell_whether_a_channel_is_private_only_delays(door, wiki):
    class Unsure(Public):
        asked = 0

        async def is_public(self, channel):
            self.asked += 1
            if self.asked == 1:
                raise DeliveryError("slack: no answer", reason=Reason.TIMEOUT)
            return True

    door.services = replace(door.services, members=Unsure())
    await ask(door)
    posts, tries = await settle(door)
    assert tries == 2
    assert not [post for post in posts if post["view"] == "error"]
    assert wiki.asked != []


async def test_many_in_a_row_become_one(door, wiki):
    for n in range(5):
        await ask(door, once=f"n{n}")
    _, tries = await settle(door)
    assert tries == 1


async def test_issue_links_come_into_the_report_and_done_closes_the_issue(door, tracker):
    await door.services.responding.add_action_item(
        "INC-1", "Add an alert", via(door, "add"), owner="U0LIN", due="2026-12-07"
    )
    assert await door.jobs(DELIVER) == []
    await ask(door, "github")
    await settle(door)
    incident = await door.incident()
    (item,) = incident.action_items
    assert item.issue_url == tracker.issues[1]["html_url"]
    report = await compile_report(door.services, "INC-1")
    written = render_report(report, ("html", "md"), ExportOptions(locale=Locale.EN))
    for done in written.values():
        assert item.issue_url in done.content.decode()
    draft = Draft(
        kind=EntryKind.ACTION,
        at=door.now[0],
        text=incident.action_items[0].text,
        data={"op": "done", "n": 1},
    )
    await door.services.responding.write("INC-1", via(door, "done"), lambda _: [draft], step="x")
    posts, tries = await settle(door)
    assert tries >= 1
    assert [post for post in posts if post["view"] == "delivery"] == []
    assert tracker.issues[1]["state"] == "closed"
    assert (await door.incident()).action_items[0].issue_status is ActionStatus.DONE
    assert await door.jobs(DELIVER) == []


async def test_second_item_gets_its_issue_by_itself_once_the_first_has_one(door, tracker):
    await door.services.responding.add_action_item(
        "INC-1", "one", via(door, "1"), owner=None, due=None
    )
    await ask(door, "github")
    await settle(door)
    await door.services.responding.add_action_item(
        "INC-1", "two", via(door, "2"), owner=None, due=None
    )
    await settle(door)
    assert [issue["title"] for issue in tracker.issues.values()] == ["INC-1: one", "INC-1: two"]


def via(door, key):
    return Via(by="U0LEAD", at=door.now[0], key=key)


def call(door, text, key="k", **rest):
    values = {
        "word": "export", "user": "U0LEAD", "channel": "C1", "thread_ts": None, "message_ts": None,
        "incident": "INC-1", "at": door.now[0], "locale": Locale.EN,
    }  # fmt: skip
    return Call(**values, text=text, key=key, **rest)


async def kinds(door):
    jobs = await door.jobs(DELIVER) + await door.jobs("incident.report")
    return sorted(
        job["payload"].get("target") or ",".join(job["payload"]["formats"]) for job in jobs
    )


async def test_word_takes_files_and_places_together(door):
    reply = await export.run(call(door, "pdf， Confluence md、github"), door.services)
    assert await kinds(door) == ["confluence", "github", "pdf,md"]
    assert "Confluence" in reply.message.context["text"]["en"]


async def test_place_that_is_not_set_up_is_said_and_nothing_is_queued(door):
    with pytest.raises(CommandError, match=r"\[git\]") as caught:
        await export.run(call(door, "confluence git"), door.services)
    assert "RCA_CONFIG" in caught.value.text.in_locale(Locale.ZH_CN)
    assert await kinds(door) == []


async def test_unknown_word_shows_the_grammar(door):
    with pytest.raises(CommandError, match=r"md\|html\|pdf\|json\|confluence\|git"):
        await export.run(call(door, "docx"), door.services)


async def test_trouble_with_issues_that_nobody_asked_about_is_said_once(door, tracker):
    """Saying it is itself news of the incident, which wants the issues in step again: that must come to an end."""
    await door.services.responding.add_action_item(
        "INC-1", "one", via(door, "1"), owner=None, due=None
    )
    await ask(door, "github")
    await settle(door)
    tracker.faults.append(Fault("*", "", 401, times=1000, body={"message": "expired"}))
    for n in range(3):
        await door.services.responding.add_action_item(
            "INC-1", f"more {n}", via(door, f"more{n}"), owner=None, due=None
        )
        posts, tries = await settle(door)
        assert tries <= 2
        assert len([post for post in posts if post["view"] == "error"]) == (1 if n == 0 else 0)
    tracker.faults.clear()
    await door.services.responding.add_action_item(
        "INC-1", "last", via(door, "last"), owner=None, due=None
    )
    await settle(door)
    assert len(tracker.issues) == 5
    assert await door.jobs(DELIVER) == []


async def test_private_incident_whose_issues_are_no_longer_allowed_is_refused_once(door, tracker):
    await door.services.responding.add_action_item(
        "INC-1", "one", via(door, "1"), owner=None, due=None
    )
    await ask(door, "github")
    await settle(door)

    class Nobody(Public):
        async def is_public(self, channel):
            return False

    strict = door.services.settings.github.model_copy(update={"private": False})
    settings = door.services.settings.model_copy(update={"github": strict})
    door.services = replace(door.services, members=Nobody(), settings=settings)
    await door.services.responding.add_action_item(
        "INC-1", "two", via(door, "2"), owner=None, due=None
    )
    posts, tries = await settle(door)
    assert tries <= 2
    assert len([post for post in posts if post["view"] == "error"]) == 1
    assert len(tracker.issues) == 1


async def test_words_that_their_author_takes_back_leave_the_page_and_the_issue_too(
    door, wiki, tracker
):
    private = "Umbrella Corp is on fire"
    said_in = replace(via(door, "note"), message_ts="1.2", source="slack")
    await door.services.responding.note("INC-1", private, said_in)
    await door.services.responding.add_action_item(
        "INC-1", private, replace(said_in, key="add"), owner=None, due=None
    )
    await ask(door)
    await ask(door, "github", once="two")
    await settle(door)
    (page,) = wiki.pages.values()
    assert private in page.body
    assert private in tracker.issues[1]["title"]
    assert await door.services.journal.withhold("INC-1", "1.2") == 2
    await delivering.renew(door.services, "INC-1", once="gone")
    posts, tries = await settle(door)
    assert tries == 2
    assert [post for post in posts if post["view"] == "delivery"] == []
    assert private not in page.body
    assert private not in page.files["INC-1.json"].decode()
    assert private not in str(tracker.issues)
    assert tracker.issues[1]["state"] == "closed"
    await delivering.renew(door.services, "INC-1", once="gone")
    assert await door.jobs(DELIVER) == []
