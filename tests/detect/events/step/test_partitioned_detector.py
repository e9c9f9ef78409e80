"""State in partitions: the same is detected, and what nothing happens to is not looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, resuming, saw
from tests.reference.planted import cases, untils
from tests.reference.strategies import EVERYTHING, SECOND
from tests.support.history import batches, buckets, printed, run, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.event_names import Edge
from tidegate.engine.core.values import Batch, Carried, Detections
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.events.state.decoded import decoded
from tidegate.engine.detect.events.state.partitions import EVERY, place
from tidegate.engine.detect.events.step import carry, partitioned_detector
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Context

steps: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is carried is cut as far as may be, and no key stays in hand of which nothing is;
    steps are counted."""
    steps.clear()
    touched = Partitioned._touched

    def counted(self: Partitioned, *given: Any) -> Any:
        found = touched(self, *given)
        steps["all" if found is None else "some"] += 1
        return found

    monkeypatch.setattr(partitions, "ROWS_MAX", 0)
    monkeypatch.setattr(carry, "_SPARE", -1_000)
    monkeypatch.setattr(Partitioned, "_touched", counted)


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.long)])
@resuming
@detecting
def test_g26_partitions_change_nothing_of_what_is_detected(count: int) -> None:
    @given(data=st.data())
    @example_count(count)
    def some(data: st.DataObject) -> None:
        drawn = cases(operators=EVERYTHING, contexts=list(Context), depth=2, rules_max=3)
        rulebook, history = data.draw(drawn)
        until, cut = data.draw(untils(history)), data.draw(cuts(rulebook, history))
        whole = saw(run(rulebook, history, cut, until))
        assert run(rulebook, history, cut, until, partitions=4) == whole
        instants = {time for _, time, _ in history}
        assert run(rulebook, history, instants, until, partitions=16) == whole

    some()
    print(steps)
    assert steps["some"] * 8 > steps["all"]


@given(data=st.data())
@example_count(50)
def test_g26_a_step_on_what_the_last_one_left_is_a_step_on_what_was_read_back(
    data: st.DataObject,
) -> None:
    drawn = cases(operators=EVERYTHING, contexts=list(Context), depth=2, rules_max=3)
    rulebook, history = data.draw(drawn)
    detector = Detector(rulebook, dict.fromkeys(rulebook.rules, -SECOND))
    left, read = Partitioned(detector, 4), Partitioned(detector, 4)
    in_hand, stored = Carried(), Carried()
    for watermark, bucket in buckets(history, data.draw(cuts(rulebook, history))):
        given = batches(rulebook, bucket)
        before = in_hand
        for _ in range(data.draw(st.integers(1, 2))):  # a step may be done again
            found, in_hand, _ = left.step(before, given, watermark)
        again, stored, _ = read.step(stored, given, watermark)
        assert [*map(printed, found)] == [*map(printed, again)]
        assert {n: t.to_pylist() for n, t in in_hand.tables.items()} == {
            n: t.to_pylist() for n, t in stored.tables.items()
        }
        stored = through_ipc(stored)


def detector(on: str) -> Partitioned:
    book = loaded("abc", "t", r=f"on: '{on}', per: k")
    return Partitioned(Detector(book, {"r": 0}), 16)


def rows(event: str, keys: Sequence[Any], at: int) -> dict[str, Batch]:
    """One of each key, at one instant."""
    time, number = np.full(len(keys), at), np.arange(len(keys))
    ids = np.stack([number, time], axis=1).astype(np.uint64)
    table = pa.table({"k": keys, "v": np.zeros(len(keys), dtype=np.int64)})
    return {event: Batch(event, time, number, table, {"set": ids})}


class Kept:
    """One rule over keyed occurrences; `keys` have an open `a` from the start."""

    def __init__(self, on: str, keys: Sequence[Any] = range(200)) -> None:
        self.detector = detector(on)
        self.carried, self.watermark = Carried(), 0
        self.step("a", [*keys])
        self.step("c", [])  # which is when what is carried is cut

    def step(
        self, event: str, keys: Sequence[Any], watermark: int | None = None
    ) -> list[Detections]:
        """So many occurrences at the instant after the last."""
        self.watermark = watermark or self.watermark + 1
        given = rows(event, keys, self.watermark)
        carried = through_ipc(self.carried)
        found, self.carried, _ = self.detector.step(carried, given, self.watermark)
        return [*found]

    def instances(self) -> int:
        return sum(len(t) for n, t in self.carried.tables.items() if n.startswith("node:"))


