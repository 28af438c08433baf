"""Connects to approved endpoints only, those of the node's own configuration."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_ENDPOINTS = 16
"""A cap on work: a service with more dependencies is asked about these. Our judgement."""
_DEFAULT_PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379, "grpc": 443}
_UNIX = "unix://"


@dataclass(frozen=True, slots=True)
class Contact:
    """One try. `seconds` is the time to the connection, or to the failure; `failure` None where it stood.

    `is_denied`: this node did not let the agent try, which says nothing about the peer.
    """

    name: str
    seconds: float
    failure: str | None
    is_denied: bool = False


def contact_all(addresses: Iterable[str], timeout_seconds: float) -> tuple[Contact, ...]:
    """Opens and closes a connection to each, all at once; nothing is sent."""
    targets = list(addresses)[:MAX_ENDPOINTS]
    if not targets:
        return ()
    with ThreadPoolExecutor(len(targets)) as pool:
        return tuple(pool.map(lambda address: _contact(address, timeout_seconds), targets))


def endpoint_of(address: str) -> tuple[str, int] | str | None:
    """Where an address leads: host and port, or the path of a local socket; None when it names neither.

    >>> endpoint_of("tcp://10.0.0.9:6379"), endpoint_of("unix:///run/cache.sock")
    (('10.0.0.9', 6379), '/run/cache.sock')
    """
    if address.startswith(_UNIX):
        path = address.removeprefix(_UNIX)
        return path if path.startswith("/") and "\0" not in path else None
    return host_and_port(address)


def host_and_port(address: str) -> tuple[str, int] | None:
    """Where an address such as `tcp://10.0.0.9:6379` leads; None when it names no port.

    >>> host_and_port("tcp://10.0.0.9:6379")
    ('10.0.0.9', 6379)
    """
    try:
        parts = urlsplit(address)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname and port else None


def _contact(address: str, timeout_seconds: float) -> Contact:
    target = endpoint_of(address)
    if target is None:
        return Contact("an entry of dependencies", 0.0, "names no host and port")
    name = target if isinstance(target, str) else f"{target[0]}:{target[1]}"
    started = time.monotonic()  # measures the peer, so no clock is handed in
    is_denied = False
    try:
        _open(target, timeout_seconds)
    except TimeoutError:
        failure: str | None = f"no answer within {timeout_seconds:g} s"
    except ConnectionRefusedError:
        failure = "refused"
    except PermissionError as error:
        # A local rule (packet filter, cgroup program, mode of a socket) stopped it before the peer was asked.
        failure, is_denied = f"this node forbids it ({error.strerror})", True
    except FileNotFoundError:
        failure = "its socket is not there"
    except socket.gaierror as error:
        failure = f"its name cannot be resolved ({error.strerror})"
    except (OSError, UnicodeError) as error:
        failure = getattr(error, "strerror", None) or str(error)
    else:
        failure = None
    return Contact(name, time.monotonic() - started, failure, is_denied)


def _open(target: tuple[str, int] | str, timeout_seconds: float) -> None:
    if not isinstance(target, str):
        socket.create_connection(target, timeout_seconds).close()
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as local:
        local.settimeout(timeout_seconds)
        local.connect(target)
