"""Checks the bot's signed token: every way to be wrong has its own reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from bot.errors import ConfigError

ISSUER = "rca-bot"
MAX_LIFETIME_SECONDS = 60
"""Source: the agent's HTTP contract, `exp` 60 s at most."""
FUTURE_LEEWAY_SECONDS = 5.0
"""Our judgement: clocks kept by NTP differ by far less; more than this is a clock to repair, and said so."""
_LATEST_SECONDS = 253_402_300_799
"""The end of the year 9999, the last that a time can be written in."""
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)


class Refusal(StrEnum):
    """Why a token was refused; a metric label and an audit word."""

    NO_TOKEN = "no_token"  # noqa: S105 - a word of the audit, no secret
    MALFORMED = "malformed_token"
    WRONG_ALGORITHM = "wrong_algorithm"
    BAD_SIGNATURE = "bad_signature"
    MISSING_CLAIM = "missing_claim"
    WRONG_ISSUER = "wrong_issuer"
    WRONG_AUDIENCE = "wrong_audience"
    EXPIRED = "expired"
    IN_FUTURE = "issued_in_future"
    TOO_LONG = "lifetime_too_long"
    BEFORE_START = "issued_before_start"
    REPLAYED = "replayed"
    WRONG_PROBE = "wrong_probe"
    ARGS_ALTERED = "args_altered"
    NO_APPROVAL = "no_approval"


# Authenticated but not entitled to this very request.
_FORBIDDEN = {
    Refusal.WRONG_PROBE,
    Refusal.ARGS_ALTERED,
    Refusal.NO_APPROVAL,
    Refusal.WRONG_AUDIENCE,
}


