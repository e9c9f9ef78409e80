"""Firings are found by their ids, in runs that are merged as they grow in number."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core.values import Firings
from tidegate.engine.store import SqlStore, id_runs
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import Database


def run_levels(url: str) -> list[int]:
    with Database(url).read() as connection:
        query = sa.select(t.firing_runs.c.level).order_by(t.firing_runs.c.run)
        return list(connection.execute(query).scalars())


def test_every_firing_is_found_whatever_was_merged(
    url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_runs, "FAN_OUT", 3)
    monkeypatch.setattr(id_runs, "PIECE_IDS", 4)
    epoch = store.of("bank").lease.acquire("one", 60)
    made: dict[tuple[int, str], Firings] = {}
    for bucket in range(1, 24):
        fired = [] if bucket % 5 == 0 else [make.firings(rule, 3, bucket) for rule in "cab"]
        made |= {(bucket, one.rule): one for one in fired}
        make.commit(store, epoch, make.plan(bucket), fired=[make.firings("z", 0), *fired])
    assert run_levels(url) == [2, 2, 0]  # 19 buckets
    for place, fired in made.items():
        for firing_id in make.hex_ids(fired):
            assert make.find_firing(store, "bank", firing_id) == place
    assert make.find_firing(store, "bank", "00" * 16) is None
    assert make.find_firing(store, "bank", "ff" * 16) is None


def test_runs_stay_apart_once_they_are_large(
    url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_runs, "FAN_OUT", 2)
    monkeypatch.setattr(id_runs, "MERGED_IDS_MAX", 20)
    epoch = store.of("bank").lease.acquire("one", 60)
    for bucket in range(1, 14):
        make.commit(store, epoch, make.plan(bucket), fired=[make.firings("a", 4, bucket)])
    assert run_levels(url) == [2, 2, 2, 0]
    last = make.hex_ids(make.firings("a", 4, 7))[3]
    assert make.find_firing(store, "bank", last) == (7, "a")


@pytest.mark.parametrize(
    ("at_once", "pieces"),
    [
        (1 << 17, [[1, 1, 1, 1], [3, 4], [5, 8], [9]]),
        (4, [[1, 1, 1, 1], [3], [4], [5], [8], [9]]),
    ],
)
def test_pieces_are_written_some_at_a_time_and_equal_ids_are_in_one(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, at_once: int, pieces: list[list[int]]
) -> None:
    """In whatever parts ids are sorted, and from whatever rules they come."""
    monkeypatch.setattr(id_runs, "SORTED_AT_ONCE", at_once)
    monkeypatch.setattr(id_runs, "PIECE_IDS", 2)
    monkeypatch.setattr(id_runs, "PIECES_AT_ONCE", 2)
    numbers = [5, 1, 4, 1, 3, 9, 1, 1, 8]
    texts = [(n << 124 | n).to_bytes(id_runs.ID_BYTES, "big") for n in numbers]
    ids = np.array(texts, f"S{id_runs.ID_BYTES}")
    places = np.zeros(len(ids), id_runs.PLACE)
    places["bucket"] = range(len(ids))
    with store.database.write() as connection:
        id_runs.write(connection, "bank", (1, 7), 0, [ids[:4], ids[4:]], places.take)
        rows = connection.execute(sa.select(t.firing_ids).order_by(t.firing_ids.c.first_id)).all()
    assert [[*row.ids[id_runs.ID_BYTES - 1 :: id_runs.ID_BYTES]] for row in rows] == pieces
    stored = [id_runs._places(row.places, len(row.ids) // id_runs.ID_BYTES) for row in rows]
    assert np.concatenate(stored)["bucket"].tolist() == [1, 3, 6, 7, 4, 2, 0, 8, 5]
