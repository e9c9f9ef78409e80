"""How much room a store takes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core.values import Carried
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.database import Database
from tidegate.rules.model import IN_STORE


def size(store: SqlStore) -> int:
    return int(store.of("bank").status.shown()["store_bytes"])


def test_what_is_stored_takes_room_and_what_others_store_does_not(
    store: SqlStore, url: str
) -> None:
    before = size(store)
    assert before > 0
    with Database(url).write() as connection:
        connection.execute(sa.text("CREATE TABLE others (text TEXT)"))
        insert = sa.insert(sa.table("others", sa.column("text")))
        others = [{"text": f"{n:0200}"} for n in range(10_000)]
        if url.startswith("postgresql"):  # an SQLite file is the store's alone
            connection.execute(insert, others)
    assert size(store) - before < 100_000
    made = pa.table({"n": pa.array([n * n % 1_000_003 for n in range(200_000)])})
    carried = Carried({"node:x/0": made}, frozenset({"node:x/0"}))
    make.commit(
        store,
        store.of("bank").lease.acquire("one", 60),
        make.plan(),
        carried=carried,
        state_path=IN_STORE,
    )
    assert size(store) - before > 300_000


def test_sqlites_log_is_part_of_it(sqlite_url: str) -> None:
    with open_store(sqlite_url, create=True) as store:
        file = Path(sqlite_url.removeprefix("sqlite:///"))
        log = Path(f"{file}-wal")
        assert log.stat().st_size > 0
        assert size(store) == file.stat().st_size + log.stat().st_size
