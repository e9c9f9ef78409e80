"""A console in this process, over a store on disk; no engine, no socket, no browser."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from tests.connectors.http.conftest import BOOK as BOOK
from tests.support import make
from tidegate import rules
from tidegate.connectors.http.app import App
from tidegate.connectors.http.console.sessions import COOKIE
from tidegate.connectors.http.credentials import Guard, load_keys
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.writer import Writer
from tidegate.engine.app.serve import console_of
from tidegate.engine.control.console import firings
from tidegate.engine.core.policy import Policy
from tidegate.engine.core.values import Rejected
from tidegate.engine.store import SqlStore

ADA, BOB = "a" * 20, "b" * 20
SECRETS = {"TIDEGATE_SECRET_ADA": ADA, "TIDEGATE_SECRET_BOB": BOB, "TIDEGATE_SECRET_TILL": "t" * 20}
POLICY = Policy(
    console_keys={"ada": frozenset({"view", "operate"}), "bob": frozenset({"view"})},
    inbox_keys={"till": frozenset({"rung"})},
)
HOST = "http://127.0.0.1"
OWN = {"sec-fetch-site": "same-origin"}
TEXT = "account"
Consoles = Callable[..., TestClient]


@contextmanager
def console(
    store: SqlStore,
    *,
    guarded: bool = False,
    reports: Path | None = None,
    rulebook: str | None = None,
    **settings: str,
) -> Iterator[TestClient]:
    """A browser's stand-in at a console over a store, or over one `rulebook` of it; with keys if
    `guarded`. It follows no redirect."""
    (kept, *_) = store.rulebooks().values()
    limits = rules.load(kept.text, settings=settings).settings
    keys = load_keys(POLICY, SECRETS) if guarded else ()
    guard = Guard(keys, limits.inbox_window_seconds)
    writer = Writer(store, lambda: None)
    app = App(Source(store, rulebook), writer, guard, limits, console=console_of(reports))
    with TestClient(app.asgi, base_url=HOST, follow_redirects=False) as client:
        yield client
    writer.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages look for as long as it takes: what is found must not depend on the machine."""
    monkeypatch.setattr(firings, "LOOK_SECONDS", math.inf)


@pytest.fixture
def consoles(store: SqlStore) -> Iterator[Consoles]:
    """Makes what `console` does."""
    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(console(store, **given))


@pytest.fixture
def anybody(consoles: Consoles) -> TestClient:
    """At a console without keys."""
    return consoles()


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is logged in. `token`: what the forms of the session hold."""

    client: TestClient
    token: str

    def press(self, path: str, **form: str) -> tuple[int, str]:
        """Send a form of a page as a browser does; the status, and where it leads or what it
        says."""
        fields = {"token": self.token, **form}
        found = self.client.post(f"/console/{path}", data=fields, headers=OWN)
        return found.status_code, found.headers.get("location") or found.text


def log_in(client: TestClient, name: str = "ada", secret: str = ADA) -> Visitor:
    """Log in as a browser does."""
    form = {"name": name, "secret": secret, "next": "/console/rules"}
    found = client.post("/console/login", data=form, headers=OWN)
    assert (found.status_code, found.headers["location"]) == (303, "/console/rules")
    assert COOKIE in client.cookies
    page = client.get("/console/overview").text
    return Visitor(client, page.partition('name="token" value="')[2].partition('"')[0])


@pytest.fixture
def ada(consoles: Consoles) -> Visitor:
    """Logged in with all rights."""
    return log_in(consoles(guarded=True))


def fill(store: SqlStore, texts: Sequence[str] = (TEXT, TEXT)) -> list[str]:
    """A bucket with a firing of `noticed` for each text, which its rows hold; with entries that are
    dead of an error with the text, and rows that were rejected for it. The ids of the firings."""
    epoch = store.of("shop").lease.acquire("one", 60)
    fired = make.firings("noticed", len(texts))
    notes = pa.array([text for text in texts for _ in range(2)])
    fired = replace(fired, relation=fired.relation.append_column("note", notes))
    made = make.plan(rulebook="shop", activations={"noticed": make.BEGIN}, now=store.wall())
    entries = make.commit(
        store,
        epoch,
        made,
        fired=[fired],
        entries=[make.entry("noticed", number) for number in range(len(texts))],
        rejected=[Rejected("placed", text, text, {"note": text}, text) for text in texts],
        digests={"noticed": "d"},
    )
    each = zip(entries, texts, strict=True)
    dead = [make.outcome(entry, "dead", 3, text, details=text) for entry, text in each]
    store.of("shop", epoch).outbox.settle(dead)
    return make.hex_ids(fired)
