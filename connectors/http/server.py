"""The inbox on a socket. At its end, every request that was accepted has its answer."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import uvicorn

from tidegate.connectors.http.app import ALONE, App, Beside, Shown
from tidegate.connectors.http.credentials import Guard, Key, load_keys
from tidegate.connectors.http.protocol import connections
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.writer import Writer
from tidegate.engine.core.policy import Policy
from tidegate.engine.store import SqlStore, open_store
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Settings

log = logging.getLogger(__name__)
STOP_SECONDS = 30  # for requests that are being answered
SECONDS_PER_DAY = 86_400
_BEGIN_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Address:
    """Where the inbox listens; port 0: any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """`HOST:PORT`, an IPv6 address in brackets. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets, as in [::1]:8080")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ValueError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8080")
    return Address(host, int(port))


class Inbox:
    """An HTTP inbox. The constructor takes the port; clients wait until `begin`. `close` ends it.

    Raises EngineError `inbox-secret`, `port-taken`, and `inbox-open`: there are no keys, and other
    machines could reach the address; `console-closed`: a console without a key for it.
    """

    def __init__(self, address: Address, policy: Policy, console: Shown | None = None) -> None:
        self._keys: Sequence[Key] = load_keys(policy)
        self._console = console
        if console is not None and self._keys and not policy.console_keys:
            raise EngineError(
                "console-closed",
                "the policy names keys, and none that may see the console",
                "list some: console_keys: {NAME: [view, operate]}",
            )
        self._stack = ExitStack()
        self._socket = _bound(address, guarded=bool(self._keys))
        self._stack.callback(self._socket.close)
        self.address = Address(address.host, int(self._socket.getsockname()[1]))

    def close(self) -> None:
        """Accept nothing more, answer what was accepted, give the port back."""
        self._stack.close()

    def begin(
        self,
        store_url: str,
        rulebook: str | None = None,
        limits: Settings | None = None,
        on_written: Callable[[], None] = lambda: None,
        beside: Beside | None = None,
    ) -> Self:
        """Answer from now on, in a thread: for one rulebook of the store, or for all.

        `limits`: by default those of the rulebooks. `beside`: the engines of this process. With
        them, the store may have no rulebook yet.
        """
        store: SqlStore = self._stack.enter_context(open_store(store_url, create=False))
        source = Source(store, rulebook, may_be_empty=beside is not None)
        limits = limits or source.limits
        _check_window(limits)
        writer = Writer(store, on_written)
        self._stack.callback(writer.close)
        guard = Guard(self._keys, limits.inbox_window_seconds)
        app = App(source, writer, guard, limits, beside or ALONE, self._console)
        server = _server(app, limits)
        thread = threading.Thread(
            target=server.run, args=([self._socket],), name="inbox", daemon=True
        )
        thread.start()
        self._stack.callback(_stop, app, server, thread)
        while not server.started and thread.is_alive():
            time.sleep(_BEGIN_SECONDS)
        if not thread.is_alive():
            raise EngineError("inbox-failed", f"the inbox at {self.address} does not begin")
        names = dict.fromkeys((*source.known, *(beside.activities() if beside else ())))
        log.info("inbox of %s at http://%s", ", ".join(names), self.address)
        if self._console is not None:
            log.info("console at http://%s/console", self.address)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound(address: Address, *, guarded: bool) -> socket.socket:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        message = f"{address.host} is no host of this machine: {error.strerror}"
        raise EngineError("bad-address", message, "name one, such as 127.0.0.1") from None
    family, _, _, _, place = found[0]
    if not guarded and not ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback:
        raise EngineError(
            "inbox-open",
            f"everybody who can reach {address.host} could raise signals: no key is configured",
            "list keys in the policy, inbox_keys: {NAME: [SIGNAL, ..]}, or listen on 127.0.0.1",
        )
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen()  # else another program could still take it
    except OSError as error:
        made.close()
        message = f"the inbox cannot listen on {address}: {error.strerror}"
        hint = "end what listens there, or name another port (0: any that is free)"
        raise EngineError("port-taken", message, hint) from None
    return made


def _check_window(settings: Settings) -> None:
    """Raises EngineError where a signature stays valid after the ids of its signals are forgotten:
    the request could be sent again (G28). Twice the window counts: the client's clock may be ahead.
    """
    if 2 * settings.inbox_window_seconds > settings.history_retention_days * SECONDS_PER_DAY:
        raise EngineError(
            "inbox-window",
            f"a request signed inbox_window_seconds = {settings.inbox_window_seconds} ago could be "
            f"sent again after its ids are forgotten, {settings.history_retention_days} days",
            "make the window shorter",
        )


def _server(app: App, settings: Settings) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app.asgi,
            http=connections(settings.inbox_client_seconds_max, settings.inbox_connections_max),
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.ERROR,
            access_log=False,
            proxy_headers=False,  # anybody could write another address there
            server_header=False,
            backlog=settings.inbox_connections_max,
            limit_concurrency=settings.inbox_connections_max,
            timeout_keep_alive=settings.inbox_client_seconds_max,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    )


def _stop(app: App, server: uvicorn.Server, thread: threading.Thread) -> None:
    """Accept nothing more; what was accepted is written and answered."""
    app.streams.stopping = True
    server.should_exit = True
    thread.join()
