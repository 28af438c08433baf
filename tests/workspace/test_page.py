"""The page in a real browser: what a responder does by hand works, and foreign text stays text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Page, async_playwright, expect
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.workspace.client import WorkspaceClient
from bot.workspace.server import RunningWorkspace
from tests.workspace.conftest import INCIDENTS, Bot
from tests.workspace.test_interactivity import button, modal, plain, text_input

_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest_asyncio.fixture
async def page(workspace: RunningWorkspace) -> AsyncIterator[Page]:
    """The page of the workspace, open; any error in the browser's console fails the test."""
    faults: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=_FLAGS.split()
        )
        opened = await browser.new_page(viewport={"width": 1440, "height": 900}, locale="en-GB")
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.on(
            "console",
            lambda line: faults.append(line.text) if line.type == "error" else None,
        )
        await opened.goto(workspace.url)
        yield opened
        await browser.close()
    assert faults == []


async def type_line(page: Page, line: str) -> None:
    await page.locator("#composer textarea").fill(line)
    await page.locator("#composer textarea").press("Enter")


async def test_responder_talks_commands_presses_and_fills_a_modal(
    page: Page, bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.command("/rca")
    async def rca(ack: Any, body: dict[str, Any]) -> None:
        if body["text"] != "symptom":
            await ack("`start` opens an incident")
            return
        await ack()
        view = modal(
            "Symptom", text_input("what"), text_input("scope", is_optional=True), callback_id="s"
        )
        await slack.views_open(trigger_id=body["trigger_id"], view=view)

    @bot.app.view("s")
    async def submitted(ack: Any, body: dict[str, Any]) -> None:
        bot.seen.append(body["view"]["state"]["values"])
        await ack()

    @bot.app.action("rca.mitigate")
    async def pressed(ack: Any, body: dict[str, Any], respond: Any) -> None:
        await ack()
        await respond(f"captured {body['actions'][0]['value']}", response_type="in_channel")

    @bot.app.event("message")
    async def ignored() -> None:
        return

    await type_line(page, "@lin.mei P99 又高了 *look*")
    message = page.locator("#messages .message").first
    await expect(message.locator(".name")).to_have_text("Alex Park")
    await expect(message.locator(".mention")).to_have_text("@lin.mei")
    await expect(message.locator("strong")).to_have_text("look")

    await type_line(page, "/rca help")
    only = page.locator("#messages .ephemeral")
    await expect(only).to_contain_text("Only visible to you")
    await expect(only.locator("code")).to_have_text("start")
    await page.locator("#act-as").select_option("U0LEAD")
    await expect(page.locator("#messages .ephemeral")).to_have_count(0)
    await page.locator("#act-as").select_option("U0SRE")

    ask = {
        "title": plain("Mitigate?"),
        "text": plain("Stacks are taken first"),
        "confirm": plain("Do it"),
        "deny": plain("Not now"),
    }
    row = {"type": "actions", "elements": [button("rca.mitigate", "m1") | {"confirm": ask}]}
    root = (await slack.chat_postMessage(channel=INCIDENTS, text="card", blocks=[row]))["ts"]
    await page.get_by_role("button", name="m1").click()
    await page.get_by_role("button", name="Not now").click()
    await page.get_by_role("button", name="m1").click()
    await page.get_by_role("button", name="Do it").click()
    await expect(page.locator("#messages")).to_contain_text("captured m1")

    await type_line(page, "/rca symptom")
    dialog = page.locator(".modal")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.locator(".error").first).to_have_text(
        "Please complete this required field."
    )
    await dialog.locator("input").first.fill("P99 600 ms")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    assert bot.seen[0]["what"]["what.value"]["value"] == "P99 600 ms"

    await page.locator(f'#messages [data-ts="{root}"]').hover()
    await page.locator(f'#messages [data-ts="{root}"] [title="Reply in thread"]').click()
    await page.locator("#thread textarea").fill("in the thread")
    await page.locator("#thread textarea").press("Enter")
    await expect(page.locator("#thread")).to_contain_text("in the thread")
    await expect(page.locator("#messages .summary .count")).to_have_text("1 reply")


