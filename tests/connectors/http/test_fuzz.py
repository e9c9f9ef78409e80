"""Bodies as nobody means them: refused by what they are, never by a failure of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.connectors.http.conftest import Serve

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["1", "1e400", "NaN", "2026-03-02T09:00:00Z", "9" * 50, "\0", "\ud800"])
)
NAMES = (
    st.sampled_from(["id", "$id", "atm_id", "amount", "pos", "x", "y", "tags", "at"]) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5)
)
BODIES = (
    st.binary(max_size=200)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.lists(st.dictionaries(NAMES, SCALARS, max_size=4), max_size=5).map(
        lambda value: json.dumps(value).encode()
    )
)
EVENTS = st.sampled_from(["atm_empty", "moved", "ordered", "rung"])


@pytest.fixture
def unlimited(serve: Serve) -> TestClient:
    return serve(settings={"inbox_requests_per_second_max": "1000000"})


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(event=EVENTS, body=BODIES, cut=st.integers(0, 200))
def test_every_body_is_taken_or_refused_with_a_reason(
    unlimited: TestClient, event: str, body: bytes, cut: int
) -> None:
    headers = {"content-type": "application/json"}
    for sent in (body, body[:cut]):
        found = unlimited.post(f"/signals/{event}", content=sent, headers=headers)
        told: dict[str, Any] = found.json()
        assert found.status_code in (202, 400, 409), told
        assert ("ids" in told) is (found.status_code == 202)
        assert len(found.content) < 200_000


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.text(max_size=30), value=st.text(st.characters(max_codepoint=126), max_size=60))
def test_every_path_and_header_is_answered(unlimited: TestClient, path: str, value: str) -> None:
    headers = {"authorization": value.encode(), "x-tidegate-signature": value.encode()}
    for name in ("host", "content-type", "last-event-id"):
        found = unlimited.post("/signals/rung", headers={**headers, name: value.encode()})
        assert 400 <= found.status_code < 500
    found = unlimited.get("/events/stream", params={"name": path, "since": value or "x"})
    assert found.status_code in (400, 404, 410)
