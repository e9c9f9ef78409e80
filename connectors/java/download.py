"""Downloads a file from one of several places, whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import http.client
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from tidegate.connectors.java.repositories import shown

log = logging.getLogger(__name__)

ATTEMPTS = 5  # in a row that have gained no byte
BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
TIMEOUT_SECONDS = 30
TOLD_EVERY_SECONDS = 5.0
BYTES_MAX = 100_000_000
_BLOCK_BYTES = 1 << 16
_HOPELESS = (400, 401, 403, 404, 410)  # another attempt would get the same


class FetchError(Exception):
    """No place has given the file; the message names the first place and its reason."""


def fetch(urls: Sequence[str], sha256: str) -> bytes:
    """The bytes with this digest, from the first of `urls` that has them. After a cut connection
    the download goes on where it ended; pauses double. Raises FetchError."""
    said = ""
    for url in urls:
        try:
            return _fetched(url, sha256)
        except FetchError as error:
            said = said or str(error)
    raise FetchError(said)


def _fetched(url: str, sha256: str) -> bytes:
    got, most, failures = bytearray(), 0, 0
    while True:
        try:
            _go_on(url, got)
            if hashlib.sha256(got).hexdigest() == sha256:
                return bytes(got)
            why = "what came is another file (its digest is wrong)"
            got.clear()
        except urllib.error.HTTPError as error:
            why = f"HTTP {error.code} {error.reason}"
            if error.code in _HOPELESS:
                raise FetchError(f"{shown(url)}: {why}") from error
        except (OSError, http.client.HTTPException) as error:
            why = _reason(error)
        failures = 1 if len(got) > most else failures + 1
        most = max(most, len(got))
        if failures >= ATTEMPTS:
            raise FetchError(f"{shown(url)}: {why}, tried {ATTEMPTS} times")
        pause = BACKOFF_SECONDS[failures - 1]
        log.info("%s: %s; trying again in %.0f s", url.rpartition("/")[2], why, pause)
        time.sleep(pause)


def _go_on(url: str, got: bytearray) -> None:
    """Read on after the bytes `got`; from the beginning where the server cannot resume."""
    with urllib.request.urlopen(_request(url, len(got)), timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
        if getattr(answer, "status", None) != http.client.PARTIAL_CONTENT:
            got.clear()
        size = len(got) + int(answer.headers.get("Content-Length") or 0)
        told = time.monotonic()
        while block := answer.read1(_BLOCK_BYTES) if hasattr(answer, "read1") else answer.read():
            got += block
            if len(got) > BYTES_MAX:
                raise FetchError(f"{shown(url)}: what comes is longer than any jar of Delta's")
            if time.monotonic() > told + TOLD_EVERY_SECONDS:
                told = time.monotonic()
                name = url.rpartition("/")[2]
                log.info("%s: %.1f of %.1f MB", name, len(got) / 1e6, size / 1e6)
    if len(got) < size:
        raise http.client.IncompleteRead(b"", size - len(got))


def _request(url: str, offset: int) -> urllib.request.Request:
    parts = urlsplit(url)
    headers = {"User-Agent": "tidegate"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return urllib.request.Request(shown(url), headers=headers)  # noqa: S310


def _reason(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "the connection was cut"
    cause = getattr(error, "reason", error)
    return str(cause) or type(cause).__name__
