"""`rca-bot workspace` as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import httpx

from bot.workspace.client import WorkspaceClient
from tests.waiting import PATIENCE_SECONDS


async def test_workspace_serves_says_where_and_ends_on_a_signal_with_a_page_open() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", "workspace", "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)).decode()
        url = line.split()[1].rstrip("/")
        async with httpx.AsyncClient() as http, WorkspaceClient(url) as client:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    try:
                        await http.get(url)
                        break
                    except httpx.ConnectError:
                        continue
            async with http.stream("GET", f"{url}/page/stream") as page:
                lines = page.aiter_lines()
                assert "hello" in await anext(lines)
                await client.person("U0SRE").say("C0INCIDENTS", "hi")
                await anext(lines)
                assert '"text": "hi"' in await anext(lines)
                process.send_signal(signal.SIGTERM)
                _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert errors.decode() == ""
    assert process.returncode in (0, -signal.SIGTERM)


async def test_tokens_come_from_the_environment_and_stand_in_no_process_list() -> None:
    secrets = {
        "SLACK_BOT_TOKEN": "xoxb-of-the-environment",
        "SLACK_SIGNING_SECRET": "signing-of-the-environment",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", "workspace", "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | secrets,
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)).decode()
        url = line.split()[1].rstrip("/")
        shown = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert not any(secret in shown for secret in secrets.values())
        async with httpx.AsyncClient(trust_env=False) as http:
            for token, is_known in (
                ("xoxb-of-the-environment", True),
                ("xoxb-local-rca-bot", False),
            ):
                headers = {"Authorization": f"Bearer {token}"}
                answer = await _until_up(http, f"{url}/api/auth.test", headers)
                assert answer["ok"] is is_known
    finally:
        process.terminate()
        await process.wait()


async def _until_up(
    http: httpx.AsyncClient, url: str, headers: dict[str, str]
) -> dict[str, object]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return dict((await http.post(url, headers=headers)).json())
            except httpx.ConnectError:
                await asyncio.sleep(0.05)


async def test_address_that_is_not_loopback_is_one_line_and_exit_one() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", "workspace", "--host", "0.0.0.0"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    assert process.returncode == 1
    assert errors.decode().count("\n") == 1
    assert "use 127.0.0.1" in errors.decode()
