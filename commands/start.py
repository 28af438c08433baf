"""`/rca start`: opens an incident."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.domain.instant import to_rfc3339
from bot.domain.responder import Severity
from bot.domain.timeline import Draft, EntryKind
from bot.incidents.opening import Opening
from bot.jobs.services import Services
from bot.locales import say
from bot.store import index
from commands import _line
from commands._reply import notice

USAGE = "start [sev1..sev4] [title…] [service=NAME] [since=TIME]"
MOST_TITLE = 200


@command(
    name="start",
    usage=USAGE,
    en="Open an incident here; in a thread by mention, on that thread.",
    zh="在此开启事件；在消息串中 @ 机器人即在该消息串上开启。",
    needs_incident=False,
)
async def start(call: Call, services: Services) -> Reply:
    """Opens at most one incident per call; a thread that has one keeps it."""
    if call.thread_ts is not None:
        key = index.thread_key(call.channel, call.thread_ts)
        known = await index.incident_of(services.store, key)
        if known is not None:
            return notice(say("commands.already_open", incident=known))
    line = _line.read(call.text, short=("service", "since"))
    severity, rest = _line.severity(line.text)
    title = _line.shortened(_line.said(rest), MOST_TITLE)
    since = line.options.get("since")
    began = _line.moment(since, call.at, services.settings.zone, USAGE) if since else None
    service = line.options.get("service") or _named_in(title, services)
    drafts: tuple[Draft, ...] = ()
    if title:
        drafts = (
            Draft(
                kind=EntryKind.SYMPTOM,
                at=call.at,
                text=_line.verbatim(title),
                author=call.user,
                source=call.source,
                permalink=call.permalink,
                data={
                    "id": "S-1",
                    "metric": None,
                    "scope": None,
                    "since": to_rfc3339(began) if began else None,
                },
            ),
        )
    opening = Opening(
        title=title or say("commands.untitled").in_locale(call.locale),
        channel=call.channel,
        severity=severity or Severity.SEV3,
        locale=call.locale,
        by=call.user,
        source=call.source,
        services=(service,) if service else (),
        thread_ts=call.thread_ts,
        drafts=drafts,
    )
    taken = await services.openings.open(opening, once=call.key)
    services.wake()
    return notice(say("commands.opened", incident=taken.incident_id))


def _named_in(title: str, services: Services) -> str | None:
    """The service whose name stands in the title, the longest where several do; the only one where there is one."""
    known = services.inventory.services
    found = sorted((name for name in known if name in title), key=len, reverse=True)
    if found:
        return found[0]
    return next(iter(known)) if len(known) == 1 else None
