"""Asks node agents to run probes; whatever goes wrong is a result that says so, never an exception."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import ssl
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from httpx_aiohttp import AiohttpTransport

from bot.argument import args_digest
from bot.domain.finding import UNANSWERED, ProbeResult, ProbeStatus
from bot.errors import ConfigError, EvidenceError, ProbeError, Reason
from bot.inventory import Inventory, Node
from bot.sources._agent_answers import content_of, require_success, result_of, status_of

TOKEN_LIFETIME_SECONDS = 30
"""Half of what the agent accepts, so that a clock a few seconds off does no harm."""
ANSWER_LIMIT_BYTES = 2 * 1024 * 1024
ARTEFACT_LIMIT_BYTES = 64 * 1024 * 1024
_ARTEFACT_ID = re.compile(r"[0-9a-f]{32}")
_MARGIN_SECONDS = 0.5
"""What is kept of the caller's time for the wire, so that the agent's own `timeout` still arrives."""


class NodeAgents:
    """Signs one token a request and asks; at most `parallel` requests are under way at once."""

    def __init__(
        self,
        inventory: Inventory,
        signing_key_pem: str,
        *,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_token_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        parallel: int = 64,
    ) -> None:
        """`tls` is shown to and asked of every agent (see `agent_tls`); `transport` replaces the network.

        Raises:
            ConfigError: the key is no Ed25519 private key in PEM.
        """
        self._inventory = inventory
        self._key = _load_key(signing_key_pem)
        self._now = now
        self._new_token_id = new_token_id
        self._slots = asyncio.Semaphore(parallel)
        # Environment proxies would see tokens, so they are not used. aiohttp's pool is asked because httpx's own
        # scans all connections for each request (1,000 at once: 33 s against about 1 s, our measurement).
        self._client = httpx.AsyncClient(
            transport=transport or AiohttpTransport(verify=tls or True),
            trust_env=False,
            follow_redirects=False,
        )

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def run(
        self,
        node: str,
        probe: str,
        args: Mapping[str, Any],
        *,
        subject: str,
        timeout_seconds: float,
        approved_by: str | None = None,
    ) -> ProbeResult:
        """One run, answered within `timeout_seconds`."""
        started = self._now()

        def failed(status: ProbeStatus, error: EvidenceError | ProbeError) -> ProbeResult:
            return ProbeResult(
                probe=probe,
                node=node,
                status=status,
                started_at=started,
                duration_seconds=max(0.0, (self._now() - started).total_seconds()),
                data={UNANSWERED: error.reason.value},
                error=str(error),
            )

        try:
            content = await self._ask(
                node,
                "POST",
                f"/v1/probes/{probe}",
                subject=subject,
                claims=_claims(probe, args, approved_by),
                body={
                    "args": dict(args),
                    "timeout": max(_MARGIN_SECONDS, timeout_seconds - _MARGIN_SECONDS),
                },
                timeout_seconds=timeout_seconds,
            )
            return result_of(content, node, probe, asked_at=started)
        except EvidenceError as error:
            return failed(status_of(error.reason), error)
        except ProbeError as error:
            return failed(ProbeStatus.ERROR, error)

    async def catalogue(
        self, node: str, *, subject: str = "system", timeout_seconds: float = 5.0
    ) -> tuple[Mapping[str, Any], ...]:
        """The node's probes as its agent lists them: `name`, `summary`, `cost`, `args`, `needs`, `allowed`.

        Raises:
            EvidenceError: the agent could not be asked, or its answer is out of shape.
        """
        content = await self._ask(
            node,
            "GET",
            "/v1/probes",
            subject=subject,
            claims={},
            body=None,
            timeout_seconds=timeout_seconds,
        )
        probes = content.get("probes")
        if not isinstance(probes, list) or not all(
            isinstance(item, dict) and isinstance(item.get("name"), str) for item in probes
        ):
            raise EvidenceError(f"agent of {node}: its catalogue is out of shape")
        return tuple(probes)

    async def artefact(
        self,
        node: str,
        artefact: Mapping[str, Any],
        *,
        subject: str,
        timeout_seconds: float = 60.0,
    ) -> bytes:
        """The file that a heavy probe left, fetched piece by piece; `artefact` is `data["artefact"]` of its result.

        Raises:
            EvidenceError: the agent could not be asked, no longer has it, or the digest is another.
        """
        name, size = str(artefact.get("id", "")), artefact.get("bytes")
        if not _ARTEFACT_ID.fullmatch(name) or type(size) is not int or size <= 0:
            raise EvidenceError(f"agent of {node}: its profile is told out of shape")
        if size > ARTEFACT_LIMIT_BYTES:
            raise EvidenceError(
                f"agent of {node}: its profile has {size} bytes, more than {ARTEFACT_LIMIT_BYTES} are not fetched"
            )
        content = bytearray()
        try:
            async with asyncio.timeout(timeout_seconds):
                while len(content) < size:
                    offset = len(content)
                    args = {"id": name, "offset": offset}
                    piece = await self._fetch(
                        node,
                        "GET",
                        f"/v1/artefacts/{name}?offset={offset}",
                        subject=subject,
                        claims=_claims("artefact", args, None),
                        body=None,
                        timeout_seconds=timeout_seconds,
                    )
                    if not piece:
                        raise EvidenceError(f"agent of {node}: its profile broke off; ask again")
                    content += piece
        except TimeoutError as error:
            raise EvidenceError(
                f"agent of {node}: the profile did not arrive within {timeout_seconds:g} s; ask again",
                reason=Reason.TIMEOUT,
            ) from error
        if hashlib.sha256(content).hexdigest() != artefact.get("sha256"):
            raise EvidenceError(
                f"agent of {node}: the profile's digest is another than the probe told; ask again"
            )
        return bytes(content)

    async def _ask(
        self,
        name: str,
        method: str,
        path: str,
        *,
        subject: str,
        claims: Mapping[str, Any],
        body: Mapping[str, Any] | None,
        timeout_seconds: float,
    ) -> Mapping[str, Any]:
        raw = await self._fetch(
            name,
            method,
            path,
            subject=subject,
            claims=claims,
            body=body,
            timeout_seconds=timeout_seconds,
        )
        return content_of(name, raw)

    async def _fetch(
        self,
        name: str,
        method: str,
        path: str,
        *,
        subject: str,
        claims: Mapping[str, Any],
        body: Mapping[str, Any] | None,
        timeout_seconds: float,
    ) -> bytes:
        node = self._inventory.nodes.get(name)
        if node is None or not node.url:
            raise EvidenceError(
                f"node {name}: has no agent address in the inventory; add it to RCA_NODES",
                reason=Reason.NOT_FOUND,
            )
        try:
            async with asyncio.timeout(timeout_seconds), self._slots:
                # Signed only now: a token must not age while the request waits for its turn.
                token = self._sign(node, subject, claims)
                return await self._send(node, method, path, token, body)
        except TimeoutError as error:
            raise EvidenceError(
                f"agent of {name}: no answer within {timeout_seconds:g} s; is the agent running and reachable?",
                reason=Reason.TIMEOUT,
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            # The transport names a refused connection a timeout; the deadline is ours, so it is none.
            raise EvidenceError(
                f"agent of {name}: cannot be reached ({type(error).__name__}); is the agent running?",
                reason=Reason.REFUSED,
            ) from error

    async def _send(
        self, node: Node, method: str, path: str, token: str, body: Mapping[str, Any] | None
    ) -> bytes:
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        async with self._client.stream(
            method,
            str(node.url).rstrip("/") + path,
            content=content,
            headers=headers,
            timeout=None,
        ) as answer:
            raw = bytearray()
            async for chunk in answer.aiter_bytes():
                raw += chunk
                if len(raw) > ANSWER_LIMIT_BYTES:
                    raise EvidenceError(
                        f"agent of {node.name}: its answer is larger than {ANSWER_LIMIT_BYTES} bytes"
                    )
        require_success(node.name, answer, bytes(raw))
        return bytes(raw)

    def _sign(self, node: Node, subject: str, claims: Mapping[str, Any]) -> str:
        issued = self._now().timestamp()
        return jwt.encode(
            {
                "iss": "rca-bot",
                "aud": node.name,
                "sub": subject,
                "iat": issued,
                "exp": issued + TOKEN_LIFETIME_SECONDS,
                "jti": self._new_token_id(),
                **claims,
            },
            self._key,
            algorithm="EdDSA",
        )


def _claims(probe: str, args: Mapping[str, Any], approved_by: str | None) -> dict[str, Any]:
    claims: dict[str, Any] = {"probe": probe, "args_sha256": args_digest(args)}
    if approved_by is not None:
        claims["approved_by"] = approved_by
    return claims


def _load_key(pem: str) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(
            "RCA_AGENT_KEY: holds no private key in PEM; write one with `rca-bot agent keygen --out DIR`"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(
            "RCA_AGENT_KEY: must hold an Ed25519 key; write one with `rca-bot agent keygen --out DIR`"
        )
    return key
