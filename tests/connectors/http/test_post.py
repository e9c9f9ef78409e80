"""`POST /signals/EVENT`: what is answered, and what is in the store then (G4, G28)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.connectors.http.conftest import Serve
from tests.support.make import BEGIN, SECOND
from tidegate.connectors.http import inbox_limits, requests, writer
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.values import Signal
from tidegate.engine.store import SqlStore
from tidegate.engine.store.status import Status

EVENTS = ("atm_empty", "moved", "ordered", "rung")


def waiting(store: SqlStore) -> list[Signal]:
    return [*store.of("shop").signals.unplaced(EVENTS, BEGIN, 100_000).signals]


def error(client: TestClient, event: str, body: Any, status: int) -> dict[str, Any]:
    given = {"json": body} if not isinstance(body, bytes) else {"content": body}
    headers = {"content-type": "application/json"}
    found = client.post(f"/signals/{event}", headers=headers, **given)
    assert (found.status_code, [*found.json()]) == (status, ["error"]), found.text
    told: dict[str, Any] = found.json()["error"]
    assert {"code", "message", "hint", "path"} <= told.keys()
    return told


def test_g04_one_object_is_in_the_store_once_its_id_is_answered(
    client: TestClient, store: SqlStore
) -> None:
    found = client.post("/signals/atm_empty", json={"atm_id": 4, "amount": 12.5, "id": "a"})
    assert (found.status_code, found.json()) == (202, {"ids": ["a"], "rulebooks": ["shop"]})
    drawn = client.post("/signals/atm_empty", json={"atm_id": 5, "amount": None}).json()["ids"]
    first, second = waiting(store)
    assert (first.id, first.fields) == ("a", {"atm_id": 4, "amount": "12.50"})
    assert ([second.id], second.fields) == (drawn, {"atm_id": 5, "amount": None})
    assert first.received_at < second.received_at
    again = client.post("/signals/atm_empty", json={"id": "a", "amount": "12.50", "atm_id": 4})
    assert (again.status_code, again.json()) == (202, {"ids": ["a"], "rulebooks": ["shop"]})
    assert len(waiting(store)) == 2


def test_g04_receipt_goes_on_though_the_clock_goes_back(
    client: TestClient, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals keep the order in which they were taken."""
    for number, second in enumerate((60, 50, 50, 61)):
        monkeypatch.setattr(store, "wall", lambda at=BEGIN + second * SECOND: at)
        assert client.post("/signals/ordered", json={"id": number}).is_success
    found = store.of("shop").signals.unplaced(EVENTS, BEGIN + 99 * SECOND, 99).signals
    assert [signal.fields["id"] for signal in found] == [0, 1, 2, 3]
    received = [signal.received_at - BEGIN for signal in found]
    assert received == [60 * SECOND, 60 * SECOND + 1, 60 * SECOND + 2, 61 * SECOND]


def test_an_array_is_raised_at_one_instant_or_not_at_all(
    client: TestClient, store: SqlStore
) -> None:
    rows = [{"atm_id": n, "amount": n} for n in range(9)]
    drawn = client.post("/signals/atm_empty", json=rows).json()["ids"]
    assert [s.fields["atm_id"] for s in waiting(store)] == [*range(9)]
    assert [s.id for s in waiting(store)] == drawn
    assert len({s.received_at for s in waiting(store)}) == 1
    a, b = ({"id": name, "atm_id": 1, "amount": 1} for name in "ab")
    for body, path in (([a, b, {**a, "atm_id": 2}], "[2]"), ([b, {**b, "amount": 2}, a], "[1]")):
        told = error(client, "atm_empty", body, 409)
        assert (told["code"], told["path"]) == ("signal-conflict", path)
        assert len(waiting(store)) == 9
    assert client.post("/signals/atm_empty", json=[a, b, a]).json()["ids"] == ["a", "b", "a"]
    assert len(waiting(store)) == 11
    told = error(client, "rung", {"id": "a"}, 409)
    assert told["hint"].startswith("an id means one occurrence")


def test_a_field_called_id_is_a_field_and_the_id_is_written_otherwise(
    client: TestClient, store: SqlStore
) -> None:
    client.post("/signals/ordered", json=[{"id": 7}, {"id": 8, "$id": "x"}])
    assert sorted((s.fields["id"], len(s.id)) for s in waiting(store)) == [(7, 36), (8, 1)]
    assert error(client, "ordered", {"id": 7, "$id": 9}, 400)["path"] == "$id"


@pytest.mark.parametrize(
    ("event", "body", "paths"),
    [
        ("atm_empty", {"atm_id": "4", "amuont": 1}, ["atm_id", "amount", "amuont"]),
        ("atm_empty", {"atm_id": 1.5, "amount": 1.005}, ["atm_id", "amount"]),
        ("atm_empty", [{"atm_id": 1, "amount": 1}, 7, {"atm_id": 2}], ["[1]", "[2].amount"]),
        ("atm_empty", {"id": "\n", "atm_id": 1, "amount": 1}, ["id"]),
        ("atm_empty", {"id": 7, "atm_id": 1, "amount": 1}, ["id"]),
        ("atm_empty", {"id": "x" * 201, "atm_id": 1, "amount": 1}, ["id"]),
        ("atm_empty", {"atm_id": 2**63, "amount": True}, ["atm_id", "amount"]),
        (
            "moved",
            {"pos": {"x": 1, "y": "far"}, "tags": ["a", 1], "at": "yesterday"},
            ["pos.y", "tags[1]", "at"],
        ),
        ("moved", [{"pos": {"z": 1}, "tags": {}, "at": None}], ["[0].pos.z", "[0].tags"]),
        ("rung", {"x" * 9_999: 1}, ["x" * 100 + ".. (9,999 characters)"]),
    ],
)
def test_every_wrong_field_is_named_by_its_path(
    client: TestClient, store: SqlStore, event: str, body: Any, paths: list[str]
) -> None:
    told = error(client, event, body, 400)
    assert [problem["path"] for problem in told["problems"]] == paths
    assert (told["path"], told["message"]) == (paths[0], told["problems"][0]["message"])
    assert waiting(store) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "expecting value"),
        (b"{", "line 1, column 2"),
        (b"7", "neither an object nor an array"),
        (b'{"atm_id": 1, "amount": 1, "amount": 2}', "an object names 'amount' twice"),
        (b'{"atm_id": NaN, "amount": 1}', "NaN is not JSON"),
        (b'{"atm_id": -Infinity, "amount": 1}', "-Infinity is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"atm_id": ' + b"9" * 5_000 + b', "amount": 1}', "has 5000 digits"),
        (b'{"atm_id": 1, "amount": 1e%s}' % (b"9" * 20), "an exponent without bounds"),
        (b'{"atm_id": "\xff"}', "byte 12 is not UTF-8"),
        ('{"atm_id": 1}'.encode("utf-16"), "byte 0 is not UTF-8"),
        (b"[]", "the array is empty"),
    ],
)
def test_what_is_not_json_is_refused(client: TestClient, body: bytes, said: str) -> None:
    assert said in error(client, "atm_empty", body, 400)["message"]


def test_half_a_character_is_refused_and_shown_as_an_escape(client: TestClient) -> None:
    told = error(
        client, "moved", b'{"\\ud800": 1, "pos": null, "tags": ["\\udfff"], "at": null}', 400
    )
    assert [p["path"] for p in told["problems"]] == ["tags[0]", "\ud800"]