class TokenRefused(Exception):  # noqa: N818 - it is an answer to the caller, not a fault of the agent
    """Carries the refusal and one line for the caller, without anything of the token in it."""

    def __init__(self, refusal: Refusal, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal

    @property
    def http_status(self) -> int:
        """403 for a good token of the wrong request, else 401."""
        return 403 if self.refusal in _FORBIDDEN else 401


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a token entitles to. Times are Unix seconds."""

    subject: str
    token_id: str
    probe: str | None
    args_sha256: str | None
    approved_by: str | None
    expires_at: float


def load_public_keys(path: Path) -> tuple[Ed25519PublicKey, ...]:
    """All Ed25519 public keys of a PEM file: two at once let a key be rotated without a gap.

    Raises:
        ConfigError: unreadable, no key in it, a key of another kind, or a block that is no whole public key.
    """
    try:
        text = path.read_text(encoding="ascii")
        blocks = _PEM.findall(text)
        keys = [load_pem_public_key(block.encode()) for block in blocks]
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(
            f"RCA_AGENT_PUBLIC_KEYS: {path} cannot be read as PEM: {error}; write it with `rca-bot agent keygen`"
        ) from error
    good = tuple(key for key in keys if isinstance(key, Ed25519PublicKey))
    if not good or len(good) != len(keys):
        raise ConfigError(
            f"RCA_AGENT_PUBLIC_KEYS: {path} must hold Ed25519 public keys only, and one at least"
        )
    begun = text.count("-----BEGIN ")
    if begun != len(good):
        # A key that is cut off would be missed at the rotation, and a private key is the bot's alone.
        raise ConfigError(
            f"RCA_AGENT_PUBLIC_KEYS: {path} begins {begun} PEM blocks and {len(good)} are whole public keys; "
            "leave public keys only in it"
        )
    return good


class TokenCheck:
    """Checks tokens for one node; remembers each token's id until it expires.

    `started_at`: a token issued before is refused, so that a restart, which forgets the ids, opens no replay.
    """

    def __init__(
        self,
        node: str,
        keys: tuple[Ed25519PublicKey, ...],
        *,
        started_at: float,
        used: Mapping[str, float] | None = None,
    ) -> None:
        self._node = node
        self._keys = keys
        self._started_at = started_at
        self._used: dict[str, float] = dict(used or {})
        self._forgotten_until = 0.0

    def replace_keys(self, keys: tuple[Ed25519PublicKey, ...]) -> None:
        """Trusts these keys from now on; requests that were let in before go on."""
        self._keys = keys

    def check(self, authorization: str | None, now: float) -> Grant:
        """Verifies signature, claims and single use; the id counts as used from here on.

        Raises:
            TokenRefused: with the reason.
        """
        claims = self._verified(authorization)
        grant = self._claims(claims, now)
        self._use(grant, now)
        return grant

    def _verified(self, authorization: str | None) -> Mapping[str, Any]:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise TokenRefused(
                Refusal.NO_TOKEN, "no bearer token; the bot signs one for each request"
            )
        token = token.strip()
        try:
            algorithm = jwt.get_unverified_header(token).get("alg")
        except jwt.InvalidTokenError as error:
            raise TokenRefused(Refusal.MALFORMED, "the token is no JWT") from error
        # Fixed here, never taken from the token: no `none`, and no HS256 with the public key as its secret.
        if algorithm != "EdDSA":
            raise TokenRefused(Refusal.WRONG_ALGORITHM, "the token must be signed with EdDSA")
        for key in self._keys:
            try:
                return self._decode(token, key)
            except jwt.InvalidSignatureError:
                continue
            except jwt.InvalidTokenError as error:
                raise TokenRefused(Refusal.MALFORMED, "the token's body cannot be read") from error
        raise TokenRefused(Refusal.BAD_SIGNATURE, "the signature is of none of this node's keys")

    def _decode(self, token: str, key: Ed25519PublicKey) -> Mapping[str, Any]:
        # Only the signature is checked by the library; the claims follow, each with its own reason.
        options: Any = {
            "verify_signature": True,
            "verify_exp": False,
            "verify_nbf": False,
            "verify_iat": False,
            "verify_aud": False,
            "verify_iss": False,
            "verify_sub": False,
            "verify_jti": False,
        }
        claims: Mapping[str, Any] = jwt.decode(token, key, algorithms=["EdDSA"], options=options)
        return claims

    def _claims(self, claims: Mapping[str, Any], now: float) -> Grant:
        if claims.get("iss") != ISSUER:
            raise TokenRefused(Refusal.WRONG_ISSUER, f"iss must be {ISSUER}")
        if claims.get("aud") not in (self._node, [self._node]):
            raise TokenRefused(Refusal.WRONG_AUDIENCE, "the token is for another node")
        issued, expires = _time(claims, "iat"), _time(claims, "exp")
        if expires <= now:
            raise TokenRefused(
                Refusal.EXPIRED, f"the token expired {now - expires:.0f} s ago by this node's clock"
            )
        if issued > now + FUTURE_LEEWAY_SECONDS:
            raise TokenRefused(
                Refusal.IN_FUTURE,
                f"the token is issued {issued - now:.0f} s ahead of this node's clock; compare the clocks",
            )
        if expires - issued > MAX_LIFETIME_SECONDS:
            raise TokenRefused(
                Refusal.TOO_LONG, f"the token lives longer than {MAX_LIFETIME_SECONDS} s"
            )
        if issued < self._started_at:
            raise TokenRefused(
                Refusal.BEFORE_START, "the token is older than this agent's start; sign a new one"
            )
        return Grant(
            subject=_text(claims, "sub"),
            token_id=_text(claims, "jti"),
            probe=_optional(claims, "probe"),
            args_sha256=_optional(claims, "args_sha256"),
            approved_by=_optional(claims, "approved_by"),
            expires_at=expires,
        )

    def _use(self, grant: Grant, now: float) -> None:
        for token_id in [key for key, expires in self._used.items() if expires <= now]:
            # Should the clock be set back, tokens of that time are valid again while their ids are forgotten.
            self._forgotten_until = max(self._forgotten_until, self._used.pop(token_id))
        if grant.token_id in self._used or grant.expires_at <= self._forgotten_until:
            raise TokenRefused(
                Refusal.REPLAYED, "the token was used before; each is for one request"
            )
        self._used[grant.token_id] = grant.expires_at


def require_request(grant: Grant, probe: str, args_sha256: str) -> None:
    """The token must name exactly this probe and these arguments.

    Raises:
        TokenRefused: it names others.
    """
    if grant.probe != probe:
        raise TokenRefused(Refusal.WRONG_PROBE, "the token is for another probe")
    if grant.args_sha256 != args_sha256:
        raise TokenRefused(Refusal.ARGS_ALTERED, "the arguments are not the ones that were signed")


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    # Bounded before anything is computed with it: JSON knows whole numbers that no float can hold.
    is_time = isinstance(value, (int, float)) and 0 <= value <= _LATEST_SECONDS
    if isinstance(value, bool) or not is_time:
        raise TokenRefused(Refusal.MISSING_CLAIM, f"claim {name} must be a time in seconds")
    return float(value)  # type: ignore[arg-type]


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 256:
        raise TokenRefused(
            Refusal.MISSING_CLAIM, f"claim {name} must be a text of 1 to 256 characters"
        )
    return value


def _optional(claims: Mapping[str, Any], name: str) -> str | None:
    return None if claims.get(name) is None else _text(claims, name)
