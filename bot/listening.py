"""The listening socket of a server, taken before the server is made: uvicorn ends the process where it gets none."""

from __future__ import annotations

import errno
import socket

from bot.errors import ConfigError


def listen(
    host: str, port: int, *, settings: tuple[str, str], advice: str, backlog: int
) -> socket.socket:
    """A TCP socket that listens there; port 0 takes a free one.

    settings: what the host and the port were given by. advice: what to do where it is taken. backlog: connections that may wait.

    Raises:
        ConfigError: the address is taken, or is none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's delay off only on sockets that say that they are TCP: 40 ms an answer otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ConfigError(
                f"{settings[0]}: {host} is no address of this machine ({error.strerror}); "
                "give one that it has, such as 127.0.0.1 or 0.0.0.0"
            ) from error
        raise ConfigError(
            f"{settings[1]}: cannot listen on {host}:{port}: {error.strerror}; {advice}"
        ) from error
    return listener
