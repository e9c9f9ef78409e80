"""Signatures over time and body: of what clients send to the inbox, and of webhooks (G28, G29)."""

from __future__ import annotations

import hmac

SIGNATURE = "x-tidegate-signature"
SECRET_CHARACTERS_MIN = 16


def signed(secret: bytes, at: bytes, body: bytes) -> bytes:
    """HMAC-SHA256 over the time of sending, seconds as text, a dot and the body."""
    return hmac.digest(secret, b"%s.%s" % (at, body), "sha256")


def signature(secret: bytes, at: int, body: bytes) -> str:
    """The value of the header SIGNATURE."""
    return f"t={at},v1={signed(secret, str(at).encode(), body).hex()}"
