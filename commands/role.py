"""`/rca role`: who leads, writes, reviews."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.domain.responder import Role
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice

USAGE = "role lead|scribe|reviewer @USER"
_WORDS = {"负责人": "lead", "记录员": "scribe", "复核人": "reviewer", "审核人": "reviewer"}


@command(
    name="role",
    usage=USAGE,
    en="Give a role to a person.",
    zh="为人员分配角色。",
)
async def role(call: Call, services: Services) -> Reply:
    """Records who holds the role from now on; `me` is the caller."""
    word, rest = _line.read(call.text).head()
    word = _WORDS.get(word, word)
    if word not in set(Role) and (turned := _WORDS.get(rest, rest.lower())) in set(Role):
        # `@USER lead` says the same.
        word, rest = turned, _line.first(_line.read(call.text).text)[0]
    if word not in set(Role) or not rest:
        raise _line.wrong(USAGE)
    user = call.user if rest.lower() in ("me", "我") else _line.user(rest, USAGE)
    await services.responding.set_role(_line.incident_id(call), Role(word), user, _line.via(call))
    services.wake()
    return notice(say("commands.role_given", role=say(f"slack.role_{word}")))