def test_g26_a_row_reads_and_writes_the_partition_of_its_key_alone() -> None:
    kept = Kept("a ; b", range(1_000))
    assert {name.rsplit("/")[1] for name in kept.carried.tables} == {*map(str, range(16))}
    before = kept.instances()
    (found,) = kept.step("b", [7])
    assert found.keys.to_pylist() == [{"k": 7}]
    assert kept.carried.changed == frozenset()  # `a ; b` may be followed by another b
    assert kept.instances() == before
    assert kept.step("a", [7]) == []
    changed = sorted(name.rsplit("/")[1] for name in kept.carried.changed)
    assert len(changed) == 2  # the instances of one partition, and its occurrences
    assert changed[0] == changed[1]


def test_g26_equal_keys_of_other_types_are_of_one_partition() -> None:
    kept = Kept("a ; b")
    keys = [7.0, Decimal("9.00")]
    assert [kept.step("b", [key])[0].keys.to_pylist()[0]["k"] for key in keys] == keys


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_g26_dates_and_the_instants_that_they_are_equal_to_are_of_one_partition(
    zone: str | None,
) -> None:
    days = [date(2026, 1, 1) + timedelta(n) for n in range(200)]
    kept = Kept("a ; b", days)
    midnights = pa.array(days).cast(pa.timestamp("us")).cast(pa.timestamp("us", zone))
    for n in range(0, 200, 10):
        (found,) = kept.step("b", midnights[n : n + 1])
        assert found.keys.to_pylist() == [{"k": midnights[n].as_py()}]


def test_g26_what_is_too_old_goes_where_nothing_arrives() -> None:
    kept = Kept("a ; b within 80 us")
    assert kept.instances() == 200
    kept.step("b", [500], 85)
    assert 100 < kept.instances() < 200  # the others stay for an eighth longer
    kept.step("b", [500], 95)
    assert kept.instances() == 0


def test_g26_what_is_of_every_key_does_not_cut_what_is_of_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is one part, however many partitions there are."""
    monkeypatch.setattr(partitions, "ROWS_MAX", 40)
    book = loaded("ab", "tu", r="on: a ; b, per: k", s="on: t ; u, context: chronicle")
    stepper, carried = Partitioned(Detector(book, {"r": 0, "s": 0}), 256), Carried()
    for at, event in enumerate("taaaa", start=1):
        carried = stepper.step(carried, rows(event, range(50), at), at).carried
    found = {place(name)[1] for name in carried.tables}
    assert found == {EVERY, *range(4)}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The partitions that each step reads."""
    found = list[set[int]]()

    def noted(tables: Mapping[str, pa.Table], _: object) -> Mapping[str, pa.Table]:
        found.append({place(name)[1] for name in tables})
        return tables

    monkeypatch.setattr(partitioned_detector, "loaded", noted)
    return found


def test_g26_what_is_too_old_goes_though_nothing_arrives_for_its_rule(read: list[set[int]]) -> None:
    """Else each step would read it, and leave it as it was."""
    book = loaded("ab", "tu", r="on: 'a ; b within 80 us', per: k", s="on: t ; u")
    stepper, carried = Partitioned(Detector(book, {"r": 0, "s": 0}), 16), Carried()
    for event, at in (("a", 1), ("t", 2), ("u", 95), ("u", 96)):
        carried = stepper.step(carried, rows(event, range(200), at), at).carried
    assert len(read[2]) == 17
    assert read[3] == {EVERY}
    assert {place(name)[1] for name in carried.tables} == {EVERY}


def test_g26_what_is_too_old_by_its_rules_clock_is_not_read_before(read: list[set[int]]) -> None:
    book = loaded("ab", "tu", r="on: 'a ; b within 80 us', per: k", s="on: t ; u")
    late = Detector(book, {"r": 0, "s": 0}, lateness={"r": 3_000})
    stepper, carried = Partitioned(late, 16), Carried()
    for event, at in (("a", 1), ("t", 3_010), ("t", 3_011), ("u", 3_085), ("u", 3_095)):
        carried = stepper.step(carried, rows(event, range(200), at), at).carried
    assert read[3] == {EVERY}
    assert len(read[4]) == 17
    assert {place(name)[1] for name in carried.tables} == {EVERY}


