"""Ids of clients and of the engine are two namespaces (G28): a client that has heard of a firing
before its action is done takes nothing away by posting ids that are made of the firing's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from tests.simulate.judge import AllHold, Analyst, fields_of
from tests.support.bench import Bench
from tests.support.make import SECOND
from tests.support.memory import MemorySink
from tidegate.connectors.http.app import App
from tidegate.connectors.http.credentials import Guard
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.writer import Writer
from tidegate.engine.cli.main import main
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import CLIENT, ENGINE, Firings
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.tables import signals

SQL = "{sql: INSERT INTO out SELECT id FROM event}"
TELL = "{signal: {told: {id: id}}}"
BOOK = f"""\
rulebook: loop
tables: {{t: {{path: /t, key: [id], start: earliest}}, out: {{path: /out}}}}
events: {{row: {{on: insert, table: t}}, told: {{signal: {{id: bigint}}}}}}
rules:
  pay: {{on: row, per: id, do: [{SQL}, {TELL}]}}
  late: {{on: row, per: id, coupling: detached, do: [{TELL}]}}
  asked: {{on: row, per: id, if: id >= 0, coupling: detached, do: [{TELL}]}}
  broken: {{on: row, per: id, within: 5 min, do: [{SQL}], otherwise: [{SQL}, {TELL}]}}
  begun: {{on: begin_of pay, per: id}}
  ended: {{on: end_of pay, per: id}}
  over: {{on: end_of late, per: id}}
  broke: {{on: failed broken, per: id}}
  heard: {{on: told, per: id}}
"""
FORMS = {"begin_of", "end_of", "failed", "0", "1", "2"}  # what stands behind the firing's id


class Sink(MemorySink):
    """The first statement of `broken` fails for good."""

    def run(self, entry: Entry, firings: Firings) -> None:
        if entry.rule == "broken" and entry.statement.action == 0:
            raise SinkError("[NO] never")
        super().run(entry, firings)

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:  # noqa: ARG002
        return fields_of(firings)


class Life(Bench):
    """Two rows, and all that comes of them."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store, commits=0, text=BOOK)
        self.sink, self.conditions = Sink(), AllHold()
        self.restart()

    def analyst(self) -> Analyst:
        return Analyst()

    def live(self) -> Counter[tuple[str, tuple[int, ...]]]:
        """What fired, with the ids of the rows or signals."""
        self.feed.commits = 2
        for _ in range(20):
            self.drain()
            self.clock.later(100)
        self.clock.at = self.store.wall() + SECOND  # when clients' signals were received
        self.drain()
        return Counter(
            (f["rule"], tuple(c["id"] for c in f["constituents"]))
            for f in self.store.of("loop").firings.listed()
        )


def ids_of(store: SqlStore, namespace: str) -> list[str]:
    query = sa.select(signals.c.id).where(signals.c.namespace == namespace)
    with store.database.read() as connection:
        return sorted(connection.execute(query).scalars())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Counter[Any]]:
    """The ids that the engine makes, which another life finds again, and what fires."""
    url = f"sqlite:///{tmp_path_factory.mktemp('undisturbed')}/store.db"
    with open_store(url, create=True) as store:
        store.of("loop").versions.register(BOOK, None)
        fired = Life(store).live()
        made = ids_of(store, ENGINE)
    assert {one.partition("-")[2] for one in made} == FORMS
    assert len(made) == 2 * 8
    return made, fired


@pytest.fixture
def store(slow_store_url: str) -> Iterator[SqlStore]:
    """On both databases."""
    with open_store(slow_store_url, create=True) as opened:
        opened.of("loop").versions.register(BOOK, None)
        yield opened


def post(store: SqlStore, ids: Mapping[str, int]) -> None:
    source, writer = Source(store), Writer(store, lambda: None)
    app = App(source, writer, Guard((), 300), source.limits)
    with TestClient(app.asgi, base_url="http://127.0.0.1") as client:
        for id, n in ids.items():
            for _ in range(2):  # sent again: known
                answer = client.post("/signals/told", json={"id": n, "$id": id})
                assert (answer.status_code, answer.json()["ids"]) == (202, [id])
        (taken, *_) = ids
        assert client.post("/signals/told", json={"id": -1, "$id": taken}).status_code == 409
    writer.close()


def command(url: str, ids: Mapping[str, int]) -> None:
    for id, n in ids.items():
        words = ["signal", "told", f"id={n}", "--store", url, "--id", id]
        assert CliRunner().invoke(main, words).exit_code == 0


@pytest.mark.parametrize("how", ["inbox", "command"])
def test_g28_an_id_of_a_client_that_looks_like_one_of_the_engine_takes_nothing_away(
    how: str, store: SqlStore, slow_store_url: str, undisturbed: tuple[list[str], Counter[Any]]
) -> None:
    made, fired = undisturbed
    given = {id: 100 + n for n, id in enumerate(made)}
    if how == "inbox":
        post(store, given)
    else:
        command(slow_store_url, given)
    clients = {("heard", (n,)): 1 for n in given.values()}
    assert Life(store).live() == fired + Counter(clients)
    assert ids_of(store, CLIENT) == ids_of(store, ENGINE) == made


@pytest.mark.parametrize("how", ["inbox", "command"])
def test_g28_a_client_may_use_an_id_that_the_engine_has_used(
    how: str, store: SqlStore, slow_store_url: str, undisturbed: tuple[list[str], Counter[Any]]
) -> None:
    """Sent again it is known, with other fields it conflicts: by its own signal alone."""
    made, _ = undisturbed
    Life(store).live()
    given = {id: 100 + n for n, id in enumerate(made)}
    if how == "inbox":
        post(store, given)
    else:
        command(slow_store_url, given)
        command(slow_store_url, given)
    assert ids_of(store, CLIENT) == ids_of(store, ENGINE) == made
