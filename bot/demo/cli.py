"""`rca-bot demo`: an incident on this machine, to work through on a page or to watch being played."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bot.demo.console import create_app, serve_console
from bot.demo.evening import wait_for_symptom
from bot.demo.faults import Fault
from bot.demo.monitoring import P99_QUERY
from bot.demo.packages import require_packages
from bot.demo.programs import CHANNEL
from bot.demo.scenario import Playthrough
from bot.demo.stack import DEFAULT_PAGE_PORT, DemoStack
from bot.domain.text import Locale
from bot.errors import BotError, Reason
from bot.workspace.client import WorkspaceClient

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    headless: Annotated[
        bool, typer.Option("--headless", help="Play the incident to its end and print the reports.")
    ] = False,
    fault: Annotated[
        Fault, typer.Option(help="What is wrong: pinned, cpu, or none.")
    ] = Fault.PINNED,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes any.")
    ] = DEFAULT_PAGE_PORT,
    data_dir: Annotated[Path, typer.Option(help="Where the runs are kept.")] = Path(".rca/demo"),
    locale: Annotated[
        Locale, typer.Option(envvar="RCA_LOCALE", help="Language of the incident.")
    ] = Locale.EN,
) -> None:
    """Starts everything that an incident needs on this machine, and an incident with it."""
    require_packages()
    root = data_dir / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        asyncio.run(_run(root, headless=headless, fault=fault, port=port, locale=locale))
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None


async def _run(root: Path, *, headless: bool, fault: Fault, port: int, locale: Locale) -> None:
    started = time.monotonic()
    screen = Console(highlight=False, soft_wrap=True)

    def say(text: str) -> None:
        screen.print(f"[dim]{time.monotonic() - started:5.0f} s[/]  {text}")

    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    say(f"this run is kept in {root}")
    async with DemoStack(root, fault=fault, page_port=port, locale=locale, say=say) as stack:
        if headless:
            for path in await Playthrough(stack, say).play():
                screen.print(str(path))
        else:
            await _leave_open(stack, screen, say)


async def _leave_open(stack: DemoStack, screen: Console, say: Callable[[str], None]) -> None:
    """Leaves a live incident to a person until Ctrl-C."""
    actions = create_app(stack.apply, lambda: stack.query(P99_QUERY))
    async with serve_console(actions, stack.ports.console) as console_url:
        async with WorkspaceClient(stack.page_url) as workspace:
            await workspace.person("U0DEV").say(
                CHANNEL, f"Rollouts and jobs of translate-api are switched here: {console_url}"
            )
        screen.print(f"\n  page      [bold]{stack.page_url}/[/]\n  console   {console_url}\n")
        say("afternoon: recording what is usual")
        await wait_for_symptom(stack, say)
        screen.print(
            f"\n  The evening has begun; work through it on {stack.page_url}/ (Ctrl-C ends the demo)\n"
        )
        ended = await stack.wait_for_an_end()
        raise BotError(
            f"{ended.name} ended while the demo ran; see {ended.log}", reason=Reason.REFUSED
        )