async def test_foreign_text_never_becomes_markup_or_a_script_link(
    page: Page, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    await client.person("U0DEV").say(INCIDENTS, evil)
    await client.alert_message(
        "grafana",
        INCIDENTS,
        attachments=[
            {
                "title": evil,
                "title_link": "javascript:document.title=3",
                "text": f"{evil} <javascript:document.title=4|click>",
                "color": "red;background:url(x)",
                "fields": [{"title": evil, "value": evil}],
            }
        ],
    )
    blocks = [
        {"type": "header", "text": plain(evil[:150])},
        {"type": "section", "text": {"type": "mrkdwn", "text": f"`{evil}` *{evil}*"}},
        {"type": "markdown", "text": f"# {evil}\n[x](javascript:alert(1))"},
    ]
    await slack.chat_postMessage(channel=INCIDENTS, text="x", blocks=blocks)
    await expect(page.locator("#messages .message")).to_have_count(3)
    await expect(page.locator("#messages img, #messages script")).to_have_count(0)
    await expect(page.locator('#messages a[href^="javascript"]')).to_have_count(0)
    await expect(page.locator("#messages .message").first).to_contain_text(evil)
    await expect(page).to_have_title("Local workspace")


async def test_alerts_files_shortcut_home_and_inspector_are_on_the_page(
    page: Page, bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.shortcut("rca_start_here")
    async def started(ack: Any, body: dict[str, Any], respond: Any) -> None:
        await ack()
        await respond("started here")

    @bot.app.event("app_home_opened")
    async def opened(event: dict[str, Any]) -> None:
        home = {"type": "home", "blocks": [{"type": "header", "text": plain("Open incidents")}]}
        await slack.views_publish(user_id=event["user"], view=home)

    @bot.app.event(re.compile("message|file_shared"))
    async def ignored() -> None:
        return

    await page.locator('[data-place="C0ALERTS"]').click()
    await page.locator("#sample-alert").click()
    await page.get_by_role("menuitem", name="Alertmanager", exact=False).last.click()
    alert = page.locator("#messages .message").first
    await expect(alert.locator(".attachment-title")).to_contain_text("[FIRING:1]")
    await alert.hover()
    await alert.locator(".more").click()
    await page.get_by_role("menuitem", name="Start RCA here").click()
    await expect(page.locator("#messages .ephemeral")).to_contain_text("started here")

    await page.locator(f'[data-place="{INCIDENTS}"]').click()
    await slack.files_upload_v2(
        channel=INCIDENTS, filename="INC-1.md", content="# INC-1", title="Report"
    )
    async with page.expect_download() as caught:
        await page.locator("#messages .file").get_by_text("Download").click()
    download = await caught.value
    assert download.suggested_filename == "INC-1.md"

    await page.locator('[data-place="home"]').click()
    await expect(page.locator("#messages .home h3")).to_have_text("Open incidents")

    await page.locator("#traffic-button").click()
    await expect(page.locator(".exchange").filter(has_text="views.publish")).to_have_count(1)
    await page.locator("#language").click()
    await expect(page.locator("#side")).to_contain_text("频道")


async def test_every_sender_posts_its_sample_to_its_own_webhook(
    page: Page, bot: Bot, client: WorkspaceClient
) -> None:
    paths: list[str] = []

    async def note(request: Request) -> Response:
        paths.append(f"{request.url.path} {(await request.body())[:4000]!r}")
        return PlainTextResponse("{}")

    bot.answer_with = note
    await page.locator("#sample-alert").click()
    await page.locator("#menu").get_by_role("menuitem", name="Grafana: firing").click()
    await expect(page.locator("#toast")).to_contain_text("grafana")
    for sender in ("alertmanager", "grafana", "pagerduty"):
        for is_resolved in (False, True):
            await client.webhook(sender=sender, is_resolved=is_resolved)
    kinds = [path.split()[0].rsplit("/", 1)[1] for path in paths]
    assert kinds == [
        "grafana",
        *(s for s in ("alertmanager", "grafana", "pagerduty") for _ in "12"),
    ]
    assert "incident.triggered" in paths[-2]
    assert "incident.resolved" in paths[-1]


async def test_page_is_usable_on_a_phone(
    workspace: RunningWorkspace, page: Page, client: WorkspaceClient, slack: AsyncWebClient
) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    root = (await slack.chat_postMessage(channel=INCIDENTS, text="card"))["ts"]
    await expect(page.locator("#side")).not_to_be_visible()
    await page.locator("#show-side").click()
    await page.locator('[data-place="C0ALERTS"]').click()
    await expect(page.locator("#channel-head h1")).to_contain_text("alerts")
    await expect(page.locator("#side")).not_to_be_visible()
    await page.goto(
        f"{workspace.url}/archives/{INCIDENTS}/p{root.replace('.', '')}?thread_ts={root}"
    )
    await expect(page.locator("#thread textarea")).to_be_visible()
    await expect(page.locator("#main")).not_to_be_visible()
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    await page.locator("#thread .pane-head .icon").click()
    await expect(page.locator("#messages")).to_be_visible()