def test_an_event_that_cannot_be_raised_is_not_found(client: TestClient) -> None:
    told = error(client, "atm_emtpy", {}, 404)
    assert (told["code"], told["hint"]) == ("unknown-signal", "did you mean 'atm_empty'?")
    assert "is not a signal" in error(client, "placed", {}, 404)["message"]
    assert "is not declared" in error(client, "noticed", {}, 404)["message"]
    for path in ("/", "/signals", "/signals/", "/signals/a/b", "/docs"):
        assert client.post(path).json()["error"]["code"] == "not-found"


def test_methods_types_and_sizes_are_limited(serve: Serve, store: SqlStore) -> None:
    client = serve(settings={"inbox_bytes_max": "100", "inbox_batch_max": "3"})
    for method, path in (("GET", "/signals/rung"), ("PUT", "/signals/rung"), ("POST", "/metrics")):
        found = client.request(method, path)
        assert (found.status_code, found.json()["error"]["code"]) == (405, "method-not-allowed")
        assert found.headers["allow"] in ("POST", "GET")
    assert client.head("/events/stream").status_code == 405
    for headers in (
        {"content-type": "text/plain"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ):
        assert client.post("/signals/rung", content=b"{}", headers=headers).status_code == 415
    assert client.post("/signals/rung", content=b"{}").status_code == 415
    assert error(client, "rung", [{}] * 4, 413)["code"] == "too-many-signals"
    assert error(client, "rung", b" " * 99 + b"{}", 413)["code"] == "too-large"
    json_type = {"content-type": "application/json; charset=utf-8"}
    chunked = client.post("/signals/rung", content=iter([b"{}", b" " * 99]), headers=json_type)
    assert chunked.status_code == 413
    assert client.post("/signals/rung", content=iter([b"{", b"}"]), headers=json_type).is_success
    assert client.post("/signals/rung", content=b" " * 98 + b"{}", headers=json_type).is_success
    assert len(waiting(store)) == 2


def test_a_client_may_send_so_many_requests_a_second(serve: Serve) -> None:
    client = serve(settings={"inbox_requests_per_second_max": "2"})
    found = [client.post("/signals/rung", json={}) for _ in range(8)]
    codes = [one.status_code for one in found]
    assert codes[:2] == [202, 202]
    assert codes[-1] == 429
    assert found[-1].headers["retry-after"] == "1"


def test_a_rate_holds_a_second_s_worth_and_fills_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_limits, "CLIENTS_MAX", 2)
    now = 0.0
    limited = inbox_limits.Rates(2, lambda: now)
    assert [limited.take("a") for _ in range(9)] == [True] * 2 + [False] * 7
    now = 0.5
    assert [limited.take("a") for _ in range(2)] == [True, False]  # what was refused costs nothing
    now = 60.0
    assert [limited.take("a") for _ in range(3)] == [True, True, False]
    assert [limited.take("b"), limited.take("b"), limited.take("a")] == [True, True, False]
    assert limited.take("c")  # the one that was heard of last is kept, `b` is forgotten
    assert [limited.take(client) for client in "ab"] == [False, True]


def test_what_was_written_waits_no_more(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WAITING_SIGNALS_MAX", 0)
    assert [client.post("/signals/rung", json={}).status_code for _ in range(3)] == [202] * 3


def test_a_store_that_is_away_is_told_and_nothing_is_answered_as_done(
    client: TestClient, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise OutageError("store-unreachable", "store postgresql://u@secret is away", "wait")

    with monkeypatch.context() as patched:
        patched.setattr(store, "raise_posted", away)
        patched.setattr(Status, "shown", away)
        told = error(client, "rung", {}, 503)
        assert "secret" not in json.dumps(told)
        assert client.get("/readyz").status_code == 503
        assert 'tidegate_store_up{rulebook="shop"} 0.0' in client.get("/metrics").text
    assert client.post("/signals/rung", json={}).is_success


def test_what_is_held_at_a_time_is_limited(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "HELD_BODIES", 0)
    assert error(client, "rung", {}, 503)["code"] == "busy"
    monkeypatch.undo()
    assert client.post("/signals/rung", json={}).is_success
