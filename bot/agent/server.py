"""The agent's HTTP surface: health, metrics, the catalogue and the probes."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.agent.artefacts import Piece
from bot.agent.audit import AuditLog
from bot.agent.metrics import AgentMetrics
from bot.agent.rate import Bucket
from bot.agent.request_audit import RequestAudit
from bot.agent.request_body import (
    AMBIGUOUS_LENGTH,
    BODY_LIMIT_BYTES,
    MAX_HEAVY_TIMEOUT_SECONDS,
    Refused,
    parse_body,
    read_body,
)
from bot.agent.runner import ChildRunner
from bot.agent.settings import AgentSettings
from bot.agent.tokens import Grant, Refusal, TokenCheck, TokenRefused, require_request
from bot.argument import args_digest
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.errors import ProbeError
from bot.probe import Cost, Probe

ARTEFACT = "artefact"
"""What stands in a token's `probe` where a piece of a profile is asked for; its args are `{"id","offset"}`."""
DEFAULT_TIMEOUT_SECONDS = 5.0
MAX_TIMEOUT_SECONDS = 60.0


class AgentServer:
    """Answers requests; each that is not health or metrics leaves an audit line."""

    def __init__(
        self,
        settings: AgentSettings,
        probes: Mapping[str, Probe],
        runner: ChildRunner,
        tokens: TokenCheck,
        audit: AuditLog,
        metrics: AgentMetrics,
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._probes = probes
        self._runner = runner
        self._tokens = tokens
        self._metrics = metrics
        self._now = now
        self._monotonic = monotonic
        self._bucket = Bucket(settings.limits.requests_per_minute)
        self._moderate = Bucket(settings.limits.moderate_per_minute)
        self.audit = RequestAudit(
            settings.node,
            audit,
            metrics,
            refused_lines_per_minute=settings.limits.refused_lines_per_minute,
            now=now,
            monotonic=monotonic,
        )

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/healthz", self._healthz),
                Route("/metrics", self._metrics_page),
                Route("/v1/probes", self._catalogue),
                Route("/v1/probes/{name:path}", self._probe, methods=["POST"]),
                Route("/v1/artefacts/{id:path}", self._artefact),
            ],
            exception_handlers={404: self._unknown, 405: self._unknown, Exception: self._fault},
        )

    async def _healthz(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _metrics_page(self, _request: Request) -> Response:
        self._metrics.hung.set(len(self._runner.hung))
        return PlainTextResponse(self._metrics.page(), media_type=AgentMetrics.CONTENT_TYPE)

    async def _unknown(self, request: Request, error: Exception) -> Response:
        """A path or method that is none: somebody tries doors, which the audit should tell."""
        is_method = isinstance(error, HTTPException) and error.status_code == 405
        refused = (
            Refused(405, "wrong_method", "this path is not asked that way")
            if is_method
            else Refused(404, "unknown_path", "there is nothing at this path")
        )
        return await self._refuse(request, "", refused)

    async def _fault(self, request: Request, _error: Exception) -> Response:
        """A defect of ours: the trace is in the agent's own log, and the caller's request in the audit."""
        return await self._refuse(
            request, "", Refused(500, "agent_fault", "the agent failed; its log says where")
        )

    async def _catalogue(self, request: Request) -> Response:
        try:
            grant = self._grant(request)
            self._limit(self._bucket)
            await self.audit.accepted(request, grant, "", "")
        except Refused as refused:
            return await self._refuse(request, "", refused)
        return JSONResponse(
            {
                "node": self._settings.node,
                "probes": [
                    {**probe.catalogue_entry(), "allowed": self._is_allowed(probe)}
                    for probe in self._probes.values()
                ],
            }
        )

    async def _probe(self, request: Request) -> Response:
        name = request.path_params["name"]
        try:
            grant, probe, args, digest, timeout = await self._entitled(request, name)
            await self.audit.accepted(request, grant, name, digest)
        except Refused as refused:
            return await self._refuse(request, name, refused)
        result = await self._run(probe, args, timeout)
        self._metrics.runs.labels(probe.name, result.status.value).inc()
        self._metrics.seconds.labels(probe.name).observe(result.duration_seconds)
        await self.audit.finished(request, grant, name, result)
        return JSONResponse(result.to_json())

    async def _artefact(self, request: Request) -> Response:
        """One piece of a profile; the token names the file and where the piece starts."""
        name = request.path_params["id"]
        try:
            grant, piece = await self._entitled_piece(request, name)
            await self.audit.accepted(request, grant, ARTEFACT, grant.args_sha256 or "")
        except Refused as refused:
            return await self._refuse(request, ARTEFACT, refused)
        end = piece.offset + len(piece.content)
        return Response(
            piece.content,
            status_code=206 if end - piece.offset < piece.total else 200,
            media_type="application/octet-stream",
            headers={"Content-Range": f"bytes {piece.offset}-{end - 1}/{piece.total}"},
        )

    async def _entitled_piece(self, request: Request, name: str) -> tuple[Grant, Piece]:
        grant = self._grant(request)
        offset = request.query_params.get("offset", "0")
        if not offset.isascii() or not offset.isdigit() or len(offset) > 12:
            raise Refused(400, "bad_args", "offset must be a whole number of bytes")
        self._require(grant, ARTEFACT, args_digest({"id": name, "offset": int(offset)}))
        self._limit(self._bucket)
        piece = await asyncio.to_thread(self._runner.artefacts.piece, name, int(offset))
        if piece is None:
            raise Refused(404, "unknown_artefact", "no such profile here, or it ended before")
        return grant, piece

    async def _entitled(
        self, request: Request, name: str
    ) -> tuple[Grant, Probe, Mapping[str, Any], str, float]:
        """Everything that must hold before anything runs, the signature before the body is read."""
        length = request.headers.get("content-length")
        if length is not None and int(length) > BODY_LIMIT_BYTES:
            raise Refused(413, "body_too_large", f"the body may have {BODY_LIMIT_BYTES} bytes")
        if length is not None and "transfer-encoding" in request.headers:
            # Two answers to where the body ends: a proxy before us may have taken the other one (RFC 9112, 6.1).
            raise Refused(
                400, AMBIGUOUS_LENGTH, "give Content-Length or Transfer-Encoding, not both"
            )
        grant = self._grant(request)
        args, timeout = parse_body(await read_body(request))
        try:
            digest = args_digest(args)
        except ProbeError as error:
            raise Refused(400, "bad_args", str(error)) from error
        self._require(grant, name, digest)
        self._limit(self._bucket)
        probe = self._probes.get(name)
        if probe is None:
            raise Refused(404, "unknown_probe", "no such probe; GET /v1/probes lists them")
        try:
            usual = probe.time_limit(probe.accept(args))
        except ProbeError as error:
            raise Refused(400, "bad_args", str(error)) from error
        if probe.cost is Cost.HEAVY and not grant.approved_by:
            raise Refused(
                403, Refusal.NO_APPROVAL.value, "a heavy probe needs approved_by in its token"
            )
        if probe.cost is Cost.MODERATE:
            self._limit(self._moderate)
        limit = MAX_HEAVY_TIMEOUT_SECONDS if probe.cost is Cost.HEAVY else MAX_TIMEOUT_SECONDS
        wanted = timeout if timeout is not None else max(DEFAULT_TIMEOUT_SECONDS, usual)
        return grant, probe, args, digest, min(limit, wanted)

    def _grant(self, request: Request) -> Grant:
        try:
            return self._tokens.check(request.headers.get("authorization"), self._now())
        except TokenRefused as refused:
            raise Refused(refused.http_status, refused.refusal.value, str(refused)) from refused

    def _require(self, grant: Grant, name: str, digest: str) -> None:
        try:
            require_request(grant, name, digest)
        except TokenRefused as refused:
            raise Refused(refused.http_status, refused.refusal.value, str(refused)) from refused

    def _limit(self, bucket: Bucket) -> None:
        wait = bucket.take(self._monotonic())
        if wait > 0:
            raise Refused(
                429, "rate_limited", f"more than {bucket.per_minute} requests a minute", wait
            )

    def _is_allowed(self, probe: Probe) -> bool:
        patterns = self._settings.heavy if probe.cost is Cost.HEAVY else self._settings.allow
        return any(fnmatch.fnmatchcase(probe.name, pattern) for pattern in patterns)

    async def _run(
        self, probe: Probe, args: Mapping[str, Any], timeout_seconds: float
    ) -> ProbeResult:
        if self._is_allowed(probe):
            return await self._runner.run(probe, args, timeout_seconds)
        key = "heavy" if probe.cost is Cost.HEAVY else "allow"
        return ProbeResult(
            probe=probe.name,
            node=self._settings.node,
            status=ProbeStatus.DENIED,
            started_at=datetime.fromtimestamp(self._now(), UTC),
            duration_seconds=0.0,
            error=f"this node does not allow the probe; [probes] {key} in its configuration lists what it does",
        )

    async def _refuse(self, request: Request, name: str, refused: Refused) -> Response:
        await self.audit.refused(request, name, refused)
        return refused.response()
