"""Who and what a fresh workspace holds. Ids are fixed, so that settings and tests can name them."""

from __future__ import annotations

from bot.workspace.records import App, Channel, ChannelKind, User, UserGroup

TEAM_ID = "T0LOCAL"
TEAM_NAME = "Local workspace"
TEAM_DOMAIN = "local"

OWN_APP = App(id="A0RCABOT", bot_id="B0RCABOT", name="rca", user_id="U0RCABOT", emoji=":mag:")

INCIDENTS = "C0INCIDENTS"
ALERTS = "C0ALERTS"
DRILLS = "C0DRILL"
GENERAL = "C0GENERAL"
LEADS = "G0LEADS"


def people() -> list[User]:
    """The people to act as, and the app's own user."""
    return [
        User(
            id="U0LEAD",
            name="lin.mei",
            real_name="林梅 Lin Mei",
            title="Incident lead",
            email="lin.mei@example.com",
            locale="zh-CN",
            is_admin=True,
        ),
        User(
            id="U0SRE",
            name="alex.park",
            real_name="Alex Park",
            title="SRE on call",
            email="alex.park@example.com",
            timezone="Europe/London",
            timezone_offset_seconds=0,
        ),
        User(
            id="U0DEV",
            name="chen.siyuan",
            real_name="陈思远 Chen Siyuan",
            title="Inference engineer",
            email="chen.siyuan@example.com",
            locale="zh-CN",
        ),
        User(
            id="U0REVIEW",
            name="priya.n",
            real_name="Priya Nair",
            title="Reviewer",
            email="priya.n@example.com",
            timezone="Asia/Kolkata",
            timezone_offset_seconds=19_800,
        ),
        User(
            id="U0RCABOT",
            name="rca",
            real_name="rca",
            title="Incident bot",
            bot_id=OWN_APP.bot_id,
            app_id=OWN_APP.id,
        ),
        User(id="USLACKBOT", name="slackbot", real_name="Slackbot"),
    ]


def other_apps() -> list[App]:
    """Apps that post alerts by incoming webhook, as Alertmanager and its kin do."""
    return [
        App(id="A0ALERTMGR", bot_id="B0ALERTMGR", name="Alertmanager", emoji=":rotating_light:"),
        App(id="A0GRAFANA", bot_id="B0GRAFANA", name="Grafana", emoji=":bar_chart:"),
        App(id="A0PAGER", bot_id="B0PAGER", name="PagerDuty", emoji=":pager:"),
    ]


def channels(created: int) -> list[Channel]:
    """The channels; the app is in all of them but #general and the private one."""
    humans = {"U0LEAD", "U0SRE", "U0DEV", "U0REVIEW"}
    with_app = humans | {"U0RCABOT"}
    return [
        Channel(
            id=INCIDENTS,
            name="incidents",
            members=set(with_app),
            topic="One anchor per incident; everything else in its thread",
            created=created,
            creator="U0LEAD",
        ),
        Channel(
            id=ALERTS,
            name="alerts",
            members=set(with_app),
            topic="Alerts of other apps",
            created=created,
            creator="U0LEAD",
        ),
        Channel(
            id=DRILLS,
            name="drills",
            members=set(with_app),
            topic="Training",
            created=created,
            creator="U0LEAD",
        ),
        Channel(
            id=GENERAL,
            name="general",
            members=set(humans),
            topic="Company-wide",
            created=created,
            creator="U0LEAD",
        ),
        Channel(
            id=LEADS,
            name="leads",
            kind=ChannelKind.PRIVATE,
            members={"U0LEAD", "U0REVIEW"},
            created=created,
            creator="U0LEAD",
        ),
    ]


def groups() -> list[UserGroup]:
    """The on-call group."""
    return [UserGroup(id="S0ONCALL", handle="on-call", name="On call", users=["U0SRE", "U0LEAD"])]