def test_g26_what_is_too_old_of_a_rule_that_waits_for_all_keys_is_not_read(
    read: list[set[int]],
) -> None:
    """Rule `s` is stepped where all partitions are touched; what is too old of it goes then."""
    texts = {
        "r": "on: a ; b, per: [k, v]",
        "s": "on: 'c ; r within 80 us', per: k",
        "q": "on: t ; u",
    }
    book = loaded("abc", "tu", **texts)
    stepper, carried = Partitioned(Detector(book, dict.fromkeys(texts, 0)), 16), Carried()
    for event, at in (("c", 1), ("c", 2), ("u", 95), ("a", 96), ("u", 97)):
        carried = stepper.step(carried, rows(event, range(200), at), at).carried
    assert not read[2]
    assert not any(name.startswith("occ:c") for name in carried.tables)


def test_g26_keys_in_hand_stay_in_their_partitions_when_others_go() -> None:
    given, carried = detector("a ; b within 80 us"), Carried()
    for at in (1, 2, 60, 100):  # what is carried is cut at 2; the first 200 keys are gone at 100
        keys = range(100 * at, 100 * at + 100)
        carried = given.step(carried, rows("a", keys, at), at)[1]
    for key in range(6_000, 6_010):
        found, _, _ = given.step(through_ipc(carried), rows("b", [key], 101), 101)
        assert [d.keys.to_pylist() for d in found] == [[{"k": key}]]


def test_g26_a_timer_is_due_in_partitions_where_nothing_arrives() -> None:
    kept = Kept("not(b)[a, [100 us]]")
    kept.step("b", [7])
    assert len({name.rsplit("/")[1] for name in kept.carried.changed}) <= 2
    assert kept.step("b", [500], 100) == []
    (found,) = kept.step("b", [500], 101)  # 100 us after 1, and no later
    assert sorted(key["k"] for key in found.keys.to_pylist()) == [k for k in range(200) if k != 7]
    assert kept.instances() == 0


def test_g26_a_broadcast_meets_every_partition() -> None:
    kept = Kept("a ; t")
    (found,) = kept.step("t", [None])
    assert len(found) == 200


def test_g26_occurrences_are_told_apart_while_some_are_not_read() -> None:
    """Else two occurrences of one event type would be one where their partitions meet."""
    kept = Kept("a ; t", range(2))
    for _ in range(3):
        kept.step("a", [0])
        kept.step("a", [1])
    (found,) = kept.step("t", [None])
    rows = found.event_row[found.event_code == found.events.index("a")]
    assert sorted(found.batches["a"].time[rows]) == [kept.watermark - 2, kept.watermark - 1]


def test_carried_tables_in_no_partition_are_refused() -> None:
    kept = Kept("a ; b")
    table = next(iter(kept.carried.tables.values()))
    old = {"node:1f": table.replace_schema_metadata({b"tidegate.carried": b"1"})}
    with pytest.raises(EngineError, match="schema version b'1', this engine reads 3"):
        detector("a ; b").step(Carried(old), {}, 9)


def test_g26_a_rule_by_other_keys_than_those_of_the_rule_that_it_uses() -> None:
    book = loaded("abc", "t", pair="on: 'a ; b', per: [k, v]", both="on: 'c ; pair', per: k")
    given = Partitioned(Detector(book, {"pair": 0, "both": 0}), 16)
    carried = Carried()
    keys = np.arange(100)
    for time, event in enumerate("ca", start=1):
        carried = given.step(carried, rows(event, keys, time), time)[1]
    carried = given.step(carried, {}, 3)[1]
    for key in range(20):
        found, carried, _ = given.step(carried, rows("b", keys[[key]], 4 + key), 4 + key)
        assert [(d.rule, len(d)) for d in found] == [("pair", 1), ("both", 1)]


def test_g26_a_timer_of_every_key_meets_every_partition() -> None:
    kept = Kept("(t + [100 us]) and a")
    kept.step("t", [None])
    (found,) = kept.step("b", [500], 110)
    assert len(found) == 200


def test_g26_a_timer_of_a_rule_by_other_keys_meets_the_partitions_of_the_rule_that_uses_it() -> (
    None
):
    book = loaded("abc", pair="on: 'a + [100 us]', per: [k, v]", both="on: 'c ; pair', per: k")
    given = Partitioned(Detector(book, {"pair": 0, "both": 0}), 16)
    carried = given.step(Carried(), rows("c", [*range(100)], 1), 1)[1]
    for time in (2, 3, 4):
        carried = given.step(carried, rows("a", [time], time), time)[1]
    found, _, _ = given.step(carried, {}, 110)
    assert [(d.rule, len(d)) for d in found] == [("pair", 3), ("both", 3)]


