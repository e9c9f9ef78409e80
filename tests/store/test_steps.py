"""No step and no command reads a table that grows from its begin to its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core.entries import Fate
from tidegate.engine.core.values import Rejected
from tidegate.engine.store import SqlStore, id_runs, open_store
from tidegate.engine.store.database import Database
from tidegate.engine.store.tables import metadata

SMALL = {"meta", "rulebooks", "leases", "cursors", "activations", "parked", "carried", "totals"}
SMALL |= {"state_files"}  # of a day
SMALL |= {"rule_totals", "disabled", "damped_totals", "suspects", "begun", "misfires"}
SHORT = {  # indexes of what will not stay, and the runs, which are merged
    "outbox_unfinished",
    "signals_unplaced",
    "signals_unplaced_by_event",
    "controls_pending",
    "sqlite_autoindex_firing_runs_1",
}
Statements = dict[str, object]


@pytest.fixture
def seen(sqlite_url: str) -> Iterator[tuple[SqlStore, Statements]]:
    """A store of SQLite, and the statements that were sent to it."""
    statements: Statements = {}

    def note(_c: object, _u: object, sql: str, values: object, _x: object, many: bool) -> None:
        statements[sql] = values[0] if many and isinstance(values, list) else values

    with open_store(sqlite_url, create=True) as store:
        sa.event.listen(sa.Engine, "before_cursor_execute", note)
        yield store, statements
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def every_step(store: SqlStore) -> None:
    """All that an engine and the commands ask of a store, with something in every table."""
    epoch = store.of("bank").lease.acquire("one", 60)
    for bucket in range(1, id_runs.FAN_OUT + 2):
        store.of("bank").signals.raise_signal(make.signal(f"s{bucket}"))
        store.of("bank").controls.ask("reset", "accounts")
        store.of("bank").controls.ask("skip", "99")
        reset, skip = store.of("bank").controls.pending()
        store.of("bank", epoch).controls.answer(skip.id, "no such entry")
        signals = tuple(replace(s, instant=7) for s in make.unplaced(store))
        held, done, _ = make.commit(
            store,
            epoch,
            make.plan(bucket, signals=signals, controls=(reset.id,)),
            fired=[make.firings(bucket=bucket)],
            entries=[make.entry(order=n) for n in range(3)],
            rejected=[Rejected("withdrawal", "transactions", "no time", {"id": 4})],
            passed_over={"blocked": 1},
            misfires={"evening": 1},
        )
        store.of("bank", epoch).buckets.acted(bucket, 0.5)
        store.of("bank", epoch).outbox.settle(
            [make.outcome(done, "done", 1, signals=(make.signal(f"e{bucket}"),))]
        )
        doubt = make.outcome(held, "held", 1, "no", fate=Fate.UNKNOWN.value, control=skip.id)
        store.of("bank", epoch).outbox.settle([doubt])
    store.of("bank").buckets.load()
    store.of("bank").outbox.open_entries()
    store.of("bank").outbox.entry(1)
    store.last_entry()
    store.of("bank").outbox.firings(1, "blocked")
    store.of("bank").status.shown(())
    store.of("bank").rule_states.obstacles()
    store.of("bank").firings.totals()
    store.of("bank").rejections.newest(5, whole=True)
    store.of("bank").firings.entry(1)
    some = make.hex_ids(make.firings(bucket=3))[0]
    for rule in (None, "blocked"):
        list(
            store.of("bank").firings.listed(
                rule, since=make.BEGIN + make.HOUR, before=some, limit=3
            )
        )
        list(store.of("bank").firings.listed(rule))
    placed, since = store.of("bank").placed, make.BEGIN + make.HOUR
    for end in (since + 1, 2 * since):
        placed.signals(since, end)
        placed.switched_by(since, end)
        placed.raised_later(end)
    for _ in range(3):
        store.of("bank", epoch).retention.purge(2**60, 2**60, 9)


def test_no_statement_reads_a_table_that_grows_from_begin_to_end(
    seen: tuple[SqlStore, Statements], sqlite_url: str
) -> None:
    store, statements = seen
    every_step(store)
    wrong = []
    with Database(sqlite_url).read() as connection:
        for sql, values in list(statements.items()):
            if sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
                lines = [row.detail for row in plan]
                wrong += [(line, sql) for line in lines if reads_all(line, sql, lines)]
    assert len(statements) > 60
    assert not wrong


def reads_all(line: str, sql: str, lines: list[str]) -> bool:
    """Whether a line of a plan says that a whole table is read, or all that a rulebook has in it
    without a limit, or with one that counts only once all is sorted."""
    found = re.match(r"(SCAN|SEARCH) (\S+)(?: USING .*INDEX (\S+))?", line)
    if not found or found[2] in SMALL or found[3] in SHORT:
        return False
    bounded = "LIMIT" in sql and not any("TEMP B-TREE" in other for other in lines)
    return found[1] == "SCAN" or (line.endswith(" (rulebook=?)") and not bounded)


def test_what_belongs_to_a_bucket_is_found_by_it() -> None:
    for table in metadata.tables.values():
        for constraint in table.foreign_key_constraints:
            wanted = constraint.column_keys
            indexed = [[c.name for c in index.columns] for index in table.indexes]
            indexed.append([c.name for c in table.primary_key.columns])
            assert any(columns[: len(wanted)] == wanted for columns in indexed), table.name
