"""A bot that is killed the moment a wiki has made the page: after its restart there is one page, and one word of it."""

import asyncio

from bot.workspace.client import WorkspaceClient
from tests.scenarios.rig import CHANNEL, Deployment
from tests.scenarios.test_crash import Story, keep_alive, notification
from tests.targets.servers import TOKEN, CloudServer
from tests.waiting import until


async def test_bot_killed_after_the_page_was_made_makes_no_second_one(tmp_path):
    wiki = CloudServer()
    config = tmp_path / "rca.toml"
    config.write_text(f'[confluence]\nurl = "{wiki.url}"\nspace = "OPS"\nkind = "cloud"\n')
    rig = Deployment(tmp_path, RCA_CONFIG=str(config), RCA_CONFLUENCE_TOKEN=TOKEN)
    died: list[int] = []
    keeper: asyncio.Task[None] | None = None
    try:
        await rig.start_redis()
        await rig.start_workspace()
        process = await rig.start_bot("delivery.sent")
        keeper = asyncio.create_task(keep_alive(rig, process, died))
        async with WorkspaceClient(rig.workspace_url) as workspace:
            story = Story(rig, workspace)
            await story._send_alert(notification())
            card = await story._until_seen(lambda m: "INC-1" in m.all_text and not m.is_reply)
            await story.lead.say(CHANNEL, "@rca export confluence", thread_ts=card.ts)
            await until(lambda: died, "the bot was killed")
            link = await story._until_seen(lambda m: m.is_reply and "/pages/" in m.all_text)
        (page,) = wiki.pages.values()
        assert page.id in link.all_text
        assert "INC-1.json" in page.files
        assert page.labels >= {"rca-bot"}
        assert wiki.misshapen == []
        assert died == [-9]
    finally:
        if keeper is not None:
            keeper.cancel()
        await rig.close()
        wiki.close()
