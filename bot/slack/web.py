"""Calls the Web API, with a deadline, and turns its refusals into the bot's own errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError, Reason

CALL_SECONDS = 8.0
# Before a person's eyes: a trigger lives three seconds.
QUICK_SECONDS = 2.0
UPLOAD_SECONDS = 30.0

# All methods that the bot calls; the manifest asks for exactly their scopes.
METHODS = (
    "auth.test",
    "chat.postMessage",
    "chat.update",
    "chat.postEphemeral",
    "conversations.history",
    "conversations.info",
    "conversations.members",
    "conversations.open",
    "conversations.replies",
    "files.completeUploadExternal",
    "files.getUploadURLExternal",
    "files.info",
    "users.info",
    "views.open",
    "views.publish",
)

# Where Slack keeps files.
SLACK_HOSTS = (".slack.com", ".slack-files.com")

# Nothing changes by trying again.
PERMANENT = frozenset(
    {
        "channel_not_found",
        "not_in_channel",
        "is_archived",
        "restricted_action",
        "restricted_action_thread_only_channel",
        "restricted_action_read_only_channel",
        "messages_tab_disabled",
        "cannot_dm_bot",
        "user_not_found",
        "user_not_in_channel",
        "message_not_found",
        "cant_update_message",
        "edit_window_closed",
        "is_inactive",
        "cannot_reply_to_message",
        "file_not_found",
    }
)
# The content was refused: a plainer one may be taken.
CONTENT = frozenset(
    {
        "invalid_blocks",
        "invalid_blocks_format",
        "msg_blocks_too_long",
        "msg_too_long",
        "invalid_arguments",
        "invalid_attachments",
        "invalid_metadata_format",
        "metadata_too_large",
        "no_text",
        "too_many_attachments",
    }
)
_REASONS: Mapping[str, Reason] = {
    "ratelimited": Reason.RATE_LIMITED,
    "rate_limited": Reason.RATE_LIMITED,
    "message_limit_exceeded": Reason.RATE_LIMITED,
    "invalid_auth": Reason.UNAUTHORISED,
    "not_authed": Reason.UNAUTHORISED,
    "account_inactive": Reason.UNAUTHORISED,
    "token_revoked": Reason.UNAUTHORISED,
    "token_expired": Reason.UNAUTHORISED,
    "missing_scope": Reason.UNAUTHORISED,
}


class SlackRefusalError(DeliveryError):
    """Slack answered no; `code` is its word for why."""

    def __init__(
        self, method: str, code: str, *, reason: Reason, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(
            f"Slack {method}: {code}; see the method's page for what it asks",
            reason=reason,
            retry_after_seconds=retry_after_seconds,
        )
        self.code = code

    @property
    def is_permanent(self) -> bool:
        """Whether trying again is pointless."""
        return self.code in PERMANENT

    @property
    def is_about_content(self) -> bool:
        """Whether a plainer message may be taken."""
        return self.code in CONTENT


class Web:
    """The Web API of one workspace. Answers are Slack's own JSON: this package reads them, nobody else.

    last_error: why the last call got no answer; empty when it got one, were it a refusal.
    """

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._session: aiohttp.ClientSession | None = None
        self.was_called = False
        self.last_error = ""

    async def start(self) -> None:
        """Opens the connection pool; without it each call opens a connection of its own."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=UPLOAD_SECONDS))
        self._client.session = self._session

    async def close(self) -> None:
        """Gives the connections back."""
        self._client.session = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self, method: str, *, timeout_seconds: float = CALL_SECONDS, **arguments: Any
    ) -> dict[str, Any]:
        """One call of a method in `METHODS`.

        Raises:
            SlackRefusalError: Slack said no.
            DeliveryError: no answer in time, or no connection.
        """
        if method not in METHODS:
            raise ValueError(f"{method} is not among METHODS, so its scope is in no manifest")
        function = getattr(self._client, method.replace(".", "_"))
        given = {key: value for key, value in arguments.items() if value is not None}
        self.was_called = True
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await function(**given)
        except SlackApiError as error:
            refusal = _refusal(method, error)
            self.last_error = str(refusal) if refusal.reason is Reason.UNAUTHORISED else ""
            raise refusal from error
        except TimeoutError as error:
            self.last_error = (
                f"Slack {method}: no answer within {timeout_seconds:g} s; look at the network"
            )
            raise DeliveryError(self.last_error, reason=Reason.TIMEOUT) from error
        except (aiohttp.ClientError, OSError, SlackClientError, ValueError) as error:
            self.last_error = (
                f"Slack {method}: {type(error).__name__}; check SLACK_API_URL and the network"
            )
            raise DeliveryError(self.last_error, reason=Reason.REFUSED) from error
        self.last_error = ""
        return dict(answer.data)

    async def upload(self, url: str, content: bytes) -> None:
        """Sends a file's bytes to the address that `files.getUploadURLExternal` gave.

        Raises:
            DeliveryError: not taken.
        """
        await self._raw("POST", url, content, "file upload", None)

    async def download(self, url: str, most_bytes: int) -> tuple[bytes, str]:
        """A private file and its media type, with the bot's token; nothing is ever made public.

        Raises:
            DeliveryError: not to be had, longer than `most_bytes`, or kept outside Slack.
        """
        if not self._is_slacks(url):
            # A remote file lies wherever another app says; the token is for Slack's own hosts.
            raise DeliveryError(
                "Slack file download: the file is not kept by Slack, so it is not copied",
                reason=Reason.UNSUPPORTED,
            )
        headers = {"Authorization": f"Bearer {self._client.token}"}
        return await self._raw("GET", url, None, "file download", headers, most_bytes)

    def _is_slacks(self, url: str) -> bool:
        try:
            asked, own = urlsplit(url), urlsplit(self._client.base_url)
            is_local = (asked.scheme, asked.netloc) == (own.scheme, own.netloc)
            host = asked.hostname or ""
        except ValueError:
            return False
        return is_local or (asked.scheme == "https" and f".{host}".endswith(SLACK_HOSTS))

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        """Answers through a `response_url`.

        Raises:
            DeliveryError: it is used up, too old, or not reachable.
        """
        try:
            async with (
                asyncio.timeout(CALL_SECONDS),
                self._pool() as session,
                session.post(url, json=dict(body)) as response,
            ):
                answer = await response.text()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise DeliveryError(
                f"Slack response_url: {type(error).__name__}; the answer goes another way",
                reason=Reason.REFUSED,
            ) from error
        if response.status != 200 or (answer and answer != "ok" and '"ok":true' not in answer):
            raise SlackRefusalError(
                "response_url", f"status {response.status}", reason=Reason.REFUSED
            )

    async def _raw(
        self,
        verb: str,
        url: str,
        content: bytes | None,
        what: str,
        headers: Mapping[str, str] | None,
        most_bytes: int = 0,
    ) -> tuple[bytes, str]:
        try:
            async with (
                asyncio.timeout(UPLOAD_SECONDS),
                self._pool() as session,
                session.request(verb, url, data=content, headers=headers) as response,
            ):
                body = await _limited(response, most_bytes)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise DeliveryError(
                f"Slack {what}: {type(error).__name__}; it is tried again", reason=Reason.REFUSED
            ) from error
        if response.status != 200:
            raise DeliveryError(
                f"Slack {what}: status {response.status}; it is tried again", reason=Reason.REFUSED
            )
        if most_bytes and len(body) > most_bytes:
            raise DeliveryError(
                f"Slack {what}: more than {most_bytes} bytes; it is left out",
                reason=Reason.UNSUPPORTED,
            )
        return body, response.content_type

    @asynccontextmanager
    async def _pool(self) -> AsyncIterator[aiohttp.ClientSession]:
        """The open pool, else a connection for this once."""
        if self._session is not None:
            yield self._session
            return
        async with aiohttp.ClientSession() as session:
            yield session


async def _limited(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """The body, one byte more than allowed at most; of an answer that nobody reads, nothing."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(65_536):
        size += len(part)
        if most_bytes:
            parts.append(part)
        if size > max(most_bytes, 65_536):
            break
    return b"".join(parts)


def _refusal(method: str, error: SlackApiError) -> SlackRefusalError:
    response = error.response
    code = "unknown_error"
    after: float | None = None
    status = getattr(response, "status_code", 0)
    try:
        code = str(response["error"])
    except (KeyError, TypeError, ValueError):
        code = f"status_{status}"
    headers = {
        str(key).lower(): value for key, value in (getattr(response, "headers", None) or {}).items()
    }
    if status == 429 or _REASONS.get(code) is Reason.RATE_LIMITED:
        text = str(headers.get("retry-after", "1"))
        after = float(text) if text.replace(".", "", 1).isdigit() else 1.0
        return SlackRefusalError(
            method, "ratelimited", reason=Reason.RATE_LIMITED, retry_after_seconds=after
        )
    reason = _REASONS.get(code, Reason.REFUSED)
    if code in PERMANENT:
        reason = Reason.NOT_FOUND
    elif code in CONTENT:
        reason = Reason.MALFORMED
    return SlackRefusalError(method, code, reason=reason)
