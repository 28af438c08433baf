"""Makes the key pair: the private half for the bot, the public half for the nodes."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bot.errors import BotError, Reason

PRIVATE_NAME = "rca-agent.key"
PUBLIC_NAME = "rca-agent.pub"


def write_key_pair(folder: Path) -> tuple[Path, Path]:
    """Writes a fresh Ed25519 pair; an existing key is never overwritten.

    Raises:
        BotError: a key is there already, or the folder cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    private, public = folder / PRIVATE_NAME, folder / PUBLIC_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _create(
            private,
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            mode=0o600,
        )
        _create(
            public,
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            mode=0o644,
        )
    except FileExistsError as error:
        raise BotError(
            f"keygen: {error.filename} is there already; take another folder, or move the old key away",
            reason=Reason.CONFLICT,
        ) from error
    except OSError as error:
        raise BotError(
            f"keygen: {folder}: {error.strerror}; give a folder that can be written",
            reason=Reason.REFUSED,
        ) from error
    return private, public


def _create(path: Path, content: bytes, *, mode: int) -> None:
    # Created with its mode at once: between a write and a chmod anybody could read the key.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
