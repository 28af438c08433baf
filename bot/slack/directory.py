"""Who the bot and the people are: asked once, kept for a day, never waited for before an acknowledgement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from bot.domain.text import Locale
from bot.errors import DeliveryError, StoreError
from bot.slack.web import QUICK_SECONDS, Web
from bot.store import surface
from bot.store.transaction import Store

log = structlog.get_logger(__name__)

MOST_LOOKUPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The bot in the workspace. `url` is the base of permalinks and ends with a slash."""

    user: str = ""
    bot: str = ""
    team: str = ""
    url: str = ""

    @property
    def is_known(self) -> bool:
        """Whether Slack has said who the bot is."""
        return bool(self.user)

    def permalink(self, channel: str, ts: str, thread_ts: str | None) -> str | None:
        """The address of a message, made here: asking for each would use up the quota."""
        if not self.url:
            return None
        link = f"{self.url}archives/{channel}/p{ts.replace('.', '')}"
        if thread_ts and thread_ts != ts:
            link += f"?thread_ts={thread_ts}&cid={channel}"
        return link


class Directory:
    """Names by id, and the bot's own identity; both survive a restart while Slack is away."""

    def __init__(self, web: Web, store: Store) -> None:
        self._web = web
        self._store = store
        self._identity = Identity()
        self._is_fresh = False

    @property
    def known(self) -> Identity:
        """What is known now, without asking anybody."""
        return self._identity

    @property
    def is_fresh(self) -> bool:
        """Whether Slack itself has said it since the start."""
        return self._is_fresh

    async def warm(self) -> Identity:
        """Asks Slack who the bot is; where Slack does not answer, what it said last."""
        if self._is_fresh:
            return self._identity
        try:
            answer = await self._web.call("auth.test", timeout_seconds=QUICK_SECONDS)
        except DeliveryError as error:
            log.warning("slack.auth", reason=error.reason.value, error=str(error))
            held = await surface.identity(self._store)
            if held is not None:
                self._identity = _read(dict(held))
            return self._identity
        self._is_fresh = True
        self._identity = _read(answer)
        step = surface.remember_identity(
            {
                "user_id": self._identity.user,
                "bot_id": self._identity.bot,
                "team_id": self._identity.team,
                "url": self._identity.url,
            }
        )
        try:
            await self._store.commit(step, doing="keep the bot's identity")
        except StoreError as error:
            log.warning("slack.identity_not_kept", error=str(error))
        return self._identity

    async def names(self, users: Iterable[str]) -> dict[str, str]:
        """A name for every id that Slack knows; the others are missing. A few are asked for, the rest is left.

        Raises:
            StoreError: Redis is not reachable.
        """
        wanted = [item for item in dict.fromkeys(users) if item[:1] in ("U", "W", "B")]
        found = await surface.people(self._store, wanted)
        # A bot's id is no user's: its name comes with its messages, and asking for it would be in vain.
        unknown = [item for item in wanted if item not in found and item[:1] != "B"]
        for user in unknown[:MOST_LOOKUPS]:
            if name := await self._look_up(user):
                found[user] = name
        return found

    async def locale(self, user: str, default: Locale) -> Locale:
        """The language that a person uses Slack in; `default` where the bot does not speak it or Slack does not say.

        Raises:
            StoreError: Redis is not reachable.
        """
        if user[:1] not in ("U", "W"):
            return default
        if await surface.language(self._store, user) is None:
            await self._look_up(user)
        return await remembered_locale(self._store, user, default)

    async def _look_up(self, user: str) -> str:
        """Asks Slack for a person's name and language and keeps both; the name is empty where it does not say."""
        try:
            answer = await self._web.call(
                "users.info", timeout_seconds=QUICK_SECONDS, user=user, include_locale=True
            )
        except DeliveryError as error:
            log.info("slack.name", user=user, reason=error.reason.value)
            return ""
        person = answer.get("user") or {}
        profile = person.get("profile") or {}
        name = str(
            profile.get("display_name") or person.get("real_name") or person.get("name") or ""
        )
        step = surface.remember_language(user, str(person.get("locale") or ""))
        if name:
            step.extend(surface.remember_person(user, name))
        await self._store.commit(step, doing="keep a name")
        return name


async def remembered_locale(store: Store, user: str, default: Locale) -> Locale:
    """A person's language as far as it is known here, without asking Slack.

    Raises:
        StoreError: Redis is not reachable.
    """
    tag = (await surface.language(store, user) or "").lower()
    # Slack's tags are those of its own translations: `en-US`, `en-GB`, `zh-CN`, `zh-TW`.
    for prefix, locale in (("zh", Locale.ZH_CN), ("en", Locale.EN)):
        if tag == prefix or tag.startswith(f"{prefix}-"):
            return locale
    return default


def _read(answer: dict[str, object]) -> Identity:
    return Identity(
        user=str(answer.get("user_id") or ""),
        bot=str(answer.get("bot_id") or ""),
        team=str(answer.get("team_id") or ""),
        url=str(answer.get("url") or ""),
    )
