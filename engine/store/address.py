"""The URL of a store: parsed, refused, and shown without secrets."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import quote, quote_plus

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from tidegate.rules.errors import EngineError

_HARMLESS = frozenset({"host", "port", "sslmode", "target_session_attrs", "application_name"})
_SECRET_CHARACTERS_MIN = 3  # a shorter one would be found in any text
_HINT = "write sqlite:///folder/bank.db or postgresql://user@host/database"


def parse_url(text: str) -> sa.URL:
    """The URL of an SQLite file or a PostgreSQL database. Raises EngineError `bad-store-url`."""
    shown = _unread(text)
    if not text.startswith("sqlite") and text.partition("?")[0].count("@") > 1:
        hint = "in a user's name or password write @ as %40, / as %2F and : as %3A"
        raise EngineError("bad-store-url", f"{shown!r} has more than one @", hint)
    try:
        url = sa.make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        # Not `from` the error, which may quote any part of the text.
        raise EngineError("bad-store-url", f"{shown!r} is no URL of a store", _HINT) from None
    shown = redacted(url)
    if backend == "sqlite" and (url.database or ":").startswith((":", "file:")):
        raise EngineError("bad-store-url", f"{shown!r} names no file; it would not last", _HINT)
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise EngineError("bad-store-url", f"{shown!r} is neither SQLite nor PostgreSQL", _HINT)
    return url


def redacted(url: sa.URL) -> str:
    """The URL without its password and without options that may be secret."""
    return url.difference_update_query(_hidden(url)).render_as_string(hide_password=True)


def store_option(url: sa.URL) -> str:
    """The option that names the store on a command line: `--store URL`. Secrets are shown as ***,
    with the advice to put the whole URL there."""
    shown = redacted(url)
    if _hidden(url):
        shown += "&***" if "?" in shown else "?***"
    option = f"--store {shlex.quote(shown)}"
    return f"{option} (the whole URL: *** is left out here)" if "***" in shown else option


def _hidden(url: sa.URL) -> list[str]:
    """The options of a URL that may be secret. SQLite has none."""
    return [] if url.drivername == "sqlite" else [n for n in url.query if n not in _HARMLESS]


def without_secrets(text: str, url: sa.URL) -> str:
    """A message of the driver without the secrets of a URL, in all their spellings."""
    options = (value for name, value in url.query.items() if name not in _HARMLESS)
    values = [url.password, *options]
    flat = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
    for secret in (str(value) for value in flat if value):
        if len(secret) >= _SECRET_CHARACTERS_MIN:
            written = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
            written |= {repr(secret)[1:-1], secret.replace("\\", "\\\\").replace("'", "\\'")}
            for form in sorted(written, key=len, reverse=True):
                text = text.replace(form, "***")
    return text


def _unread(text: str) -> str:
    """The part of an invalid URL that may be shown: its scheme. The rest may hold a password."""
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)", text)
    if (scheme is None and "@" not in text) or (scheme and scheme[0].startswith("sqlite")):
        return text
    return f"{scheme[0]}:***" if scheme else "***"


def default_store(rulebook: Path) -> str:
    """SQLite beside the rulebook: `bank.yaml` -> `bank.db`."""
    return f"sqlite:///{rulebook.resolve().with_suffix('.db')}"
