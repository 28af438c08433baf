"""What the audit tells of each request: who asked from where for what, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from bot.agent.audit import AuditError, AuditLog
from bot.agent.metrics import AgentMetrics
from bot.agent.rate import Bucket
from bot.agent.request_body import Refused
from bot.agent.tokens import Grant
from bot.agent.wire import TurnedAway
from bot.domain.finding import ProbeResult
from bot.domain.instant import to_rfc3339

_LONGEST_TEXT = 128
"""Our judgement: what a caller may write into a line of its own choice; no probe's name is near it."""
_RETRY_SECONDS = 30.0


class RequestAudit:
    """One line for what is accepted, finished or refused; refusals up to a bound, beyond it they are counted."""

    def __init__(
        self,
        node: str,
        audit: AuditLog,
        metrics: AgentMetrics,
        *,
        refused_lines_per_minute: int,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._node = node
        self._audit = audit
        self._metrics = metrics
        self._bucket = Bucket(refused_lines_per_minute)
        self._left_out = 0
        self._now = now
        self._monotonic = monotonic

    async def accepted(self, request: Request, grant: Grant, name: str, digest: str) -> None:
        """Nothing runs that the audit does not tell.

        Raises:
            Refused: the line cannot be written.
        """
        why = await self._write(
            self._line(request, name)
            | {
                "outcome": "accepted",
                "subject": grant.subject,
                "token_id": grant.token_id,
                "expires_at": grant.expires_at,
                "args_sha256": digest,
                "approved_by": grant.approved_by,
            }
        )
        if why is not None:
            raise Refused(
                503,
                "audit_unwritable",
                f"nothing runs while the audit cannot be written: {why}; make room, or move RCA_AGENT_AUDIT",
                _RETRY_SECONDS,
            )

    async def finished(self, request: Request, grant: Grant, name: str, end: ProbeResult) -> None:
        """How the run of an accepted request ended."""
        await self._write(
            self._line(request, name)
            | {
                "outcome": "finished",
                "token_id": grant.token_id,
                "subject": grant.subject,
                "status": end.status.value,
                "duration_s": end.duration_seconds,
            }
        )

    async def refused(self, request: Request, name: str, refused: Refused) -> None:
        """A request that ran nothing."""
        await self._refusal(self._line(request, name), refused.reason, refused.status)

    async def turned_away(self, away: TurnedAway) -> None:
        """What came to the port and never became a request."""
        await self._refusal(self._head(away.remote), away.reason, away.status)

    async def _refusal(self, line: Mapping[str, Any], reason: str, status: int | None) -> None:
        self._metrics.refused.labels(reason).inc()
        if self._bucket.take(self._monotonic()) > 0:
            # Whoever has no token must not be able to fill the disk with lines.
            self._left_out += 1
            return
        await self._write({**line, "outcome": "refused", "reason": reason, "http_status": status})

    async def _write(self, line: Mapping[str, Any]) -> str | None:
        """None, or why the line could not be written."""
        left_out, self._left_out = self._left_out, 0
        if left_out:
            line = {**line, "refused_before": left_out}
        try:
            await self._audit.write(line)
        except AuditError as failed:
            self._left_out += left_out
            self._metrics.unaudited.inc()
            return str(failed)
        return None

    def _line(self, request: Request, name: str) -> dict[str, Any]:
        line = self._head(request.client.host if request.client else None) | {
            "method": request.method,
            "probe": name[:_LONGEST_TEXT],
        }
        forwarded = request.headers.get("x-forwarded-for")
        # Anybody can write this header, so it stands beside the peer's address and never in its place.
        return line if forwarded is None else line | {"forwarded_for": forwarded[:_LONGEST_TEXT]}

    def _head(self, remote: str | None) -> dict[str, Any]:
        return {
            "at": to_rfc3339(datetime.fromtimestamp(self._now(), UTC)),
            "node": self._node,
            "remote": remote,
        }
