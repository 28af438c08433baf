"""A responder with a browser: starts an incident, presses the buttons, downloads the report."""

from pathlib import Path

from playwright.async_api import Page, async_playwright, expect

from tests.scenarios.rig import ROOT
from tests.waiting import PATIENCE_SECONDS, until

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
MILLISECONDS = PATIENCE_SECONDS * 1000


async def type_line(page: Page, line: str) -> None:
    await page.locator("#composer textarea").fill(line)
    await page.locator("#composer textarea").press("Enter")


async def press(page: Page, name: str) -> None:
    await page.locator("#thread").get_by_role("button", name=name, exact=True).last.click()


def screenshots(tmp_path: Path) -> Path:
    """Kept where a person can look at them; the folder is ignored by git."""
    folder = ROOT / ".demo" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def test_a_responder_works_an_incident_in_the_page_and_downloads_its_report(
    deployment, tmp_path
):
    await deployment.start_bot()
    kept = screenshots(tmp_path)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=FLAGS.split()
        )
        page = await browser.new_page(viewport={"width": 1440, "height": 1000}, locale="en-GB")
        page.set_default_timeout(MILLISECONDS)
        expect.set_options(timeout=MILLISECONDS)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(deployment.workspace_url)

        await type_line(
            page, "/rca start sev2 P99 of translate-api is 600 ms service=translate-api"
        )
        card = page.locator("#messages .message:not(.ephemeral)", has_text="INC-1").first
        await expect(card).to_contain_text("P99 of translate-api is 600 ms")
        await card.hover()
        await card.locator('[title="Reply in thread"]').click()
        thread = page.locator("#thread")
        await expect(thread).to_contain_text("Hypotheses")
        await page.screenshot(path=kept / "thread.png")

        await press(page, "Next step")
        await expect(thread).to_contain_text("Before the next step")
        await page.locator("#thread textarea").fill("@rca step pass a drill, nobody is hurt")
        await page.locator("#thread textarea").press("Enter")
        await expect(thread).to_contain_text("2/6")
        await page.locator("#thread textarea").fill("@rca note copies take 40 ms each")
        await page.locator("#thread textarea").press("Enter")
        await page.locator("#thread textarea").fill("@rca export md html")
        await page.locator("#thread textarea").press("Enter")
        link = thread.locator(".file", has_text="INC-1.html").get_by_text("Download")
        await expect(link).to_be_visible()
        async with page.expect_download() as download:
            await link.click()
        report = kept / "INC-1.html"
        await (await download.value).save_as(report)
        assert "copies take 40 ms each" in report.read_text(encoding="utf-8")

        shown = await browser.new_page(viewport={"width": 1100, "height": 1400})
        await shown.goto(report.as_uri())
        await expect(shown.locator("h1")).to_contain_text("INC-1")
        await shown.screenshot(path=kept / "report.png")
        await browser.close()
    assert faults == []

    async def recorded():
        timeline = (await deployment.report("INC-1")).json()["timeline"]
        kinds = {entry["kind"] for entry in timeline}
        return {"gate", "report"} <= kinds and any(
            entry["kind"] == "evidence" and entry["text"] == "copies take 40 ms each"
            for entry in timeline
        )

    await until(recorded, "what was done in the page is in the timeline")
