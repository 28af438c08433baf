"""Connects to approved endpoints only, those of the node's own configuration."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_ENDPOINTS = 16
_DEFAULT_PORTS = {"http": 80, "https": 443, "redis": 6379, "grpc": 443}


@dataclass(frozen=True, slots=True)
class Contact:
    """One try. `seconds` is the time to the connection, or to the failure; `failure` None where it stood."""

    name: str
    seconds: float
    failure: str | None


def contact_all(addresses: Iterable[str], timeout_seconds: float) -> tuple[Contact, ...]:
    """Opens and closes a TCP connection to each, all at once; nothing is sent."""
    targets = list(addresses)[:MAX_ENDPOINTS]
    if not targets:
        return ()
    with ThreadPoolExecutor(len(targets)) as pool:
        return tuple(pool.map(lambda address: _contact(address, timeout_seconds), targets))


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
    target = host_and_port(address)
    if target is None:
        return Contact("an entry of dependencies", 0.0, "names no host and port")
    name = f"{target[0]}:{target[1]}"
    started = time.monotonic()  # measures the peer, so no clock is handed in
    try:
        socket.create_connection(target, timeout_seconds).close()
    except TimeoutError:
        failure: str | None = f"no answer within {timeout_seconds:g} s"
    except ConnectionRefusedError:
        failure = "refused"
    except socket.gaierror as error:
        failure = f"its name cannot be resolved ({error.strerror})"
    except OSError as error:
        failure = error.strerror or str(error)
    else:
        failure = None
    return Contact(name, time.monotonic() - started, failure)
