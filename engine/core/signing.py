"""Signatures of requests to the inbox and of webhooks (G28, G29).

The signed text is the time of sending (seconds), the method, the request target (the path, with
`?` and the query if there is one) and the body, with a line break after each of the first three:

    1772442000\nPOST\n/signals/reported\n{"account_id": 7}

The first three cannot hold a line break, so two requests never have the same text.
"""

from __future__ import annotations

import hmac

SIGNATURE = "x-tidegate-signature"
SECRET_CHARACTERS_MIN = 16


def signed(secret: bytes, at: bytes, method: bytes, target: bytes, body: bytes) -> bytes:
    """HMAC-SHA256 over a request. `target`: as in the request line, not decoded."""
    return hmac.digest(secret, b"\n".join((at, method, target, body)), "sha256")


def signature(secret: bytes, at: int, method: str, target: str, body: bytes) -> str:
    """The value of the header SIGNATURE."""
    digest = signed(secret, str(at).encode(), method.encode(), target.encode(), body)
    return f"t={at},v2={digest.hex()}"