def test_g26_a_tick_that_two_partitions_have_made_is_one_where_they_meet() -> None:
    kept = Kept("P*(a, [10 us], b) ; t")
    kept.step("b", [3], 25)
    kept.step("b", [4], 26)
    ticks = [name for name in kept.carried.tables if name.startswith("occ:" + Edge.TICK)]
    assert len(ticks) == 2
    whole = decoded(kept.detector.detector.graph, Carried(kept.carried.tables))
    ((event, made),) = [(e, o) for e, o in whole.events.items() if e.startswith(Edge.TICK)]
    assert (event, made.batch.time.tolist()) == (ticks[0][4:].rpartition("/")[0], [11, 21])
    (found,) = kept.step("t", [None])
    assert len(found) == 2


def test_g26_instances_are_in_order_of_end_where_partitions_meet() -> None:
    book = loaded("abc", "t", r="on: 'not(a)[c within 0 s, c ; (b and b)]', per: k")
    history = [
        (event, second * 1_000_000, {"k": k, "v": v})
        for second, event, v in ((0, "c", 0), (1, "c", 0), (2, "b", 0), (2, "b", 1))
        for k in range(8)
    ]
    seconds = range(0, 3_000_000, 1_000_000)
    whole = run(book, history, seconds)
    assert len(whole) == 8
    assert run(book, history, seconds, partitions=16) == whole


@pytest.mark.parametrize("other", [2, 3, 4, 5])
def test_g26_what_some_keys_need_of_every_key_stays_where_a_step_sees_others(other: int) -> None:
    """Key 1 and three of the others are of partitions of their own: a step of those has no key that
    needs the c."""
    book = loaded("a", "c", r="on: 'A*(a without c, a, [4 s])', per: k, context: chronicle")
    given_ = Partitioned(Detector(book, {"r": 0}), 4)
    first = rows("a", [1], 10) | rows("c", [None], 10)
    carried = given_.step(Carried(), first, 10)[1]
    for time in (20, 30, 40):
        carried = given_.step(carried, rows("a", [other], time), time)[1]
    assert steps["some"] == 2
    found, _, _ = given_.step(carried, {}, 5_000_000)
    assert [(d.rule, d.keys["k"].to_pylist()) for d in found] == [("r", [other])]


def test_g26_a_rule_without_a_key_consumes_where_a_step_sees_some_keys_of_others() -> None:
    book = loaded("abxy", r="on: a ; b, per: k", s="on: x ; y, context: chronicle")
    given_ = Partitioned(Detector(book, {"r": 0, "s": 0}), 16)
    carried = given_.step(Carried(), rows("a", [*range(100)], 1) | rows("x", [1, 2], 1), 1)[1]
    steps.clear()
    found = []
    for time in (2, 3, 4):
        made, carried, _ = given_.step(carried, rows("y", [0], time), time)
        found.append([len(d) for d in made])
    assert found == [[1], [1], []]
    assert not steps["all"]


@pytest.mark.parametrize("per", ["", ", per: k"])
@pytest.mark.parametrize("key", [1, 2, 3, 4, 5])
def test_g26_what_a_key_of_a_used_rule_has_begun_is_waited_for(per: str, key: int) -> None:
    """The c at 20 starts before the pair does, that at 40 does not. When the latter comes, nothing
    else happens in the partition of the pair."""
    book = loaded("abc", pair="on: a ; b, per: [k, v]", both=f"on: c ; pair{per}")
    given_ = Partitioned(Detector(book, {"pair": 0, "both": 0}), 16)
    carried, found = Carried(), list[Detections]()
    for event, time in (("a", 10), ("c", 20), ("a", 30), ("c", 40), ("b", 50)):
        made, carried, _ = given_.step(carried, rows(event, [key], time), time)
        found += made
    assert [(d.rule, d.start.tolist(), d.end.tolist()) for d in found] == [
        ("pair", [30], [50]),
        ("both", [20], [50]),
    ]


@pytest.mark.parametrize("per", ["", ", per: k"])
@pytest.mark.parametrize("key", [1, 2, 3, 4, 5])
def test_g26_what_a_key_of_a_used_rule_has_begun_is_taken_away(per: str, key: int) -> None:
    """The c is in the pair. An a of another key comes, and nothing happens to the pair then."""
    book = loaded("abc", pair="on: a ; b, per: [k, v]", both=f"on: 'pair without c'{per}")
    given_ = Partitioned(Detector(book, {"pair": 0, "both": 0}), 16)
    carried, found = Carried(), list[Detections]()
    history = [("a", 10, 9), ("a", 30, key), ("c", 40, key), ("a", 45, 7), ("b", 50, key)]
    for event, time, own in history:
        made, carried, _ = given_.step(carried, rows(event, [own], time), time)
        found += made
    assert [d.rule for d in found] == ["pair"]


