"""Puts the agent's parts together and serves until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
import resource
import signal
import ssl
import sys
import time
from collections.abc import Iterator, Mapping

import structlog
import uvicorn

import bot.probes
from bot.agent.audit import AuditLog
from bot.agent.metrics import AgentMetrics
from bot.agent.runner import ChildRunner
from bot.agent.server import AgentServer
from bot.agent.settings import AgentSettings
from bot.agent.tokens import TokenCheck, load_public_keys
from bot.agent.wire import HEAD_LIMIT_BYTES, Doorkeeper
from bot.errors import ConfigError
from bot.listening import listen
from bot.probe import Probe
from bot.registry import collect

_log = structlog.get_logger("rca.agent")


def probe_catalogue() -> dict[str, Probe]:
    """All probes by name."""
    return collect(bot.probes, Probe)


def refuse_open_door(settings: AgentSettings, *, allow_plaintext: bool) -> None:
    """Beyond loopback the agent speaks TLS, unless the operator says in so many words that something else does.

    Raises:
        ConfigError: it would listen in the clear.
    """
    if settings.tls_cert is not None or allow_plaintext or _is_loopback(settings.host):
        return
    raise ConfigError(
        f"RCA_AGENT_HOST: {settings.host} is reachable from outside and there is no TLS; set "
        "RCA_AGENT_TLS_CERT and RCA_AGENT_TLS_KEY, or start with --allow-plaintext behind a TLS proxy"
    )


async def serve(settings: AgentSettings, *, allow_plaintext: bool) -> None:
    """Serves until SIGTERM or SIGINT, then ends every child; SIGHUP reads keys and certificate anew.

    Raises:
        ConfigError: keys, certificate, audit file or address cannot be used.
    """
    refuse_open_door(settings, allow_plaintext=allow_plaintext)
    if settings.public_keys is None:
        raise ConfigError(
            "RCA_AGENT_PUBLIC_KEYS: not set; give the PEM file of the bot's public key"
        )
    keys = load_public_keys(settings.public_keys)
    probes = probe_catalogue()
    audit = AuditLog(settings.audit)
    runner = ChildRunner(settings, now=time.time, monotonic=time.monotonic)
    started_at = await _next_whole_second()
    tokens = TokenCheck(
        settings.node,
        keys,
        started_at=started_at,
        used=audit.recent_token_ids(started_at),
    )
    agent = AgentServer(
        settings,
        probes,
        runner,
        tokens,
        audit,
        AgentMetrics(),
        now=time.time,
        monotonic=time.monotonic,
    )
    keeper = Doorkeeper(connection_limit(settings.limits.connections), agent.audit.turned_away)
    config = _uvicorn_config(agent.app(), settings, keeper)
    server = _Server(config)
    listener = listen(
        settings.host,
        settings.port,
        settings=("RCA_AGENT_HOST", "RCA_AGENT_PORT"),
        advice="is another agent running there?",
        backlog=256,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    loop.add_signal_handler(signal.SIGHUP, _reload, settings, tokens, config.ssl)
    scheme = "https" if settings.tls_cert else "http"
    _log.info(
        "listening",
        node=settings.node,
        url=f"{scheme}://{settings.host}:{settings.port}",
        probes=len(probes),
    )
    try:
        await server.serve(sockets=[listener])
    finally:
        listener.close()
        await runner.close()
        audit.close()


def configure_logs() -> None:
    """Key-value lines on standard error."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(bool_as_flag=False),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


class _Server(uvicorn.Server):
    """Leaves signals to us: the library's own handling ends the process before the children are seen off."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield

    def end(self) -> None:
        """Stops serving once the requests under way are answered, or five seconds have passed."""
        self.should_exit = True


async def _next_whole_second() -> float:
    """Waits for it, because most signers write `iat` in whole seconds.

    A token signed in the second of the start could otherwise not be told from one that a former run has seen.
    """
    now = time.time()
    boundary = math.ceil(now)
    await asyncio.sleep(boundary - now)
    return float(boundary)


def _uvicorn_config(app: object, settings: AgentSettings, keeper: Doorkeeper) -> uvicorn.Config:
    tls: Mapping[str, object] = {}
    if settings.tls_cert is not None and settings.tls_key is not None:
        tls = {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key)}
        if settings.client_ca is not None:
            tls = {
                **tls,
                "ssl_ca_certs": str(settings.client_ca),
                "ssl_cert_reqs": ssl.CERT_REQUIRED,
            }
    try:
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
            host=settings.host,
            port=settings.port,
            access_log=False,
            log_level="warning",
            server_header=False,
            lifespan="off",
            http=keeper.protocol,  # type: ignore[arg-type]
            h11_max_incomplete_event_size=HEAD_LIMIT_BYTES,
            # The audit tells who connected, and a header is only what somebody says.
            proxy_headers=False,
            ws="none",
            timeout_keep_alive=15,
            timeout_graceful_shutdown=5,
            **tls,  # type: ignore[arg-type]
        )
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"RCA_AGENT_TLS_CERT, RCA_AGENT_TLS_KEY: cannot be used: {error}; give a matching PEM pair"
        ) from error
    return config


def connection_limit(wanted: int) -> int:
    """How many connections there may be: as wanted, and never so many that no descriptor is left for a probe.

    Raises this process's own limit of open files as far as it may.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * wanted
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft // 2)


def _reload(settings: AgentSettings, tokens: TokenCheck, tls: ssl.SSLContext | None) -> None:
    """Takes what the files hold now; where they are faulty everything stays as it was, and the log says so."""
    try:
        keys = load_public_keys(settings.public_keys) if settings.public_keys else ()
        if tls is not None and settings.tls_cert is not None:
            # Tried on a context of its own: a pair that does not match would leave the live one half changed.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                settings.tls_cert, settings.tls_key
            )
            tls.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (ConfigError, OSError) as error:
        _log.error("not_reloaded", why=str(error))
        return
    tokens.replace_keys(keys)
    _log.info("reloaded", keys=len(keys))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
