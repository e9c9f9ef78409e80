"""The inbox of `tidegate run --http` while Spark starts, and a SIGTERM then."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tidegate
from tidegate.connectors.http import Address, Inbox
from tidegate.engine.app import serve
from tidegate.engine.app.sessions import Sessions
from tidegate.engine.store import open_store


class Spark:
    """A Spark that is started; what the inbox answers meanwhile. A SIGTERM comes then."""

    def __init__(self) -> None:
        self.address: Address | None = None
        self.found: dict[str, Any] = {}

    def inbox_at(self, *given: Any) -> Inbox:
        made = Inbox(*given[:1], serve.load_policy(given[1]))
        self.address = made.address
        return made

    def get(self, _: Sessions) -> None:
        for name, path in (("healthz", "/healthz"), ("readyz", "/readyz"), ("metrics", "/metrics")):
            self.found[name] = self.ask("GET", path)
        self.found["posted"] = self.ask("POST", "/signals/closed", {"door": 7})
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: "stopping" in self.ask("GET", "/healthz")[1])
        self.found["ending"] = self.ask("GET", "/readyz")

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        assert self.address is not None
        connection = HTTPConnection(self.address.host, self.address.port, timeout=20)
        headers = {"content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        said = response.read().decode()
        connection.close()
        return response.status, said


def until(true: Callable[[], bool]) -> None:
    for _ in range(400):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it never came true")


def test_the_inbox_answers_while_spark_starts_and_a_sigterm_ends_that_well(
    tidegate: Tidegate, doors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = Spark()
    monkeypatch.setattr(serve, "inbox_at", spark.inbox_at)
    monkeypatch.setattr(Sessions, "get", lambda sessions: spark.get(sessions))
    before = [(n, signal.getsignal(n)) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    try:
        result = tidegate("run", doors, "--http", "127.0.0.1:0")
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    assert result.exit_code == 0, result.output
    doing = {"state": "starting", "doing": "starting Spark"}
    status, health = spark.found["healthz"]
    assert (status, json.loads(health)) == (200, {"status": "ok", "rulebooks": {"doors": doing}})
    assert spark.found["readyz"][0] == 503
    assert "doors (starting Spark)" in spark.found["readyz"][1]
    assert 'tidegate_state{rulebook="doors",state="starting"} 1.0' in spark.found["metrics"][1]
    assert 'tidegate_running{rulebook="doors"} 0.0' in spark.found["metrics"][1]
    assert "tidegate_lag_commits{" in spark.found["metrics"][1]  # it has no table
    assert spark.found["posted"][0] == 202
    status, said = spark.found["ending"]
    assert (status, json.loads(said)["error"]["code"]) == (503, "stopping")
    assert "doors (starting Spark)" in said
    with open_store(f"sqlite:///{doors.with_suffix('.db')}", create=False) as store:
        assert store.of("doors").status.shown()["stopped"] is None
        assert [s.event for s in store.of("doors").signals.unplaced(["closed"], 0, 9).signals] == [
            "closed"
        ]
