"""What the bot shows to the agents, and which agents it believes: its certificate and their authority."""

from __future__ import annotations

import ssl
from pathlib import Path

from bot.errors import ConfigError


def agent_tls(
    authority: Path | None, certificate: Path | None, key: Path | None
) -> ssl.SSLContext | None:
    """The TLS context for requests to agents; None where the system's own authorities do and nothing is shown.

    `authority` replaces the system's authorities, so that only agents of the site's own are believed.

    Raises:
        ConfigError: a file cannot be used, or a certificate comes without its key.
    """
    if authority is None and certificate is None and key is None:
        return None
    if (certificate is None) != (key is None):
        raise ConfigError(
            "agent_client_cert, agent_client_key: one without the other; set both or neither"
        )
    try:
        context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    except OSError as error:
        raise ConfigError(
            f"agent_ca: {authority} cannot be used: {error}; give the PEM file of the agents' authority"
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None and key is not None:
        try:
            # Asked for a passphrase, OpenSSL would wait for somebody at the terminal.
            context.load_cert_chain(certificate, key, password=lambda: b"")
        except OSError as error:
            raise ConfigError(
                f"agent_client_cert, agent_client_key: {certificate} cannot be used: {error}; "
                "give a matching PEM pair without a passphrase"
            ) from error
    return context
