"""What `firings` and `status` show."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.core.entries import Fate
from tidegate.engine.core.state import Parked
from tidegate.engine.core.values import Firings, Load, Rejected
from tidegate.engine.store import SqlStore
from tidegate.engine.store import firings as listing
from tidegate.engine.store.holder import this_user
from tidegate.rules.errors import EngineError
from tidegate.rules.model import About, Severity


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


def test_a_firing_is_shown_as_simulate_prints_it_and_more(store: SqlStore, epoch: int) -> None:
    fired = make.firings(count=1)
    (entry,) = make.commit(store, epoch, make.plan(), fired=[fired], entries=[make.entry()])
    store.of("bank", epoch).outbox.settle([make.outcome(entry, "pending", 2, "no such column")])
    assert list(store.of("bank").firings.listed()) == [
        {
            "rule": "blocked",
            "key": {"account_id": 7},
            "start": "2026-03-02T09:00:30Z",
            "end": "2026-03-02T09:01:00Z",
            "constituents": [
                {
                    "event": "withdrawal",
                    "time": "2026-03-02T09:00:30Z",
                    "account_id": 7,
                    "amount": 50.5,
                },
                {"event": "transfer", "time": "2026-03-02T09:01:00Z", "account_id": 7},
            ],
            "firing_id": make.hex_ids(fired)[0],
            "bucket": 1,
            "condition": "none",
            "fired_at": "2026-03-02T10:00:01Z",
            "depth": 1,
            "entries": [
                {"number": 1, "state": "pending", "attempts": 2, "error": "no such column"}
            ],
        }
    ]


def test_entries_stand_with_the_firings_that_they_are_for(store: SqlStore, epoch: int) -> None:
    held = pa.array(["held", "failed", "held"])
    fired = make.firings(count=3, condition=held)
    last = make.hex_ids(fired)[2]
    entries = [make.entry(order=0), make.entry(order=1, firing_ids=(last,))]
    make.commit(store, epoch, make.plan(), fired=[fired], entries=entries)
    shown = [
        [e["number"] for e in firing["entries"]] for firing in store.of("bank").firings.listed()
    ]
    assert shown == [[1], [], [1, 2]]


def test_firings_are_ordered_by_end_then_rule(store: SqlStore, epoch: int) -> None:
    many = [make.firings("b", 3), make.firings("a", 2), make.firings("c", 1)]
    make.commit(store, epoch, make.plan(1), fired=many)
    make.commit(store, epoch, make.plan(2), fired=[make.firings("a", 1, bucket=2)])
    order = [(firing["end"][11:16], firing["rule"]) for firing in store.of("bank").firings.listed()]
    assert order == [
        ("09:01", "a"),
        ("09:01", "b"),
        ("09:01", "c"),
        ("09:02", "a"),
        ("09:02", "b"),
        ("09:03", "b"),
        ("10:01", "a"),
    ]
    everything = list(store.of("bank").firings.listed())
    for limit in range(1, 9):
        assert list(store.of("bank").firings.listed(limit=limit)) == everything[-limit:]
    assert list(store.of("bank").firings.listed(rule="b")) == [
        f for f in everything if f["rule"] == "b"
    ]
    since = make.BEGIN + 120 * make.SECOND
    assert list(store.of("bank").firings.listed(since=since)) == everything[3:]
    assert list(store.of("bank").firings.listed(since=since, limit=2)) == everything[-2:]
    assert list(store.of("bank").firings.listed(rule="none")) == []


def test_a_firing_is_found_by_its_id(store: SqlStore, epoch: int) -> None:
    first, second = make.firings("a", 3), make.firings("b", 3, bucket=2)
    make.commit(store, epoch, make.plan(1), fired=[first])
    make.commit(store, epoch, make.plan(2), fired=[second])
    assert make.find_firing(store, "bank", make.hex_ids(first)[2]) == (1, "a")
    assert make.find_firing(store, "bank", make.hex_ids(second)[0]) == (2, "b")
    assert make.find_firing(store, "stock", make.hex_ids(second)[0]) is None
    ids = "".join(sorted(make.hex_ids(first)))
    assert make.find_firing(store, "bank", ids[16:48]) is None  # lies across two of them


def test_a_listing_goes_on_where_another_one_ended(
    store: SqlStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE_ROWS", 2)
    for bucket in range(1, 5):
        fired = [make.firings(rule, 3, bucket) for rule in "cab"[: bucket % 4]]
        make.commit(store, epoch, make.plan(bucket), fired=fired)
    everything = list(store.of("bank").firings.listed())
    assert len(everything) == 18
    for n, last in enumerate(everything):
        before = last["firing_id"]
        assert list(store.of("bank").firings.listed(before=before)) == everything[:n]
        assert (
            list(store.of("bank").firings.listed(before=before, limit=4))
            == everything[max(0, n - 4) : n]
        )
        of_a = [firing for firing in everything[:n] if firing["rule"] == "a"]
        assert list(store.of("bank").firings.listed(rule="a", before=before, limit=2)) == of_a[-2:]
    assert list(store.of("bank").firings.listed(since=make.BEGIN + 9 * make.HOUR)) == []
    with pytest.raises(EngineError, match=f"there is no firing {'0' * 32}"):
        store.of("bank").firings.listed(before="0" * 32)


def test_an_entry_is_shown_with_all_that_was_said_and_its_firings(
    store: SqlStore, epoch: int
) -> None:
    condition = pa.array(["held", "failed", "held"])
    fired = make.firings(count=3, condition=condition)
    first, second, third = make.hex_ids(fired)
    entries = [
        make.entry(order=0),
        make.entry(order=1, firing_ids=(third,), state="dead", error="no", details="for Ada"),
        make.entry(order=2, kind="condition", text="balance > 0", target=None, state="dead"),
    ]
    make.commit(store, epoch, make.plan(), fired=[fired], entries=entries)
    found = [store.of("bank").firings.entry(number) or {} for number in (1, 2, 3)]
    ids = [[firing["firing_id"] for firing in entry["firings"]] for entry in found]
    assert ids == [[first, third], [third], [first, second, third]]
    assert (found[1]["state"], found[1]["error"], found[1]["details"]) == ("dead", "no", "for Ada")
    assert (found[2]["text"], found[2]["commands"][1]) == ("balance > 0", "tidegate skip 3")
    assert store.of("bank").firings.entry(4) is None
    assert store.of("stock").firings.entry(1) is None


def test_rejected_rows_are_shown_newest_last_with_their_values_only_if_asked(
    store: SqlStore, epoch: int
) -> None:
    for bucket in (1, 2):
        rows = [Rejected("w", "t", f"reason {n}", {"name": "Ada"}, "Ada") for n in range(3)]
        make.commit(store, epoch, make.plan(bucket), rejected=rows)
    shown = store.of("bank").rejections.newest(4, whole=False)
    assert [(row["bucket"], row["reason"]) for row in shown] == [
        (1, "reason 2"),
        (2, "reason 0"),
        (2, "reason 1"),
        (2, "reason 2"),
    ]
    assert "Ada" not in str(shown)
    (last,) = store.of("bank").rejections.newest(1, whole=True)
    assert (last["fields"], last["details"]) == ({"name": "Ada"}, "Ada")


def test_a_firing_without_constituents_has_none(store: SqlStore, epoch: int) -> None:
    fired = make.firings(count=2)
    relation = fired.relation.slice(0, 3)  # the second has one row, made null
    events = pa.array(["withdrawal", "transfer", None])
    at = relation.column_names.index("event_type")
    fired = replace(fired, relation=relation.set_column(at, "event_type", events))
    make.commit(store, epoch, make.plan(), fired=[fired])
    assert [len(firing["constituents"]) for firing in store.of("bank").firings.listed()] == [2, 0]


def test_values_are_printed_as_the_language_says(store: SqlStore, epoch: int) -> None:
    at = datetime(2026, 3, 2, 9, 0, 0, 250_000, tzinfo=UTC)
    values = {
        "decimal": (Decimal("12.50"), pa.decimal128(12, 2)),
        "timestamp": (at, make.UTC),
        "ntz": (at.replace(tzinfo=None, microsecond=0), pa.timestamp("us")),
        "date": (date(2026, 3, 2), pa.date32()),
        "binary": (b"\x00\xff", pa.binary()),
        "nan": (float("nan"), pa.float64()),
        "infinite": (float("-inf"), pa.float32()),
        "old": ({"at": at, "n": None}, pa.struct([("at", make.UTC), ("n", pa.int64())])),
        "map": ([("b", 2), ("a", None)], pa.map_(pa.string(), pa.int64())),
        "list": ([date(2026, 1, 1), None], pa.list_(pa.date32())),
    }
    fired = make.firings(count=1)
    relation = fired.relation.slice(0, 1)
    for name, (value, kind) in values.items():
        relation = relation.append_column(name, pa.array([value], kind))
    make.commit(store, epoch, make.plan(), fired=[Firings("blocked", fired.firings, relation)])
    (constituent,) = next(store.of("bank").firings.listed())["constituents"]
    assert {name: constituent[name] for name in values} == {
        "decimal": Decimal("12.50"),
        "timestamp": "2026-03-02T09:00:00.250000Z",
        "ntz": "2026-03-02T09:00:00",
        "date": "2026-03-02",
        "binary": "AP8=",
        "nan": "NaN",
        "infinite": "-Infinity",
        "old": {"at": "2026-03-02T09:00:00.250000Z", "n": None},
        "map": [["a", None], ["b", 2]],
        "list": ["2026-01-01", None],
    }


def test_firings_say_what_their_rule_said_of_itself_when_they_fired(
    store: SqlStore, epoch: int
) -> None:
    """Each bucket keeps its own; a rule that says nothing adds nothing."""
    grave = About("first words", {"team": "fraud"}, Severity.CRITICAL)
    for bucket, about in enumerate([grave, About(severity=Severity.INFO), About()], 1):
        fired = replace(make.firings(count=1, bucket=bucket), about=about)
        make.commit(store, epoch, make.plan(bucket), fired=[fired])
    names = ("description", "severity", "labels")
    shown = [{n: f[n] for n in names if n in f} for f in store.of("bank").firings.listed()]
    assert shown == [
        {"description": "first words", "severity": "critical", "labels": {"team": "fraud"}},
        {"severity": "info"},
        {},
    ]


def test_label_columns_are_not_parameters(store: SqlStore, epoch: int) -> None:
    fired = make.firings(count=1)
    labels = pa.array(["W", None])
    relation = fired.relation.set_column(2, "label", labels)
    for column in ("W_start", "W_end", "period_start"):
        relation = relation.append_column(column, relation["occurred_at"])
    make.commit(store, epoch, make.plan(), fired=[replace(fired, relation=relation)])
    constituent = next(store.of("bank").firings.listed())["constituents"][0]
    assert list(constituent) == ["event", "time", "account_id", "amount", "period_start"]


def test_the_status_of_a_rulebook_that_never_ran(store: SqlStore) -> None:
    status = store.of("bank").status.shown()
    assert (status["bucket"], status["watermark"], status["lease_holder"]) == (0, None, None)


def test_entries_of_all_rules_are_counted_together(store: SqlStore, epoch: int) -> None:
    store.of("bank").versions.register("rulebook: bank", None)
    plan = make.plan(activations={"blocked": 1, "b": 1})
    entries = [make.entry(), make.entry("b", order=1), make.entry("b", order=2)]
    fired = [make.firings(), make.firings("b")]
    make.commit(
        store, epoch, plan, fired=fired, entries=entries, digests={"blocked": "1", "b": "2"}
    )
    assert store.of("bank").status.shown()["entries_pending"] == 3


def test_status_says_where_the_engine_stands(store: SqlStore, epoch: int) -> None:
    store.of("bank").versions.register("rulebook: bank", None)
    store.of("bank").signals.raise_signal(make.signal())
    store.of("bank").controls.ask("reset", "accounts", 7)
    late = {3: make.BEGIN, 4: make.BEGIN}
    spans = (
        replace(make.a_range("transactions", 3, 4), logged=late),
        make.a_range("accounts", 1, 1),
    )
    store.of("bank").controls.ask("enable", "b")
    enabled = store.of("bank").controls.pending()[-1].id
    plan = make.plan(
        ranges=spans,
        activations={"blocked": 1, "b": 1, "c": 1},
        controls=(enabled,),
        enabled=frozenset("b"),
    )
    numbered = make.commit(
        store,
        epoch,
        plan,
        fired=[make.firings()],
        entries=[make.entry(order=n) for n in range(3)]
        + [make.entry(order=3, state="dead", error="x", details="for Ada's row")],
        rejected=[Rejected("withdrawal", "transactions", "no time", {"n": "Ada"}, "Ada")] * 3,
        digests={"blocked": "1", "b": "1", "c": "1"},
        parked=(Parked("c", "it stores too much", "bound it", make.BEGIN + make.SECOND),),
        loads={"c": Load(4, 2)},
        misfires={"evening": 3},
    )
    store.of("bank", epoch).outbox.settle(
        [make.outcome(numbered[0], "pending", 1, "table is gone")]
    )
    doubt = make.outcome(
        numbered[2], "held", 3, "no answer", details="Ada", fate=Fate.UNKNOWN.value
    )
    store.of("bank", epoch).outbox.settle([doubt])
    store.of("bank").controls.ask("skip", "9", option="unsealed")
    store.of("bank", epoch).controls.answer(
        store.of("bank").controls.pending()[-1].id, "there is no entry 9"
    )
    store.of("bank", epoch).lease.set_stopped("transactions is gone")
    status = store.of("bank").status.shown({"withdrawal"})
    assert "Ada" not in str(status)  # no value of the user's tables
    assert status.pop("store_id") == store.id
    assert min(status.pop("lease_until"), status.pop("state_since")) > "2026"
    assert status.pop("store_bytes") > 0
    assert (status.pop("state_files"), status.pop("state_bytes")) == (0, 0)
    assert status.pop("oldest_signal_seconds") == 0  # what nobody declares is not waited for
    for asked in status["answered"]:
        assert asked.pop("asked_at") > "2026"
    for asked in (*status["asked_for"], *status["answered"]):
        assert asked.pop("asked_by") == this_user()
    no_hours = {"fired": 0, "condition_failed": 0, "damped": 0, "dead": 0}
    nothing = {"fired": 0, "condition_failed": 0, "damped": 0, "damped_by": {}}
    nothing["last_day"] = no_hours  # of the bucket's clock, which is behind the store's
    light = {"carried_instances": 0, "carried_keys": 0}
    idle = {"last_fired": None, **nothing, "pending": 0, "held": 0, "dead": 0, **light}
    assert status.pop("rules") == [
        {"rule": "b", "state": "active", **idle},
        {
            "rule": "blocked",
            "state": "active",
            "last_fired": "2026-03-02T09:02:00Z",
            **nothing,
            "fired": 2,
            "last_day": {**no_hours, "dead": 2},  # by the store's clock
            "pending": 2,
            "held": 1,
            "dead": 2,
            **light,
        },
        {"rule": "c", "state": "parked", **idle, "carried_instances": 4, "carried_keys": 2},
    ]
    entries = status.pop("entries")
    assert [(e["number"], e["state"], e["error"], e["commands"]) for e in entries] == [
        (1, "pending", "table is gone", []),
        (2, "pending", None, []),
        (3, "held", "no answer", ["tidegate redrive 3 --may-double", "tidegate skip 3 --unsealed"]),
        (4, "dead", "x", ["tidegate redrive 4", "tidegate skip 4"]),
    ]
    assert status == {
        "rulebook": "bank",
        "bucket": 1,
        "watermark": "2026-03-02T10:00:00Z",
        "watermark_micros": make.BEGIN + make.HOUR,
        "timers_pending": 0,
        "misfires": {"evening": 3},
        "losing_ground_since": None,
        "detected": {"by": "driver", "because": ""},
        "stopped": "transactions is gone",
        "standby": None,
        "version": 1,
        "lease_holder": "one",
        "adjusted_commits": 2,
        "fired": 2,
        "condition_failed": 0,
        "damped": 0,
        "dead": 2,
        "unplaced_signals": 1,
        "rejected_rows": 3,
        "entries_pending": 2,
        "entries_failed": 1,
        "entries_held": 1,
        "entries_dead": 1,
        "vanished": None,
        "state": "starting",
        "doing": "",
        "behind": dict.fromkeys(("commits", "signals", "oldest", "seconds")),
        "looked_at": None,
        "seen_until": "2026-03-02T10:00:00Z",
        "next_timer": None,
        "next_timer_late_seconds": 0.0,
        "active_rules": ["b", "blocked"],
        "quarantined": [],
        "disabled_rules": [],
        "parked_rules": [
            {
                "rule": "c",
                "reason": "it stores too much",
                "hint": "bound it",
                "since": "2026-03-02T09:00:01Z",
                "passed_over": 0,
                "commands": ["tidegate enable c"],
            }
        ],
        "tables": [
            {"table": "accounts", "version": 1, "instant": "2026-03-02T09:00:01Z"},
            {"table": "transactions", "version": 4, "instant": "2026-03-02T09:00:04Z"},
        ],
        "moved": [
            {
                "table": "transactions",
                "version": version,
                "from": "2026-03-02T09:00:00Z",
                "to": f"2026-03-02T09:00:0{version}Z",
                "bucket": 1,
            }
            for version in (3, 4)
        ],
        "rejected": [
            {
                "bucket": 1,
                "ordinal": ordinal,
                "event": "withdrawal",
                "source": "transactions",
                "reason": "no time",
            }
            for ordinal in range(3)
        ],
        "undeclared_signals": [{"event": "atm_empty", "signals": 1}],
        "asked_for": [{"kind": "reset", "subject": "accounts", "version": 7, "option": None}],
        "answered": [
            {"kind": "enable", "subject": "b", "option": None, "bucket": 1, "answer": "done"},
            {
                "kind": "skip",
                "subject": "9",
                "option": "unsealed",
                "bucket": None,
                "answer": "there is no entry 9",
            },
        ],
    }
    store.of("bank", epoch).lease.set_stopped(None)
    assert store.of("bank").status.shown()["stopped"] is None
    make.commit(store, epoch, make.plan(2, enabled=frozenset("c")), fired=[make.firings(bucket=2)])
    status = store.of("bank").status.shown()
    assert (status["parked_rules"], status["fired"], status["rejected_rows"]) == ([], 4, 3)


def test_the_newest_are_the_last_of_all_however_few_rules_are_read(
    store: SqlStore, epoch: int
) -> None:
    """Rules whose firings lie between each other's, and end together."""
    draw = random.Random(7)
    for bucket in range(1, 4):
        fired = []
        for rule in "abcde":
            ends = np.array(sorted(draw.choices(range(12), k=draw.randint(1, 4))))
            times = pa.array(make.BEGIN + (bucket * 60 + ends) * make.SECOND).cast(make.UTC)
            fired.append(make.firings(rule, len(ends), bucket, detected_at=times))
        make.commit(store, epoch, make.plan(bucket), fired=fired)
    every = [*store.of("bank").firings.listed()]
    assert len(every) > 30
    read = 0
    for limit in range(1, len(every) + 1):
        found = store.of("bank").firings.newest(listing.Wanted(limit=limit), 60)
        assert found.firings == every[-limit:]
        assert found.before == every[-limit]["firing_id"]
        assert found.looked_until is None
        read += len(found.firings)
    assert read


def test_few_rules_of_a_large_bucket_are_read(
    store: SqlStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired = [make.firings(f"r{n:03}", 5) for n in range(60)]
    make.commit(store, epoch, make.plan(), fired=fired)
    read: list[str] = []
    decoded = listing.rule_firings
    monkeypatch.setattr(
        listing,
        "rule_firings",
        lambda *given: (read.append(given[1].rule), decoded(*given))[1],
    )
    found = store.of("bank").firings.newest(listing.Wanted(limit=4), 60)
    assert [one["rule"] for one in found.firings] == ["r056", "r057", "r058", "r059"]
    assert len(read) == 60  # the rows of a rule are minutes apart, so any rule may have the last
    read.clear()
    at = pa.array([make.BEGIN + make.SECOND] * 5).cast(make.UTC)
    fired = [make.firings(f"r{n:03}", 5, 2, detected_at=at) for n in range(60)]
    make.commit(store, epoch, make.plan(2), fired=fired)
    found = store.of("bank").firings.newest(listing.Wanted(limit=7), 60)
    assert {one["rule"] for one in found.firings} == {"r058", "r059"}
    assert read == ["r058", "r059"]
