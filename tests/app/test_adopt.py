"""What of the markers in the targets a store knows, and what it says where it does not (G20)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from tidegate import rules
from tidegate.engine.app.adopt import MICROS_PER_DAY, adopt, check_store
from tidegate.engine.core.markers import Marked, Marker, Noted, Notes, parse_marker
from tidegate.rules.errors import EngineError

NOW = 1_772_442_000_000_000
HOUR = MICROS_PER_DAY // 24
BOOK = rules.load(
    """\
rulebook: shop
tables:
  orders: {path: /lake/orders}
  log: {path: /lake/log}
events:
  ordered: {on: insert, table: orders}
rules:
  first:
    on: ordered
    do: [{sql: INSERT INTO log (id) SELECT id FROM event}]
"""
)


@dataclass
class Histories:
    """The stores whose entries a rulebook knows; the version that a target is known up to."""

    known: frozenset[str]
    version: int | None

    def stores(self) -> frozenset[str]:
        return self.known

    def target_version(self, table: str) -> int | None:  # noqa: ARG002
        return self.version


@dataclass
class Ledger:
    histories: Histories


@dataclass
class Memory:
    """A store that has given four entries: 1 to rule first, 4 to rule second of another rulebook;
    2 and 3 are purged."""

    id: str = "mine"
    known: frozenset[str] = frozenset()
    entries: Mapping[int, str] = field(
        default_factory=lambda: {1: "tidegate/mine/shop/first", 4: "tidegate/mine/bank/second"}
    )
    version: int | None = None
    adopted: list[object] = field(default_factory=list)

    def wall(self) -> int:
        return NOW

    def last_entry(self) -> int:
        return 4

    def of(self, rulebook: str) -> Ledger:
        return Ledger(Histories(self.known if rulebook == "shop" else frozenset(), self.version))

    def app_ids(self, numbers: Iterable[int]) -> Mapping[int, str]:
        return {n: self.entries[n] for n in numbers if n in self.entries}

    def adopt(
        self,
        rulebook: str,
        epoch: int,
        ids: Collection[str],
        resets: Collection[str] = (),
        *,
        pass_signals: bool = False,
    ) -> tuple[int, int]:
        self.adopted.append((rulebook, epoch, sorted(ids), tuple(resets), pass_signals))
        self.id = "new"
        return 0, 0


@dataclass
class Lake:
    """Table `log` with these markers, by the commits of versions 1, 2, .."""

    history: tuple[Marker, ...]
    cleaned_before: int = 0
    retention: tuple[str, float] | None = None

    def latest(self, tables: Collection[str]) -> tuple[Marked, ...]:
        latest = {marker.app_id: marker for marker in self.history}
        kept = self.retention or (None, None)
        return tuple(
            Marked(t, f"/lake/{t}", tuple(latest.values()) if t == "log" else (), *kept)
            for t in tables
        )

    def noted(self, table: str, after: int) -> Notes:  # noqa: ARG002
        first = max(after + 1, self.cleaned_before)
        commits = [Noted(v, m, 7) for v, m in enumerate(self.history, 1) if v >= first]
        return Notes(tuple(commits), first)


def marker(number: int, app: str = "mine/shop/first", hours: int = 1) -> Marker:
    store, rulebook, rule = app.split("/", 2)
    return Marker(store, rulebook, rule, number, NOW - hours * HOUR)


def refusal(*history: Marker, memory: Memory | None = None) -> EngineError:
    with pytest.raises(EngineError) as caught:
        check_store(BOOK, memory or Memory(), Lake(history), {"log"})
    return caught.value


def test_an_app_id_is_ours_if_it_has_our_parts() -> None:
    made = parse_marker("tidegate/s/shop/first/otherwise", 3, None)
    assert made == Marker("s", "shop", "first/otherwise", 3)
    assert made.app_id == "tidegate/s/shop/first/otherwise"
    assert [parse_marker(other, 3, None) for other in ("", "app", "a/s/shop/first")] == [None] * 3


@pytest.mark.parametrize(
    "stands",
    [
        marker(1),
        marker(3),  # purged since
        marker(4, "mine/bank/second"),
        marker(9, "known/shop/first"),
        marker(9, "other/bank/second"),  # another rulebook's affair
        marker(9, "other/shop/first", hours=31 * 24),
    ],
    ids=str,
)
def test_g20_what_a_store_knows_or_need_not_know_is_let_be(stands: Marker) -> None:
    memory = Memory(known=frozenset({"known"}))
    check_store(BOOK, memory, Lake((stands,)), {"log"})
    assert adopt(BOOK, memory, 1, Lake((stands,)), repeat=True)["adopted"] is False
    assert memory.adopted == []


@pytest.mark.parametrize(
    "behind",
    [marker(5), marker(5, "mine/bank/second"), marker(4), marker(1, "mine/shop/fir")],
    ids=str,
)
def test_g20_a_marker_of_an_entry_that_the_store_has_not_given_refuses_it(behind: Marker) -> None:
    error = refusal(marker(1), behind)
    assert error.code == "store-behind-effects"
    assert f"table `log`: its marker {behind.app_id} is at entry {behind.number}" in error.message
    assert "highest" in error.message
    assert " 4" in error.message
    assert all(f"tidegate adopt {way} RULEBOOK" in error.hint for way in ("--repeat", "--from now"))


@pytest.mark.parametrize("repeat", [True, False])
def test_g20_an_entry_that_stands_for_another_one_is_not_that_one(repeat: bool) -> None:
    """Entry 2 is a redrive in this store; the target has one that the store has forgotten."""
    memory = Memory(entries={2: "tidegate/mine/shop/first/redrive/1/0"}, version=0)
    assert refusal(marker(2), memory=memory).code == "store-behind-effects"
    report = adopt(BOOK, memory, 8, Lake((marker(2),)), repeat=repeat)
    assert [(c["rule"], c["entry"]) for c in report["commits"]] == [("first", 2)]
    redriven = marker(2, "mine/shop/first/redrive/1/0")
    check_store(BOOK, replace(memory, id="mine"), Lake((redriven,)), {"log"})


def test_g20_a_marker_of_another_store_refuses_it_with_its_id_and_age() -> None:
    error = refusal(marker(2, "other/shop/first", hours=30), marker(1, "other/shop/first", hours=5))
    assert error.code == "other-store"
    assert "written by store other 5 h ago" in error.message
    assert "tidegate adopt --from now" in error.hint


def test_g20_a_marker_of_unknown_age_is_not_taken_for_an_old_one() -> None:
    stands = replace(marker(9, "other/shop/first"), committed_at=None)
    assert refusal(stands).code == "other-store"


def test_g20_the_rulebooks_of_an_adopted_store_know_their_own_entries_under_its_former_id() -> None:
    adopted = Memory(id="new")
    check_store(BOOK, adopted, Lake((marker(1),)), {"log"})
    assert refusal(marker(6), memory=adopted).code == "other-store"


def test_g20_markers_must_last_as_long_as_an_entry_may_wait() -> None:
    lake = Lake((marker(1),), retention=("interval 7 days", 7.0))
    with pytest.raises(EngineError, match="table `log` has 'interval 7 days'") as caught:
        check_store(BOOK, Memory(), lake, {"log"})
    assert caught.value.code == "marker-retention"
    mend = "ALTER TABLE delta.`/lake/log` SET TBLPROPERTIES"
    assert mend in caught.value.hint
    check_store(BOOK, Memory(), Lake((marker(1),), retention=("interval 30 days", 30.0)), {"log"})


def test_g20_adopt_lists_what_the_store_does_not_know() -> None:
    memory = Memory(version=1)
    strange = marker(2, "other/shop/first")
    history = (marker(1), marker(3), marker(4), marker(6, "mine/bank/second"), strange)
    report = adopt(BOOK, memory, 8, Lake(history), repeat=False)
    assert [(m["why"], m["store"], m["entry"]) for m in report["markers"]] == [
        ("store-behind-effects", "mine", 4),
        ("store-behind-effects", "mine", 6),
        ("other-store", "other", 2),
    ]
    assert [(c["version"], c["rule"], c["entry"], c["firings"]) for c in report["commits"]] == [
        (3, "first", 4, 7),
        (4, "second", 6, 7),
        (5, "first", 2, 7),
    ]
    assert memory.adopted == [("shop", 8, ["mine", "other"], ("orders",), True)]
    assert (report["former_store_id"], report["store_id"]) == ("mine", "new")
    assert report["logs_cleaned"] == []


def test_g20_adopt_says_where_a_log_does_not_reach_back_to_what_the_store_knows() -> None:
    lake = Lake((marker(1), marker(5), marker(6)), cleaned_before=3)
    report = adopt(BOOK, Memory(version=1), 8, lake, repeat=True)
    assert [c["version"] for c in report["commits"]] == [3]
    assert report["logs_cleaned"] == [{"table": "log", "log_begins_at_version": 3}]


def test_g20_signals_are_passed_over_only_where_the_store_may_have_taken_them_before() -> None:
    memory = Memory()
    adopt(BOOK, memory, 8, Lake((marker(2, "other/shop/first"),)), repeat=False)
    adopt(BOOK, memory, 9, Lake((marker(9, "new/shop/first"),)), repeat=True)
    assert memory.adopted == [
        ("shop", 8, ["other"], ("orders",), False),
        ("shop", 9, ["new"], (), False),
    ]
