"""One inbox for all rulebooks of a store, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.testclient import TestClient

from tests.connectors.http.conftest import BOOK, until
from tests.connectors.http.test_pages import figures
from tests.support.make import unplaced_by_event
from tidegate.connectors.http.app import App
from tidegate.connectors.http.credentials import Guard
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.writer import Writer
from tidegate.engine.store import SqlStore, open_store

CASH = """\
rulebook: cash
events:
  atm_empty: {signal: {atm_id: string, amount: "decimal(12,2)"}}
  ordered: {signal: {id: bigint}}
  counted: {signal: {}}
rules:
  refilled: {on: "atm_empty ; counted"}
  noticed: {on: counted}
"""


@pytest.fixture
def store(slow_store_url: str) -> Iterator[SqlStore]:
    with open_store(slow_store_url, create=True) as opened:
        opened.of("shop").versions.register(BOOK, None)
        opened.of("cash").versions.register(CASH, None)
        yield opened


@pytest.fixture
def waits() -> list[bool]:
    """Whether its engines wait for others; whether one has not looked yet."""
    return [False, False]


@pytest.fixture
def client(store: SqlStore, waits: list[bool]) -> Iterator[TestClient]:
    source, writer = Source(store), Writer(store, lambda: None)
    starting = lambda: ("cash",) * waits[1]  # noqa: E731
    app = App(source, writer, Guard((), 300), source.limits, lambda: waits[0], starting)
    with ExitStack() as stack:
        stack.callback(writer.close)
        yield stack.enter_context(TestClient(app.asgi, base_url="http://127.0.0.1"))


def test_g04_a_signal_goes_to_every_rulebook_that_declares_it_or_to_none(
    client: TestClient, store: SqlStore
) -> None:
    both = client.post("/signals/ordered", json=[{"id": 7, "$id": "a"}, {"id": 8}])
    assert (both.status_code, both.json()["rulebooks"]) == (202, ["cash", "shop"])
    one = client.post("/signals/counted", json={"id": "z"})
    assert one.json() == {"ids": ["z"], "rulebooks": ["cash"]}
    assert unplaced(store) == {"cash": 3, "shop": 2}

    wrong = client.post("/signals/atm_empty", json={"atm_id": "7", "amount": 1, "id": "b"})
    (problem,) = wrong.json()["error"]["problems"]
    assert (wrong.status_code, problem["path"]) == (400, "atm_id")
    assert problem["message"].startswith("rulebook shop: field `atm_id`")
    assert client.post("/signals/atm_empty", json={"atm_id": None, "amount": 1}).is_success
    assert unplaced(store) == {"cash": 4, "shop": 3}

    taken = client.post("/signals/ordered", json=[{"id": 9, "$id": "c"}, {"id": 9, "$id": "a"}])
    assert (taken.status_code, taken.json()["error"]["path"]) == (409, "[1]")
    unknown = client.post("/signals/orderd", json={}).json()["error"]
    assert unknown["message"] == "no rulebook declares a signal `orderd` (cash, shop)"
    assert "ordered" in unknown["hint"]
    assert unplaced(store) == {"cash": 4, "shop": 3}


def unplaced(store: SqlStore) -> dict[str, int]:
    return {name: sum(unplaced_by_event(store, name).values()) for name in ("cash", "shop")}


def test_a_rule_is_waited_for_by_its_name_and_where_two_have_it_by_its_rulebook(
    client: TestClient,
) -> None:
    def refused(words: str) -> tuple[int, str, str]:
        found = client.get(f"/events/stream?since=nowhere&{words}")
        error = found.json()["error"]
        return found.status_code, error["code"], error["hint"]

    for words in ("name=refilled", "name=noticed&rulebook=cash", "name=atm_empty&rulebook=shop"):
        assert refused(words)[:2] == (400, "bad-position")  # all but the position is right
    assert refused("name=noticed") == (400, "which-rulebook", "name one: &rulebook=cash")
    assert refused("name=noticed&rulebook=none")[:2] == (404, "no-rulebook")
    assert refused("name=noticd")[:2] == (404, "unknown-name")
    assert refused("name=placed")[1] == "not-kept"


def test_pages_tell_of_all_rulebooks_and_of_one_that_comes_later(
    client: TestClient, store: SqlStore
) -> None:
    told = client.get("/openapi.json").json()
    schemas = told["components"]["schemas"]
    assert told["info"]["title"] == "signals of cash, shop"
    assert len(schemas["signal.atm_empty"]["allOf"]) == 2
    assert schemas["signal.ordered"]["required"] == ["id"]
    found = figures(client)
    assert found["tidegate_store_up", "shop"] == found["tidegate_store_up", "cash"] == 1
    assert found["tidegate_firings_total", "noticed,cash"] == 0
    store.of("late").versions.register(CASH.replace("rulebook: cash", "rulebook: late"), None)
    until(lambda: "late" in client.post("/signals/counted", json={}).json()["rulebooks"])


def test_it_is_not_ready_before_every_rulebook_has_had_its_first_look(
    client: TestClient, waits: list[bool]
) -> None:
    waits[1] = True
    found = client.get("/readyz")
    assert (found.status_code, found.json()["error"]["code"]) == (503, "starting")
    assert "cash" in found.json()["error"]["message"]
    waits[1] = False
    assert client.get("/readyz").json() == {"status": "ready"}


def test_a_standby_takes_signals_and_is_not_ready(client: TestClient, waits: list[bool]) -> None:
    assert client.get("/readyz").json() == {"status": "ready"}
    waits[0] = True
    found = client.get("/readyz")
    assert (found.status_code, found.json()["error"]["code"]) == (503, "standby")
    assert client.get("/healthz").is_success
    assert client.post("/signals/counted", json={}).status_code == 202
