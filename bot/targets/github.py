"""GitHub issues: one for each action item, opened once, kept in step, closed when the item is done or dropped.

Source: GitHub REST API description, version 2022-11-28 (github/rest-api-description, api.github.com.2022-11-28.json,
read 2026-11): issues/create, issues/update, issues/list-for-repo.
"""

from __future__ import annotations

from typing import Any

import httpx

from bot.checkpoint import reached
from bot.domain.action_item import ActionItem, ActionStatus
from bot.errors import DeliveryError, Reason
from bot.locales import say
from bot.settings import Settings
from bot.target import Delivered, Means, Parcel, Target
from bot.target_settings import GithubSettings
from bot.targets._github_issues import Known, content_of, known_issues, number_of, state_of
from bot.targets._http import Door

GONE = frozenset({410})
"""An issue that a person deleted answers so; it is not opened again."""


async def deliver(parcel: Parcel, means: Means) -> Delivered:
    """Opens what is missing, renews what differs; each issue is remembered as soon as it is there."""
    settings = _settings(means.settings)
    door = _door(settings, means.http)
    known = await known_issues(door, settings, parcel, means)
    created = updated = 0
    links: dict[int, str] = {}
    for item in parcel.action_items:
        number = await means.progress.get(f"issue:{item.n}") or known.number(item.n)
        if number is None:
            if item.text is None or item.status is not ActionStatus.OPEN:
                continue  # nothing is left to do about it, so nobody needs an issue
            await _open(door, settings, parcel, means, item)
            created += 1
        else:
            updated += await _renew(door, settings, parcel, means, item, number, known)
        if url := await means.progress.get(f"url:{item.n}"):
            links[item.n] = url
    key = "written" if created or updated else "unchanged" if links else "nothing"
    text = say(
        f"delivery.github_{key}", repository=settings.repository, created=created, updated=updated
    )
    web = next(iter(links.values()), None)
    return Delivered(text=text, url=web, is_changed=bool(created or updated), links=links)


async def _open(
    door: Door, settings: GithubSettings, parcel: Parcel, means: Means, item: ActionItem
) -> None:
    # Before the request: if its answer is lost, the issue is looked for.
    await means.progress.put(f"opening:{item.n}", means.clock().isoformat())
    content = content_of(parcel, item)
    answer = await door.send(
        "POST",
        f"/repos/{settings.repository}/issues",
        json={"title": content.title, "body": content.body, "labels": [settings.label]},
    )
    number, url = number_of(door, door.value(answer))
    reached("delivery.sent")
    await _remember(means, item, number, url)
    await means.progress.put(f"content:{item.n}", content.digest)
    await means.progress.put(f"state:{item.n}", "open")


async def _renew(
    door: Door,
    settings: GithubSettings,
    parcel: Parcel,
    means: Means,
    item: ActionItem,
    number: str,
    known: Known,
) -> int:
    """1 when the issue was changed, 0 when it says all that already."""
    if await means.progress.get(f"gone:{item.n}"):
        return 0
    if url := known.url(item.n):
        await _remember(means, item, number, url)
    content, state = content_of(parcel, item), state_of(item)
    change: dict[str, Any] = {}
    if await means.progress.get(f"content:{item.n}") != content.digest:
        change |= {"title": content.title, "body": content.body}
    # A state that a person set over there stays, until it changes here.
    if (await means.progress.get(f"state:{item.n}") or "open") != state.value:
        change |= {"state": state.state, "state_reason": state.reason}
    if not change:
        return 0
    path = f"/repos/{settings.repository}/issues/{number}"
    answer = await door.send("PATCH", path, json=change, takes=GONE)
    if answer.status_code in GONE:
        await means.progress.put(f"gone:{item.n}", "1")
        return 0
    await _remember(means, item, *number_of(door, door.value(answer)))
    await means.progress.put(f"content:{item.n}", content.digest)
    await means.progress.put(f"state:{item.n}", state.value)
    return 1


async def _remember(means: Means, item: ActionItem, number: str, url: str) -> None:
    await means.progress.put(f"url:{item.n}", url)
    await means.progress.put(f"issue:{item.n}", number)


def _settings(settings: Settings) -> GithubSettings:
    if settings.github is None:
        raise DeliveryError(
            "GitHub: not set up: there is no [github] in RCA_CONFIG; add repository",
            reason=Reason.UNSUPPORTED,
        )
    return settings.github


def _door(settings: GithubSettings, http: httpx.AsyncClient) -> Door:
    headers = {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "rca-bot",
    }
    if token := settings.read_token():
        headers["Authorization"] = f"Bearer {token}"
    return Door(name="GitHub", url=settings.api, http=http, headers=headers)


async def check(settings: Settings, http: httpx.AsyncClient) -> str:
    """Reads one issue of the repository: it must be there and seen; whether issues may be opened shows only then."""
    own = _settings(settings)
    path = f"/repos/{own.repository}/issues"
    await _door(own, http).send("GET", path, params={"per_page": "1"})
    return f"the issues of {own.repository} can be read"


github = Target(
    name="github",
    is_set_up=lambda settings: settings.github is not None,
    may_be_private=lambda settings: bool(settings.github and settings.github.private),
    write=None,
    deliver=deliver,
    check=check,
)
