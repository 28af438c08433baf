"""Connects to Redis and turns its faults into the bot's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
)
from redis.backoff import ExponentialBackoff
from redis.commands.core import AsyncScript

from bot.errors import ConfigError, Reason, StoreError

SOCKET_TIMEOUT_SECONDS = 5.0
# A blip or a failover is ridden out for about two seconds; then the caller hears it and its sender repeats.
RETRIES = 6
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5


def _retry() -> Retry:
    backoff = ExponentialBackoff(cap=LONGEST_PAUSE_SECONDS, base=FIRST_PAUSE_SECONDS)
    # A server that hangs is waited for once: seven times would be longer than any sender waits.
    return Retry(backoff, RETRIES, supported_errors=(exceptions.ConnectionError,))


class _MasterConnection(SentinelManagedConnection):
    """Asks Sentinel before every connection, not only before the first.

    redis-py 8 opens a broken connection again to the host that it had, so that a demoted master would be asked for ever.
    """

    async def connect_check_health(
        self, check_health: bool = True, retry_socket_connect: bool = True
    ) -> None:
        """Connects to whoever is the master now."""
        self.host, self.port = await self.connection_pool.get_master_address()
        await super().connect_check_health(check_health, retry_socket_connect)


def connect(url: str, *, decode: bool) -> Redis:
    """A client for `redis://`, `rediss://`, `unix://` or `redis+sentinel://host:port[,host:port]/master[/db]`.

    decode: answers as text, else as bytes (for blobs). Nothing is sent yet.

    Raises:
        ConfigError: the Sentinel address does not name a master.
    """
    if not url.startswith("redis+sentinel://"):
        client: Redis = Redis.from_url(
            url,
            decode_responses=decode,
            socket_timeout=SOCKET_TIMEOUT_SECONDS,
            socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
            health_check_interval=30,
            retry=_retry(),
            retry_on_error=[exceptions.ReadOnlyError],
        )
        return client
    parts = urlsplit(url)
    path = parts.path.strip("/").split("/")
    if not path[0]:
        raise ConfigError(
            "REDIS_URL: redis+sentinel:// names no master; write redis+sentinel://host:26379/mymaster/0"
        )
    authority = parts.netloc.rpartition("@")
    password = unquote(authority[0].rpartition(":")[2]) or None
    hosts = []
    for item in authority[2].split(","):
        host, _, port = item.rpartition(":") if ":" in item else (item, "", "26379")
        if not port.isdigit():
            raise ConfigError(f"REDIS_URL: {item!r} has no numeric port")
        hosts.append((host, int(port)))
    sentinel_password = next(iter(parse_qs(parts.query).get("sentinel_password", [])), None)
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        hosts,
        sentinel_kwargs={
            "password": sentinel_password,
            "socket_timeout": SOCKET_TIMEOUT_SECONDS,
            "socket_connect_timeout": SOCKET_TIMEOUT_SECONDS,
        },
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
    )
    master: Redis = sentinel.master_for(
        path[0],
        db=int(path[1]) if len(path) > 1 and path[1].isdigit() else 0,
        password=password,
        decode_responses=decode,
        retry=_retry(),
        retry_on_error=[exceptions.ReadOnlyError],
        connection_class=_MasterConnection,
    )
    return master


async def disconnect(client: Redis) -> None:
    """Gives a client's connections back, those to its Sentinels included."""
    await client.aclose()
    pool = client.connection_pool
    if isinstance(pool, SentinelConnectionPool):
        await pool.disconnect()
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


async def run_script(client: Redis, script: AsyncScript, arguments: Sequence[str | int]) -> Any:
    """Runs a script where writes are taken, a fresh connection at a time.

    Before Redis 7 a script that meets a replica says so as a script's error, which no client takes for READONLY.

    Raises:
        RedisError: what Redis answered in the end.
    """
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(RETRIES + 1):
        try:
            return await script(keys=[], args=list(arguments))
        except exceptions.ResponseError as error:
            if "READONLY" not in str(error) or attempt == RETRIES:
                raise
        # The old master keeps its connections; new ones are asked for, and Sentinel knows where.
        await client.connection_pool.disconnect(inuse_connections=False)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    raise AssertionError("unreachable")


@asynccontextmanager
async def store_faults(doing: str) -> AsyncIterator[None]:
    """Wraps every Redis fault inside into a `StoreError` that says what was being done.

    Raises:
        StoreError: Redis is gone, slow, read-only, out of memory, or refused the command.
    """
    try:
        yield
    except (exceptions.TimeoutError, TimeoutError) as error:
        raise StoreError(
            f"{doing}: Redis did not answer in {SOCKET_TIMEOUT_SECONDS:.0f} s; look at its load",
            reason=Reason.TIMEOUT,
        ) from error
    except (exceptions.AuthenticationError, exceptions.NoPermissionError) as error:
        raise StoreError(
            f"{doing}: Redis refused the login; check the password in REDIS_URL",
            reason=Reason.UNAUTHORISED,
        ) from error
    except (exceptions.ConnectionError, OSError) as error:
        raise StoreError(
            f"{doing}: Redis is not reachable; start it or correct REDIS_URL", reason=Reason.REFUSED
        ) from error
    except exceptions.RedisError as error:
        raise StoreError(
            f"{doing}: Redis answered {' '.join(str(error).split())[:200]}; nothing was stored",
            reason=Reason.UNSUPPORTED,
        ) from error
