"""Confluence: the report as one page that is updated in place, with its charts and its data attached."""

from __future__ import annotations

import httpx

from bot.domain.postmortem import Postmortem
from bot.errors import DeliveryError, Reason
from bot.exporter import Export, ExportOptions
from bot.exporters import render_report
from bot.locales import say
from bot.report.outline import outline
from bot.report.storage_format import write_storage
from bot.report.wording import safe_name
from bot.settings import Settings
from bot.target import Delivered, Means, Parcel, Target
from bot.target_settings import ConfluenceSettings
from bot.targets._confluence_api import Cloud, DataCenter, Dialect
from bot.targets._confluence_steps import Publishing
from bot.targets._fitting import fitted
from bot.targets._http import Door


def write(report: Postmortem, options: ExportOptions) -> Export:
    """The page's body as `<id>.storage.xml`, and the files to attach; the JSON always, the HTML where the page is cut."""
    page, is_whole = fitted(outline(report, options.locale), options.locale)
    body, files = write_storage(page)
    formats = ("json", "md") if is_whole else ("json", "md", "html")
    written = render_report(report, formats, options)
    # What lies beside the Markdown and is no drawing (patches, rule files) lies beside the page too.
    beside = written.pop("md")
    for name, content in beside.files.items():
        if name != beside.main:
            files.setdefault(name.rpartition("/")[2], content)
    for export in written.values():
        files[export.main] = export.content
    main = f"{safe_name(report.header.id)}.storage.xml"
    return Export(main=main, files={main: body.encode(), **files})


async def deliver(parcel: Parcel, means: Means) -> Delivered:
    """Makes or renews the page, then its files, then its labels; what is there already is not sent again."""
    settings = _settings(means.settings)
    if parcel.export is None:
        raise ValueError("Confluence takes a written report")
    publishing = Publishing(
        server=_server(settings, means.http),
        space=settings.space,
        key=parcel.key,
        title=parcel.title,
        progress=means.progress,
    )
    page = await publishing.page(parcel.export.content.decode())
    for name, content in sorted(parcel.export.files.items()):
        if name != parcel.export.main:
            await publishing.attach(page, name, content)
    await publishing.label(page)
    state = "written" if publishing.is_changed else "unchanged"
    if publishing.was_edited:
        state = "edited"
    return Delivered(
        text=say(f"delivery.confluence_{state}", title=page.title, version=page.version),
        url=page.url,
        is_changed=publishing.is_changed,
    )


async def check(settings: Settings, http: httpx.AsyncClient) -> str:
    """Asks for a title that no page has: the space must be there, and the token must be taken."""
    own = _settings(settings)
    await _server(own, http).titled("rca-bot check")
    return f"space {own.space} answers and takes our token"


def _settings(settings: Settings) -> ConfluenceSettings:
    if settings.confluence is None:
        raise DeliveryError(
            "Confluence: not set up: there is no [confluence] in RCA_CONFIG; add url and space",
            reason=Reason.UNSUPPORTED,
        )
    return settings.confluence


def _server(settings: ConfluenceSettings, http: httpx.AsyncClient) -> Dialect:
    token = settings.read_token()
    url = settings.url
    if settings.is_cloud and not url.endswith("/wiki"):
        url += "/wiki"
    auth, headers = None, {"Accept": "application/json"}
    if token is not None and settings.user is not None:
        auth = (settings.user, token)
    elif token is not None:
        headers["Authorization"] = f"Bearer {token}"
    door = Door(name="Confluence", url=url, http=http, headers=headers, auth=auth)
    kind = Cloud if settings.is_cloud else DataCenter
    return kind(door, settings.space, settings.parent)


confluence = Target(
    name="confluence",
    is_set_up=lambda settings: settings.confluence is not None,
    may_be_private=lambda settings: bool(settings.confluence and settings.confluence.private),
    write=write,
    deliver=deliver,
    check=check,
)