class Users:
    """Rule `pair` per [k, v], and rules that use it; what they detect, and from when to when."""

    def __init__(self, **rules: str) -> None:
        book = loaded("abcx", pair="on: a ; b, per: [k, v]", **rules)
        self.of_book = Detector(book, dict.fromkeys(book.rules, 0))
        self.detector = Partitioned(self.of_book, 16)
        self.carried = Carried()
        self.found: list[tuple[str, int, int]] = []

    def step(self, *history: tuple[str, int]) -> list[tuple[str, int, int]]:
        """An occurrence of key 1 for each instant; one without an event type is none."""
        for event, time in history:
            given_ = rows(event, [1], time) if event else {}
            found, self.carried, _ = self.detector.step(self.carried, given_, time)
            self.found += [(d.rule, *map(int, (d.start[0], d.end[0]))) for d in found]
        return self.found


def test_g26_what_a_key_of_a_used_rule_has_begun_is_waited_for_by_users_of_its_user() -> None:
    users = Users(both="on: pair ; c", third="on: x ; both")
    users.step(("x", 10), ("a", 12), ("x", 14))  # by when what is carried is cut
    found = users.step(("x", 20), ("a", 30), ("x", 40), ("b", 50), ("c", 60))
    assert found == [("pair", 30, 50), ("both", 30, 60), ("third", 20, 60)]


def test_g26_a_rule_with_a_timer_waits_for_what_a_key_of_a_used_rule_has_begun() -> None:
    """It is stepped whatever arrives: here something of another rule."""
    users = Users(both="on: 'c ; pair ; [9 us]'", other="on: x ; x, per: k")
    found = users.step(("c", 20), ("a", 30), ("c", 40), ("x", 45), ("b", 50), ("", 70))
    assert steps["some"] > 0
    assert found == [("pair", 30, 50), ("both", 20, 59)]


def test_g26_a_timer_of_a_rule_that_uses_another_by_other_keys() -> None:
    users = Users(both="on: 'c ; pair ; [9 us]', per: k")
    assert users.step(("c", 20), ("a", 30), ("b", 40), ("", 60))[1:] == [("both", 20, 49)]


def test_g26_nothing_is_waited_for_where_what_is_used_is_an_instant() -> None:
    users = Users(one="on: a, per: k", both="on: c ; one")
    users.step(("a", 10), ("c", 20), ("c", 30))
    steps.clear()
    users.step(("c", 40))
    assert steps == {"some": 1}


def test_g26_a_timer_of_a_rule_that_is_used_without_a_key() -> None:
    """Of another partition than what happens beside it."""
    book = loaded("abc", pair="on: 'a + [9 us]', per: k", both="on: 'c ; pair'")
    given_ = Partitioned(Detector(book, {"pair": 0, "both": 0}), 16)
    carried, found = Carried(), list[str]()
    for event, key, time in (("c", 1, 5), ("a", 1, 10), ("a", 2, 11), ("b", 3, 12), ("b", 3, 30)):
        made, carried, _ = given_.step(carried, rows(event, [key], time), time)
        found += [f"{d.rule} {len(d)}" for d in made]
    assert found == ["pair 2", "both 2"]


def test_g26_timers_of_a_parked_rule_touch_no_partition() -> None:
    """Though they are due in all of them; they fire once the rule is enabled."""
    book = loaded("abc", waits="on: 'not(b)[a, [9 us]]', per: k", other="on: c ; b, per: k")
    given_, off = Partitioned(Detector(book, {"waits": 0, "other": 0}), 16), ("waits",)
    carried = given_.step(Carried(), rows("a", [*range(100)], 1), 1)[1]
    carried = given_.step(carried, rows("c", [7], 2), 2)[1]
    steps.clear()
    assert given_.next_due(carried, off) is None
    for time in (20, 30):
        found, carried, _ = given_.step(carried, rows("c", [7], time), time, None, off)
        assert not found
    assert steps == {"some": 2}
    assert given_.next_due(carried, ()) == 10
    found, carried, _ = given_.step(carried, {}, 40)
    assert [(d.rule, len(d)) for d in found] == [("waits", 100)]
