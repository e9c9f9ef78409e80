"""What the inbox tells of itself: OpenAPI, health, figures."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import replace
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.connectors.http.conftest import BOOK, Serve
from tests.support import make
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.state import Parked
from tidegate.engine.store import SqlStore


def test_openapi_lists_each_signal_with_what_it_takes(client: TestClient) -> None:
    told = client.get("/openapi.json").json()
    assert told["openapi"] == "3.1.0"
    names = {"atm_empty", "moved", "ordered", "rung"}
    assert told["paths"].keys() == {"/events/stream"} | {f"/signals/{name}" for name in names}
    assert "securitySchemes" not in told["components"]
    for path in told["paths"].values():
        for operation in path.values():
            assert {"operationId", "summary", "responses"} <= operation.keys()
    for reference in set(_references(told)):
        at: Any = told
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
    for schema in told["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for item in value for found in _references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if "$ref" in value else []
    return own + [found for item in value.values() for found in _references(item)]


@pytest.mark.parametrize(
    ("event", "body", "fits"),
    [
        ("atm_empty", {"atm_id": 4, "amount": "12.50", "id": "a"}, True),
        ("atm_empty", {"atm_id": None, "amount": 12.5}, True),
        ("atm_empty", {"atm_id": "4", "amount": 1}, False),
        ("atm_empty", {"atm_id": 2**63, "amount": 1}, False),
        ("atm_empty", {"atm_id": 4}, False),
        ("atm_empty", {"atm_id": 4, "amount": 1, "id": ""}, False),
        ("moved", {"pos": {"x": 1, "y": 2.5}, "tags": ["a", None], "at": "2026-03-02"}, True),
        ("moved", {"pos": {"z": 1}, "tags": [], "at": None}, False),
        ("moved", {"pos": None, "tags": [1], "at": None}, False),
        ("ordered", {"id": 7, "$id": "x"}, True),
        ("ordered", {"id": "x"}, False),
        ("rung", {}, True),
        ("rung", {"x": 1}, False),
    ],
)
def test_openapi_and_the_inbox_say_the_same_of_a_body(
    client: TestClient, event: str, body: Any, fits: bool
) -> None:
    told = client.get("/openapi.json").json()
    schema = told["components"]["schemas"][f"signal.{event}"]
    assert jsonschema.Draft202012Validator(schema).is_valid(body) is fits
    assert client.post(f"/signals/{event}", json=body).is_success is fits


def test_openapi_says_how_a_client_shows_who_it_is(serve: Serve) -> None:
    client = serve(guarded=True)
    told = client.get("/openapi.json", headers={"authorization": f"Bearer {'t' * 20}"}).json()
    assert told["components"]["securitySchemes"].keys() == {"bearer", "signature"}
    assert told["security"] == [{"bearer": []}, {"signature": []}]
    assert "tttt" not in json.dumps(told)
    example = told["components"]["securitySchemes"]["signature"]["x-example"]
    lines = (str(example["t"]), example["method"], example["target"], example["body"])
    digest = hmac.new(example["secret"].encode(), "\n".join(lines).encode(), hashlib.sha256)
    assert example["x-tidegate-signature"] == f"t={example['t']},v2={digest.hexdigest()}"


def test_it_is_ready_while_the_store_answers(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_there_is_no_console_unless_it_is_asked_for(client: TestClient) -> None:
    for path in ("/console/overview", "/console/login", "/console/live", "/"):
        assert client.get(path).status_code == 404


def test_figures_are_those_of_the_status_and_of_the_inbox(
    client: TestClient, store: SqlStore
) -> None:
    for body, status in (([{"id": "a"}, {}], 202), ({"id": "a"}, 202), ({"x": 1}, 400)):
        assert client.post("/signals/rung", json=body).status_code == status
    epoch = store.of("shop").lease.acquire("one", 60)
    assert figures(client)["tidegate_running", "shop"] == 0  # it starts
    store.of("shop", epoch).lease.say(Activity("idle"))
    span = replace(make.a_range("orders", 1, 3), logged={1: make.BEGIN, 3: make.BEGIN})
    plan = make.plan(rulebook="shop", activations={"noticed": make.BEGIN}, ranges=(span,))
    plan = replace(plan, now=store.wall())
    entry = make.entry("noticed")
    fired = make.firings("noticed", 3)
    dropped = pa.array(["cooldown", "cooldown", None])
    fired = replace(fired, firings=fired.firings.append_column("damped", dropped))
    make.commit(
        store,
        epoch,
        plan,
        fired=[fired],
        entries=[entry],
        digests={"noticed": "d"},
        seconds={"plan": 0.25, "detect": 0.5},
        misfires={"evening": 3},
    )
    while (found := figures(client))["tidegate_buckets_total", "shop"] != 1:
        time.sleep(0.1)  # a status is kept for a second
    assert found["tidegate_inbox_requests_total", "202"] == 2
    assert found["tidegate_inbox_requests_total", "400"] == 1
    assert found["tidegate_inbox_signals_total", "new"] == 2
    assert found["tidegate_inbox_signals_total", "repeated"] == 1
    assert found["tidegate_store_up", "shop"] == found["tidegate_running", "shop"] == 1
    assert found["tidegate_moved_commits_total", "shop"] == 2
    assert found["tidegate_firings_total", "noticed,shop"] == 1
    assert found["tidegate_firings_total", "quiet,shop,warning"] == 0  # with its severity
    assert found["tidegate_firings_damped_total", "cooldown,noticed,shop"] == 2
    lately = ("fired,noticed,shop", 1), ("damped,noticed,shop", 2), ("dead,noticed,shop", 0)
    assert all(found["tidegate_firings_last_day", of] == number for of, number in lately)
    assert found["tidegate_entries", "shop,pending"] == 1
    assert found["tidegate_unplaced_signals", "shop"] == 2
    assert found["tidegate_stage_seconds", "shop,detect"] == 0.5
    assert found["tidegate_misfires_total", "evening,shop"] == 3
    assert found["tidegate_store_bytes", ""] == store.of("shop").status.shown()["store_bytes"]
    assert found["tidegate_watermark_seconds", "shop"] == (make.BEGIN + make.HOUR) / 1e6


def test_a_parked_script_is_among_the_figures(serve: Serve, store: SqlStore) -> None:
    text = (
        BOOK
        + """scripts:
  one: {text: "in {} rung out {} chimed (rung() {!> chimed();})*"}
  two: {text: "in {} rung (rung())*"}
"""
    )
    store.of("shop").versions.register(text, None)
    epoch = store.of("shop").lease.acquire("one", 60)
    plan = make.plan(rulebook="shop", activations=dict.fromkeys(("one", "two"), make.BEGIN))
    parked = (Parked("one", "too many steps", "mend the script", make.BEGIN),)
    make.commit(store, epoch, plan, digests={"one": "d", "two": "d"}, parked=parked)
    found = figures(serve())
    assert found["tidegate_script_parked", "shop,one"] == 1
    assert found["tidegate_script_parked", "shop,two"] == 0
    assert ("tidegate_rule_parked", "one,shop") not in found


def test_an_instant_that_is_not_known_has_no_figure(serve: Serve, store: SqlStore) -> None:
    """A rulebook that has never run has seen nothing: 1970 would be a lie."""
    store.of("shop").versions.register(BOOK, None)
    names = {name for name, _ in figures(serve())}
    assert "tidegate_state" in names
    assert names.isdisjoint({"tidegate_watermark_seconds", "tidegate_looked_seconds"})


def figures(client: TestClient) -> dict[tuple[str, str], float]:
    """By name and labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, ",".join(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }
