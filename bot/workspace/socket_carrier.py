"""Delivers to the app over Socket Mode: each envelope to one of its connections."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import uuid
from dataclasses import dataclass, field

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from bot.blockkit import limits
from bot.workspace.delivery import Ack, AckStatus, Kind, Outgoing
from bot.workspace.records import Json

# Slack tells an app how long a connection is likely to last.
_CONNECTION_SECONDS = 18_060


@dataclass(slots=True, eq=False)
class _Connection:
    socket: WebSocket
    waiting: dict[str, asyncio.Future[object]] = field(default_factory=dict)


class SocketCarrier:
    """The app's open connections, up to ten."""

    def __init__(self, app_id: str, *, ack_seconds: float) -> None:
        self._ack_seconds = ack_seconds
        self._app_id = app_id
        self._connections: list[_Connection] = []
        self._turn = itertools.count()

    @property
    def count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def serve(self, socket: WebSocket) -> None:
        """Greets a connection and reads its acknowledgements until it ends."""
        await socket.accept()
        if self.count >= limits.SOCKET_CONNECTIONS:
            await socket.close(code=1008, reason="too many connections")
            return
        connection = _Connection(socket)
        self._connections.append(connection)
        try:
            await socket.send_json(
                {
                    "type": "hello",
                    "num_connections": self.count,
                    "connection_info": {"app_id": self._app_id},
                    "debug_info": {
                        "host": "local-workspace",
                        "build_number": 1,
                        "approximate_connection_time": _CONNECTION_SECONDS,
                    },
                }
            )
            while True:
                _settle(connection, await socket.receive_text())
        except (WebSocketDisconnect, RuntimeError):
            # Starlette raises RuntimeError where the peer went away between two frames.
            return
        finally:
            if connection in self._connections:
                self._connections.remove(connection)
            for future in connection.waiting.values():
                future.cancel()

    async def carry(self, outgoing: Outgoing) -> Ack:
        """Sends to the next connection in turn; only that one can acknowledge."""
        if not self._connections:
            return Ack(status=AckStatus.FAILED, reason="connection_failed")
        connection = self._connections[next(self._turn) % len(self._connections)]
        envelope_id = str(uuid.uuid4())
        envelope: Json = {
            "envelope_id": envelope_id,
            "type": outgoing.kind.value,
            "payload": outgoing.payload,
            "accepts_response_payload": outgoing.kind is not Kind.EVENT,
        }
        if outgoing.kind is Kind.EVENT:
            envelope["retry_attempt"] = outgoing.retry_number
            envelope["retry_reason"] = outgoing.retry_reason or ""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        connection.waiting[envelope_id] = future
        try:
            async with asyncio.timeout(self._ack_seconds):
                await connection.socket.send_json(envelope)
                body = await _answer(future)
        except TimeoutError:
            return Ack(status=AckStatus.TIMEOUT, reason="http_timeout")
        except (WebSocketDisconnect, RuntimeError, ConnectionError):
            return Ack(status=AckStatus.FAILED, reason="connection_failed")
        finally:
            connection.waiting.pop(envelope_id, None)
        return Ack(status=AckStatus.ACKNOWLEDGED, http_status=200, body=body)

    async def disconnect(self, reason: str, *, is_closing: bool) -> int:
        """Tells every connection to go (`warning`, `refresh_requested`, `link_disabled`); says how many there were."""
        connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await connection.socket.send_json(
                    {
                        "type": "disconnect",
                        "reason": reason,
                        "debug_info": {"host": "local-workspace"},
                    }
                )
                if is_closing and connection.socket.application_state is WebSocketState.CONNECTED:
                    await connection.socket.close()
        return len(connections)


async def _answer(future: asyncio.Future[object]) -> object:
    # A connection that ends cancels the future; that must not look like our own task being cancelled.
    done, _ = await asyncio.wait({future})
    if future.cancelled():
        raise ConnectionError("the connection ended before it acknowledged")
    return next(iter(done)).result()


def _settle(connection: _Connection, text: str) -> None:
    try:
        frame = json.loads(text)
    except ValueError:
        return
    if not isinstance(frame, dict):
        return
    future = connection.waiting.get(str(frame.get("envelope_id")))
    if future is not None and not future.done():
        future.set_result(frame.get("payload"))
