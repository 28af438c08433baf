"""Who and what there is: auth, users, groups, bots, the team, and the form check of Block Kit."""

from __future__ import annotations

from typing import Any

from bot.blockkit.validate import Fault, validate_message, validate_view
from bot.workspace import seed, shapes
from bot.workspace.call import ApiError, Call
from bot.workspace.paging import page
from bot.workspace.records import Json, UserGroup
from bot.workspace.services import Services


async def auth_test(services: Services, _: Call) -> Json:
    """Who the token belongs to."""
    workspace = services.workspace
    return {
        "url": f"{workspace.base_url}/",
        "team": seed.TEAM_NAME,
        "team_id": workspace.team_id,
        "user": workspace.app.name,
        "user_id": workspace.app_user,
        "bot_id": workspace.app.bot_id,
        "is_enterprise_install": False,
    }


async def api_test(_: Services, __: Call) -> Json:
    """Whether the API answers."""
    return {}


async def connections_open(services: Services, _: Call) -> Json:
    """The address of one Socket Mode connection."""
    address = services.workspace.base_url.replace("http", "ws", 1)
    ticket = services.tickets.socket()
    return {"url": f"{address}/link/?ticket={ticket}&app_id={services.workspace.app.id}"}


async def users_info(services: Services, call: Call) -> Json:
    """One user."""
    user = services.workspace.users.get(call.required("user"))
    if user is None:
        raise ApiError("user_not_found")
    with_locale = call.flag("include_locale")
    return {"user": shapes.user(services.workspace, user, with_locale=with_locale)}


async def users_list(services: Services, call: Call) -> Json:
    """Every user."""
    users = list(services.workspace.users.values())
    limit = call.number("limit", 0) or len(users)
    shown, metadata = page(users, cursor=call.text("cursor"), limit=limit)
    with_locale = call.flag("include_locale")
    return {
        "members": [
            shapes.user(services.workspace, user, with_locale=with_locale) for user in shown
        ],
        "cache_ts": int(services.workspace.clock.now()),
        "response_metadata": metadata,
    }


async def users_lookup_by_email(services: Services, call: Call) -> Json:
    """The user with an e-mail address."""
    email = call.required("email")
    for user in services.workspace.users.values():
        if user.email == email:
            return {"user": shapes.user(services.workspace, user)}
    raise ApiError("users_not_found")


async def usergroups_list(services: Services, call: Call) -> Json:
    """Every user group."""
    with_users, with_count = call.flag("include_users"), call.flag("include_count")
    return {
        "usergroups": [
            _group(services, group, with_users=with_users, with_count=with_count)
            for group in services.workspace.groups.values()
        ]
    }


async def usergroups_users_list(services: Services, call: Call) -> Json:
    """Who is in a user group."""
    group = services.workspace.groups.get(call.required("usergroup"))
    if group is None:
        raise ApiError("no_such_subteam")
    return {"users": list(group.users)}


async def bots_info(services: Services, call: Call) -> Json:
    """One bot; our own where none is named."""
    workspace = services.workspace
    app = workspace.apps.get(call.text("bot") or workspace.app.bot_id)
    if app is None:
        raise ApiError("bot_not_found")
    body: Json = {
        "id": app.bot_id,
        "app_id": app.id,
        "name": app.name,
        "deleted": False,
        "updated": 1_700_000_000,
        "icons": {"image_36": "", "image_48": "", "image_72": ""},
    }
    if app.user_id:
        body["user_id"] = app.user_id
    return {"bot": body}


async def team_info(services: Services, _: Call) -> Json:
    """The team."""
    return {
        "team": {
            "id": services.workspace.team_id,
            "name": seed.TEAM_NAME,
            "domain": seed.TEAM_DOMAIN,
            "url": f"{services.workspace.base_url}/",
            "email_domain": "example.com",
            "icon": {"image_default": True},
        }
    }


async def blocks_validate(_: Services, call: Call) -> Json:
    """Whether blocks, a view or a message would be taken; the faults come with their pointers."""
    given = [name for name in ("blocks", "view", "message") if call.has(name)]
    if len(given) != 1:
        raise ApiError(
            "invalid_arguments",
            messages=["[ERROR] give exactly one of blocks, view, message"],
        )
    name = given[0]
    faults = _faults(name, call.json(name))
    if faults:
        raise ApiError(
            f"invalid_{name}",
            messages=[f"[ERROR] {f.message} [json-pointer:{f.pointer}]" for f in faults],
        )
    return {}


def _faults(name: str, value: Any) -> list[Fault]:
    match name:
        case "blocks" if isinstance(value, list):
            return validate_message(value, "x")
        case "view" if isinstance(value, dict):
            return validate_view(value)
        case "message" if isinstance(value, dict):
            return validate_message(
                value.get("blocks"), value.get("text"), attachments=value.get("attachments")
            )
        case _:
            return [Fault("", f"{name} is not of the right type")]


def _group(services: Services, group: UserGroup, *, with_users: bool, with_count: bool) -> Json:
    body: Json = {
        "id": group.id,
        "team_id": services.workspace.team_id,
        "is_usergroup": True,
        "is_subteam": True,
        "name": group.name,
        "handle": group.handle,
        "description": "",
        "is_external": False,
        "date_create": 1_700_000_000,
        "date_update": 1_700_000_000,
        "date_delete": 0,
        "created_by": "U0LEAD",
        "updated_by": "U0LEAD",
    }
    if with_users:
        body["users"] = list(group.users)
    if with_count:
        body["user_count"] = len(group.users)
    return body


HANDLERS = {
    "auth.test": auth_test,
    "api.test": api_test,
    "apps.connections.open": connections_open,
    "users.info": users_info,
    "users.list": users_list,
    "users.lookupByEmail": users_lookup_by_email,
    "usergroups.list": usergroups_list,
    "usergroups.users.list": usergroups_users_list,
    "bots.info": bots_info,
    "team.info": team_info,
    "blocks.validate": blocks_validate,
}
