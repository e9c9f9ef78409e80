"""One inbox for all rulebooks of a store, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from starlette.testclient import TestClient

from tests.connectors.http.conftest import BOOK, until
from tests.connectors.http.test_pages import figures
from tests.support.make import unplaced_by_event
from tidegate import rules
from tidegate.connectors.http.app import App, Beside
from tidegate.connectors.http.credentials import Guard
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.writer import Writer
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.store import SqlStore, open_store
from tidegate.rules.model import Rulebook, Settings

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
def store(slow_store_url: str, request: pytest.FixtureRequest) -> Iterator[SqlStore]:
    with open_store(slow_store_url, create=True) as opened:
        if "without_a_rulebook" in request.node.name:
            yield opened
            return
        opened.of("shop").versions.register(BOOK, None)
        opened.of("cash").versions.register(CASH, None)
        yield opened


@dataclass
class Process:
    """What the engines beside the inbox do."""

    waits: bool = False
    activities: dict[str, Activity] = field(default_factory=dict)
    checking: list[Rulebook] = field(default_factory=list)


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def client(store: SqlStore, process: Process) -> Iterator[TestClient]:
    source, writer = Source(store, may_be_empty=True), Writer(store, lambda: None)
    beside = Beside(
        lambda: process.waits, lambda: process.activities, lambda: tuple(process.checking)
    )
    app = App(source, writer, Guard((), 300), Settings(), beside)
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
    client: TestClient, process: Process
) -> None:
    process.activities = {"shop": Activity("idle"), "cash": Activity("starting", "starting Spark")}
    found = client.get("/readyz")
    assert (found.status_code, found.json()["error"]["code"]) == (503, "starting")
    assert "cash (starting Spark)" in found.json()["error"]["message"]
    assert client.get("/healthz").json() == {
        "status": "ok",
        "rulebooks": {
            "shop": {"state": "idle"},
            "cash": {"state": "starting", "doing": "starting Spark"},
        },
    }
    process.activities["cash"] = Activity("waiting", "an outage to end: /secret/path")
    assert client.get("/readyz").json() == {"status": "ready"}
    assert "secret" not in client.get("/healthz").text


def test_one_that_was_asked_to_stop_is_not_ready_and_takes_signals(
    client: TestClient, process: Process
) -> None:
    process.activities = {
        name: Activity("idle").ending("asking conditions, 12 of 200") for name in ("shop", "cash")
    }
    found = client.get("/readyz")
    assert (found.status_code, found.json()["error"]["code"]) == (503, "stopping")
    assert "shop (asking conditions, 12 of 200)" in found.json()["error"]["message"]
    assert client.get("/healthz").json()["rulebooks"]["shop"]["state"] == "stopping"
    assert client.post("/signals/counted", json={}).status_code == 202


def test_a_standby_takes_signals_and_is_not_ready(client: TestClient, process: Process) -> None:
    assert client.get("/readyz").json() == {"status": "ready"}
    process.waits = True
    found = client.get("/readyz")
    assert (found.status_code, found.json()["error"]["code"]) == (503, "standby")
    assert client.get("/healthz").is_success
    assert client.post("/signals/counted", json={}).status_code == 202


def test_while_a_rulebook_is_checked_only_signals_that_stay_as_they_are_are_taken(
    client: TestClient, process: Process
) -> None:
    text = CASH.replace("ordered: {signal: {id: bigint}}", "ordered: {signal: {id: string}}")
    process.checking = [rules.load(text.replace("counted: {", "fresh: {signal: {}}\n  counted: {"))]
    assert client.post("/signals/counted", json={}).status_code == 202
    for event in ("ordered", "fresh"):
        found = client.post(f"/signals/{event}", json={"id": 7})
        assert (found.status_code, found.json()["error"]["code"]) == (503, "starting")
        assert int(found.headers["retry-after"]) > 0
    assert client.post("/signals/unknown", json={}).status_code == 404
    process.checking.clear()
    assert client.post("/signals/ordered", json={"id": 7}).status_code == 202


def test_a_store_without_a_rulebook_answers_while_its_first_engine_starts(
    client: TestClient, store: SqlStore, process: Process
) -> None:
    """The rulebook is in the store before Spark is asked for; its signals are taken from then."""
    late = rules.load(CASH.replace("rulebook: cash", "rulebook: late"))
    process.checking, process.activities = [late], {"late": Activity("starting", "starting Spark")}
    assert client.get("/metrics").is_success
    assert client.get("/openapi.json").is_success
    assert client.get("/readyz").json()["error"]["code"] == "starting"
    assert client.post("/signals/counted", json={}).status_code == 503
    store.of("late").versions.register(late.text, None)
    until(lambda: client.post("/signals/counted", json={}).status_code == 202)
