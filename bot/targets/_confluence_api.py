"""The two REST dialects of Confluence: the same few things to do with pages, said in two ways.

Source: Cloud: Atlassian's OpenAPI document "The Confluence Cloud REST API v2" 2.0.0 (openapi-v2.v3.json, as of
2025-02), and for what v2 cannot do (attach a file, label, search) the v1 resources that Cloud keeps under
`/wiki/rest/api/content`. Data Center: "Confluence Data Center REST API" (developer.atlassian.com, v9 and v10, read
2026-11): `/rest/api/content` and below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bot.errors import DeliveryError, Reason
from bot.report.wording import web_address
from bot.targets._http import Door, File

_NO_XSRF = {"X-Atlassian-Token": "nocheck"}
_EXPANDED = "body.storage,version"
MISSING = frozenset({404})
OUTDATED = frozenset({409})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfluencePage:
    """A page as it stands there. `body` is in storage format; `url` is what people open."""

    id: str
    title: str
    version: int
    body: str
    url: str


class Dialect(Protocol):
    """What the target needs of a server; every call raises DeliveryError."""

    door: Door

    async def page(self, page_id: str) -> ConfluencePage | None:
        """The page of this id, None when there is none (a deleted one is none)."""
        ...

    async def titled(self, title: str) -> ConfluencePage | None:
        """The page of this title in the space; a title is unique there."""
        ...

    async def create(self, title: str, body: str) -> ConfluencePage:
        """A new page below the parent."""
        ...

    async def update(self, page: ConfluencePage, title: str, body: str) -> ConfluencePage | None:
        """A new version of a page; None when somebody else made that version first."""
        ...

    async def attach(self, page_id: str, file: File) -> None:
        """A file of the page, or a new version of the one of this name."""
        ...


async def label(door: Door, page_id: str, names: tuple[str, ...]) -> None:
    """Adds labels; those that are there already stay. The same resource in both dialects."""
    body = [{"prefix": "global", "name": name} for name in names]
    await door.send("POST", f"/rest/api/content/{page_id}/label", json=body)


async def labelled(door: Door, space: str, name: str) -> str | None:
    """Id of a page of the space that has this label. The index behind it lags some seconds, so it is asked last."""
    query = f'type = page and space = "{space}" and label = "{name}"'
    answer = await door.send("GET", "/rest/api/content/search", params={"cql": query, "limit": "1"})
    results = _list(door, door.value(answer))
    return _text(door, results[0], "id") if results else None


class Cloud:
    """Confluence Cloud: pages by v2, files by v1."""

    def __init__(self, door: Door, space: str, parent: str | None) -> None:
        self.door = door
        self._space = space
        self._parent = parent
        self._space_id: str | None = None

    async def space_id(self) -> str:
        """The number of the space, which v2 wants in place of its key."""
        if self._space_id is None:
            answer = await self.door.send("GET", "/api/v2/spaces", params={"keys": self._space})
            found = _list(self.door, self.door.value(answer))
            if not found:
                raise _no_space(self.door, self._space)
            self._space_id = _text(self.door, found[0], "id")
        return self._space_id

    async def page(self, page_id: str) -> ConfluencePage | None:
        answer = await self.door.send(
            "GET", f"/api/v2/pages/{page_id}", params={"body-format": "storage"}, takes=MISSING
        )
        return None if answer.status_code in MISSING else self._read(self.door.value(answer))

    async def titled(self, title: str) -> ConfluencePage | None:
        params = {
            "space-id": await self.space_id(),
            "title": title,
            "status": "current",
            "body-format": "storage",
        }
        answer = await self.door.send("GET", "/api/v2/pages", params=params)
        found = _list(self.door, self.door.value(answer))
        return self._read(found[0]) if found else None

    async def create(self, title: str, body: str) -> ConfluencePage:
        content: dict[str, object] = {
            "spaceId": await self.space_id(),
            "status": "current",
            "title": title,
            "body": {"representation": "storage", "value": body},
        }
        if self._parent is not None:
            content["parentId"] = self._parent
        answer = await self.door.send("POST", "/api/v2/pages", json=content)
        return self._made(answer, body)

    async def update(self, page: ConfluencePage, title: str, body: str) -> ConfluencePage | None:
        content = {
            "id": page.id,
            "status": "current",
            "title": title,
            "body": {"representation": "storage", "value": body},
            "version": {"number": page.version + 1, "message": "rca-bot"},
        }
        answer = await self.door.send(
            "PUT", f"/api/v2/pages/{page.id}", json=content, takes=OUTDATED
        )
        return None if answer.status_code in OUTDATED else self._made(answer, body)

    async def attach(self, page_id: str, file: File) -> None:
        await self.door.send(
            "PUT",
            f"/rest/api/content/{page_id}/child/attachment",
            file=file,
            fields={"minorEdit": "true"},
            headers=_NO_XSRF,
        )

    def _made(self, answer: Any, body: str) -> ConfluencePage:
        """What was written, as the server answers it; the answer need not repeat the body."""
        value = self.door.value(answer)
        if isinstance(value, Mapping):
            value = {**value, "body": {"storage": {"value": body}}}
        made = self._read(value)
        if made is None:
            raise self.door.misshapen()
        return made

    def _read(self, value: Any) -> ConfluencePage | None:
        if isinstance(value, Mapping) and value.get("status", "current") != "current":
            return None
        page = _page(self.door, value)
        # Behind api.atlassian.com the site's own address is another one; only the answer has it.
        links = value.get("_links") or {}
        site = web_address(links.get("base"))
        return replace(page, url=site + links["webui"]) if site and "webui" in links else page


class DataCenter:
    """Confluence Data Center: everything by `/rest/api/content`."""

    def __init__(self, door: Door, space: str, parent: str | None) -> None:
        self.door = door
        self._space = space
        self._parent = parent

    async def page(self, page_id: str) -> ConfluencePage | None:
        answer = await self.door.send(
            "GET", f"/rest/api/content/{page_id}", params={"expand": _EXPANDED}, takes=MISSING
        )
        if answer.status_code in MISSING:
            return None
        value = self.door.value(answer)
        if isinstance(value, Mapping) and value.get("status", "current") != "current":
            return None
        return _page(self.door, value)

    async def titled(self, title: str) -> ConfluencePage | None:
        params = {"type": "page", "spaceKey": self._space, "title": title, "expand": _EXPANDED}
        answer = await self.door.send("GET", "/rest/api/content", params=params, takes=MISSING)
        if answer.status_code in MISSING:
            raise _no_space(self.door, self._space)
        found = _list(self.door, self.door.value(answer))
        return _page(self.door, found[0]) if found else None

    async def create(self, title: str, body: str) -> ConfluencePage:
        content: dict[str, object] = {
            "type": "page",
            "title": title,
            "space": {"key": self._space},
            "body": {"storage": {"value": body, "representation": "storage"}},
        }
        if self._parent is not None:
            content["ancestors"] = [{"id": self._parent}]
        answer = await self.door.send(
            "POST", "/rest/api/content", json=content, params={"expand": _EXPANDED}
        )
        return _page(self.door, self.door.value(answer))

    async def update(self, page: ConfluencePage, title: str, body: str) -> ConfluencePage | None:
        content = {
            "id": page.id,
            "type": "page",
            "title": title,
            "version": {"number": page.version + 1, "message": "rca-bot"},
            "body": {"storage": {"value": body, "representation": "storage"}},
        }
        answer = await self.door.send(
            "PUT",
            f"/rest/api/content/{page.id}",
            json=content,
            params={"expand": _EXPANDED},
            takes=OUTDATED,
        )
        if answer.status_code in OUTDATED:
            return None
        return _page(self.door, self.door.value(answer))

    async def attach(self, page_id: str, file: File) -> None:
        path = f"/rest/api/content/{page_id}/child/attachment"
        answer = await self.door.send("GET", path, params={"filename": file[0]})
        found = _list(self.door, self.door.value(answer))
        if found:
            path += f"/{_text(self.door, found[0], 'id')}/data"
        fields = {"minorEdit": "true"}
        await self.door.send("POST", path, file=file, fields=fields, headers=_NO_XSRF)


def _no_space(door: Door, space: str) -> DeliveryError:
    return DeliveryError(
        f"{door.where}: there is no space {space} that the token may see; correct [confluence] space",
        reason=Reason.NOT_FOUND,
    )


def _list(door: Door, value: Any) -> list[Any]:
    results = value.get("results") if isinstance(value, Mapping) else None
    if not isinstance(results, list):
        raise door.misshapen()
    return results


def _text(door: Door, value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(found, str | int) or not str(found).isalnum():
        raise door.misshapen()
    return str(found)


def _page(door: Door, value: Any) -> ConfluencePage:
    try:
        page_id = _text(door, value, "id")
        links = value.get("_links") or {}
        webui = str(links.get("webui") or f"/pages/viewpage.action?pageId={page_id}")
        return ConfluencePage(
            id=page_id,
            title=str(value["title"]),
            version=int(value["version"]["number"]),
            body=str(value["body"]["storage"]["value"]),
            url=door.url + webui if webui.startswith("/") else door.url,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise door.misshapen() from error
