"""The ways between firings: through signals and commits, forth and back, on both databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core.entries import Effect
from tidegate.engine.core.relation_files import RelationFiles
from tidegate.engine.core.values import ENGINE, Firings
from tidegate.engine.store import SqlStore, id_runs
from tidegate.engine.store import tables as t
from tidegate.engine.store import traces as traces_module
from tidegate.engine.store.causes import commit_id
from tidegate.engine.store.shelf import FileShelf
from tidegate.engine.store.traces import Place
from tidegate.rules.errors import EngineError


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


def caused(
    rule: str, bucket: int, versions: list[int | None], signals: list[str | None], depth: int = 2
) -> Firings:
    """Firings of a rule, with where each of their two constituents came from."""
    count = len(versions) // 2
    fired = make.firings(rule, count, bucket, depth=pa.array([depth] * count, pa.int32()))
    sources = pa.table(
        {"version": pa.array(versions, pa.int64()), "signal": pa.array(signals, pa.string())}
    )
    return replace(fired, sources=sources)


def signal_of(firing_id: str, rest: str = "0") -> str:
    return f"{ENGINE}/{firing_id}-{rest}"


def test_what_came_of_a_signal_is_found_in_whichever_bucket(store: SqlStore, epoch: int) -> None:
    cause = make.firings("pay")
    make.commit(store, epoch, make.plan(), fired=[cause])
    first, second = make.hex_ids(cause)
    mine = signal_of(first)
    effects = [caused("a", 2, [None] * 4, [mine, None, signal_of(second), None])]
    effects += [caused("b", 2, [None] * 2, [None, signal_of(first, "end_of")])]
    make.commit(store, epoch, make.plan(2), fired=effects)
    late = caused("a", 3, [None] * 2, [mine, mine])
    make.commit(store, epoch, make.plan(3), fired=[late])
    traces = store.of("bank").traces
    assert traces.came_of_signals(first, 99).places == [
        Place(2, "a", make.hex_ids(effects[0])[0]),
        Place(2, "b", make.hex_ids(effects[1])[0]),
        Place(3, "a", make.hex_ids(late)[0]),
    ]
    assert [one.firing_id for one in traces.came_of_signals(second, 99).places] == [
        make.hex_ids(effects[0])[1]
    ]
    assert traces.came_of_signals("0" * 32, 99).places == []


def test_what_came_of_a_commit_has_its_event_type_and_its_version(
    store: SqlStore, epoch: int
) -> None:
    fired = caused("a", 1, [7, None, 8, 7], [None] * 4)
    outside = caused("b", 1, [7, 7], [None] * 2, depth=1)
    make.commit(store, epoch, make.plan(), fired=[fired, outside])
    traces = store.of("bank").traces
    first, second = make.hex_ids(fired)
    assert [one.firing_id for one in traces.came_of_commit({"withdrawal"}, 7, 99).places] == [first]
    assert [one.firing_id for one in traces.came_of_commit({"transfer"}, 7, 99).places] == [second]
    came = traces.came_of_commit({"transfer", "withdrawal"}, 7, 99)
    both = {one.firing_id for one in came.places}
    assert both == {first, second}
    assert traces.came_of_commit({"deposit"}, 7, 99).places == []


def test_only_firings_that_actions_caused_lead_from_a_commit(store: SqlStore, epoch: int) -> None:
    fired = caused("a", 1, [7, 7, 8, 8], [None] * 4)
    depth = fired.firings.column_names.index("depth")
    mixed = fired.firings.set_column(depth, "depth", pa.array([1, 2], pa.int32()))
    make.commit(store, epoch, make.plan(), fired=[replace(fired, firings=mixed)])
    traces = store.of("bank").traces
    _, deep = make.hex_ids(fired)
    assert traces.came_of_commit({"withdrawal"}, 7, 99).places == []
    assert [one.firing_id for one in traces.came_of_commit({"withdrawal"}, 8, 99).places] == [deep]


def test_one_commit_leads_to_many_buckets_whatever_was_merged(
    store: SqlStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_runs, "FAN_OUT", 3)
    monkeypatch.setattr(id_runs, "PIECE_IDS", 2)
    made = []
    for bucket in range(1, 12):
        fired = [caused(rule, bucket, [7, bucket + 100], [None] * 2) for rule in "ab"]
        made += [Place(bucket, one.rule, make.hex_ids(one)[0]) for one in fired]
        make.commit(store, epoch, make.plan(bucket), fired=fired)
    traces = store.of("bank").traces
    assert traces.came_of_commit({"withdrawal"}, 7, 99).places == made
    assert [one.bucket for one in traces.came_of_commit({"transfer"}, 105, 99).places] == [5, 5]


def test_what_came_of_a_commit_is_looked_for_in_so_many_bytes(
    store: SqlStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bucket in (1, 2, 3):
        fired = [caused("a", bucket, [7, 7, 7, 7], [None] * 4)]
        make.commit(store, epoch, make.plan(bucket), fired=fired)
    came = store.of("bank").traces.came_of_commit
    places, unread = came({"withdrawal"}, 7, 99)
    assert ([place.bucket for place in places], unread) == ([1, 1, 2, 2, 3, 3], False)
    assert came({"withdrawal"}, 7, 3) == (places[:3], False)
    monkeypatch.setattr(traces_module, "CHAINED_BYTES_MAX", 1)
    assert came({"withdrawal"}, 7, 99) == (places[:2], True)
    assert came({"withdrawal"}, 7, 2) == (places[:2], False)  # there are as many as are asked for


def test_causes_are_forgotten_with_their_firings(store: SqlStore, epoch: int) -> None:
    for bucket in (1, 2):
        fired = caused("a", bucket, [7, None], [None] * 2)
        make.commit(store, epoch, make.plan(bucket), fired=[fired])
    while make.purge(store, epoch, firings=make.BEGIN + 2 * make.HOUR, rows_max=50) >= 50:
        pass
    traces = store.of("bank").traces
    assert [one.bucket for one in traces.came_of_commit({"withdrawal"}, 7, 99).places] == [2]
    with store.database.read() as connection:
        runs = connection.execute(sa.select(t.cause_runs.c.run)).scalars().all()
        assert runs == [2]
        wanted = commit_id("withdrawal", 7)
        places = [*id_runs.places_of(connection, "bank", wanted, id_runs.CAUSES)]
        assert places == [(2, "a")]


def test_a_commit_leads_to_its_entry_and_the_firings_behind_it(store: SqlStore, epoch: int) -> None:
    fired = make.firings("pay", condition=["held", "failed"])
    held, failed = make.hex_ids(fired)
    whole, some = make.entry("pay"), make.entry("pay", 1, firing_ids=(failed,))
    entries = make.commit(store, epoch, make.plan(), fired=[fired], entries=[whole, some])
    for entry, version in zip(entries, (12, 13), strict=True):
        done = make.outcome(entry, "done", 1, effect=Effect(version, 3), settled_at=make.BEGIN)
        store.of("bank", epoch).outbox.settle([done])
    traces = store.of("bank").traces
    (row,) = traces.behind("a", 12)
    assert (row["number"], row["rows_written"]) == (1, 3)
    assert traces.firings_of(row, 10) == ([held], False)
    assert traces.firings_of(row, 0) == ([], True)
    (row,) = traces.behind("a", 13)
    assert traces.firings_of(row, 10) == ([failed], False)
    assert traces.firings_of(row, 0) == ([], True)
    assert traces.behind("a", 14) == []
    assert traces.behind("b", 12) == []
    assert store.of("other").traces.behind("a", 12) == []


def buckets_of(found: list[Firings]) -> list[int]:
    """The buckets of firings as `make.firings` gives them."""
    ends = (fired.firings["detected_at"][0].value for fired in found)
    return [(end - make.BEGIN) // make.HOUR + 1 for end in ends]


def test_the_firings_near_a_bucket_are_those_before_it_or_from_it_on(
    store: SqlStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bucket in range(1, 10):
        fired = [make.firings(rule, 1, bucket) for rule in "ab"]
        make.commit(store, epoch, make.plan(bucket), fired=fired)
    near = store.of("bank").traces.near
    monkeypatch.setattr(traces_module, "CHAINED_MAX", 3)
    for arrived, later, wanted, more in (
        ((), True, [5, 6, 7], True),
        ((), False, [3, 4, 5], True),
        ((4,), False, [4, 5], False),
        ((4, None), False, [3, 4, 5], True),
        ((1, 2), False, [1, 2, 5], True),
        ((9, 10), True, [5, 6, 7], True),
    ):
        found, rest = near("a", 5, arrived, later=later)
        assert ({one.rule for one in found}, buckets_of(found), rest) == ({"a"}, wanted, more)
    assert near("c", 5, (), later=True) == ([], False)
    found, rest = near("a", 8, (), later=True)
    assert (buckets_of(found), rest) == ([8, 9], False)
    monkeypatch.setattr(traces_module, "CHAINED_BYTES_MAX", 1)
    found, rest = near("a", 5, (), later=True)
    assert (buckets_of(found), rest) == ([5], True)


def test_of_firings_with_large_files_those_that_come_first_are_read(
    store: SqlStore, epoch: int, tmp_path: Path
) -> None:
    shelf = FileShelf("", str(tmp_path), "one")
    for bucket in range(1, 5):
        fired = make.firings("a", 1, bucket).on(shelf, always=True)
        assert isinstance(fired.relation, RelationFiles)
        sizes = [one._replace(bytes=1 << 30) for one in fired.files]
        large = replace(fired.relation, files=tuple(sizes))
        make.commit(store, epoch, make.plan(bucket), fired=[replace(fired, relation=large)])
    near = store.of("bank").traces.near
    for arrived, later, wanted in (((), True, 2), ((), False, 3), ((1,), False, 1)):
        found, rest = near("a", wanted if later else 3, arrived, later=later)
        assert (buckets_of(found), rest) == ([wanted], True)
        assert all(isinstance(one.relation, pa.Table) for one in found)


def test_what_is_read_in_a_snapshot_is_of_one_state(store: SqlStore, epoch: int) -> None:
    fired = make.firings("pay")
    first, second = make.hex_ids(fired)
    traces = store.of("bank").traces
    with store.snapshot():
        assert traces.known([first]) == {}
        make.commit(store, epoch, make.plan(), fired=[fired])
        with store.snapshot():
            assert traces.known([first]) == {}
        assert traces.known([first]) == {}
    assert traces.known([first, second]) == {one: Place(1, "pay", one) for one in (first, second)}


def test_digits_lead_to_the_firing_in_whichever_piece(
    store: SqlStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_runs, "PIECE_IDS", 2)
    monkeypatch.setattr(id_runs, "FAN_OUT", 3)
    ids = []
    for bucket in range(1, 10):
        fired = make.firings("pay", 5, bucket)
        ids += [(one, bucket) for one in make.hex_ids(fired)]
        make.commit(store, epoch, make.plan(bucket), fired=[fired])
    place = store.of("bank").traces.place
    for whole, bucket in ids:
        alone = next(n for n in range(1, 33) if sum(o.startswith(whole[:n]) for o, _ in ids) == 1)
        assert place(whole[:alone]) == place(whole) == Place(bucket, "pay", whole)
        if alone > 1:
            with pytest.raises(EngineError, match="several firings begin with"):
                place(whole[: alone - 1])
    with pytest.raises(EngineError, match="there is no firing"):
        place("f" * 32)
    with store.database.write() as connection:
        connection.execute(sa.delete(t.firings).where(t.firings.c.bucket > 1))
    for whole, bucket in ids:  # those of one number in all nine buckets share 16 digits
        if bucket == 1:
            assert place(whole[:16]) == Place(1, "pay", whole)


def test_an_instant_leads_to_the_bucket_that_holds_it(store: SqlStore, epoch: int) -> None:
    for bucket in range(1, 8):
        make.commit(store, epoch, make.plan(bucket))
    with store.database.write() as connection:
        gone = t.buckets.c.bucket.in_([1, 2, 5])
        connection.execute(sa.delete(t.buckets).where(gone))
    instants = {bucket: make.BEGIN + bucket * make.HOUR for bucket in range(9)}
    found = store.of("bank").traces.arrived(instants.values())
    assert found == {instants[bucket]: bucket for bucket in (3, 4, 6, 7)}
    assert store.of("bank").traces.arrived([instants[6] + 1, instants[3] - 1]) == {
        instants[6] + 1: 7,
        instants[3] - 1: 3,
    }
    assert store.of("other").traces.arrived([instants[3]]) == {}


def test_a_version_leads_to_the_last_bucket_that_took_it(store: SqlStore, epoch: int) -> None:
    for bucket, version in ((1, 3), (2, 4)):
        make.commit(store, epoch, make.plan(bucket, ranges=(make.a_range("t", version, version),)))
    traces = store.of("bank").traces
    assert traces.took("t", [3, 4, 5], 2) == {3: 1, 4: 2}
    assert traces.took("t", [3, 4], 1) == {3: 1}
    assert traces.instant_of("t", 4) == make.BEGIN + 4 * make.SECOND
    assert traces.instant_of("t", 5) is None


def test_a_trace_has_what_was_asked_of_its_entries(store: SqlStore, epoch: int) -> None:
    fired = make.firings("pay")
    store.of("bank").controls.ask("skip", "1", asked_by="eve")  # there is no entry yet
    with store.database.write() as connection:
        connection.execute(sa.update(t.controls).values(asked_at=make.BEGIN))
    (entry,) = make.commit(store, epoch, make.plan(), fired=[fired], entries=[make.entry("pay")])
    store.of("bank").controls.ask("redrive", "1", option="may-double", asked_by="ada")
    store.of("bank").controls.ask("skip", "2")
    successor = replace(entry.placed(entry.turn.place), number=0)
    ends = make.outcome(entry, "redriven", 1, successors=(successor,))
    store.of("bank", epoch).outbox.settle([ends])
    traces = store.of("bank").traces
    trace = traces.trace(traces.place(make.hex_ids(fired)[1][:8]))
    assert [row["number"] for row in trace.entries] == [1, 2]
    assert [row["place"] for row in trace.entries] == [1, 1]
    asked = [(one["kind"], one["subject"], one["option"]) for one in trace.asked]
    assert asked == [("redrive", "1", "may-double"), ("skip", "2", None)]
    assert trace.asked[0]["asked_by"] == "ada"
    assert (trace.acted_on, trace.through) == (2, True)
