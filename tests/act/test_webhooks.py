"""Entries that are sent to a server on this machine, over a store: once a firing and action, again
where that failed, and only that (G17, G29)."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support import make
from tests.support.acting import FakeSink, Unasked
from tests.support.make import SECOND, firings, hex_ids
from tests.support.receiver import RESET, Receiver
from tests.support.rulebooks import rule, rulebook
from tidegate.connectors.http.webhooks import WebhookPoster
from tidegate.engine.act.kinds.sql import Statements
from tidegate.engine.act.kinds.webhook import Webhooks
from tidegate.engine.act.run import Runner
from tidegate.engine.act.threads import Crew
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.failpoints import FailpointError, arm
from tidegate.engine.core.statement import encode
from tidegate.engine.core.values import Firings
from tidegate.engine.store import open_store
from tidegate.rules.model import Retry

SECRETS = {"TIDEGATE_SECRET_OPS": "0123456789abcdef", "TIDEGATE_SECRET_TOKEN": "tok en"}
FIRED = firings("a", 4)
IDS = hex_ids(FIRED)
RETRY = Retry(3, backoff_min_micros=SECOND, backoff_max_micros=4 * SECOND)


class Bench:
    """A runner over an SQLite store, at the time `now`, and the server that it sends to."""

    def __init__(self, url: str, receiver: Receiver, sink: FakeSink | None = None) -> None:
        self.store = open_store(url, create=False)
        self.receiver, self.sink, self.now = receiver, sink or FakeSink(), 0
        self.environment = dict(SECRETS)
        self.poster = WebhookPoster(receiver.hosts, 4, 2)
        self.begin()

    def begin(self) -> None:
        """As a new engine would."""
        self.epoch = self.store.of("bank").lease.acquire("one", 60)
        book = rulebook(rule(name="a", retry=RETRY), rule(name="h", retry=RETRY, on_dead="hold"))
        crew = Crew("act", 2)
        self.runner = Runner(
            book,
            {
                "sql": Statements(self.sink),
                "webhook": Webhooks(self.sink, self.poster, self.environment),
            },
            self.store.of("bank", self.epoch),
            lambda: None,
            lambda: self.now,
            crew,
            Crew("beside", 4),
        )
        self.runner.load(self.store.of("bank").outbox.open_entries())

    def add(self, *entries: Entry, fired: Firings = FIRED) -> tuple[Entry, ...]:
        made = make.plan(self.store.of("bank").buckets.last() + 1)
        numbered = make.commit(self.store, self.epoch, made, fired=[fired], entries=entries)
        self.runner.add(numbered, [fired])
        return numbered

    def work(self, after: int = 0) -> int:
        self.now += after
        return self.runner.work(Unasked(), patient=True)

    def states(self) -> list[tuple[int, str, list[str] | None, str | None]]:
        found = (
            self.store.of("bank").outbox.entry(n) for n in range(1, self.store.last_entry() + 1)
        )
        return [
            (
                e.number,
                e.state,
                list(e.firing_ids) if e.firing_ids else None,
                e.progress.error,
            )
            for e in found
            if e is not None
        ]

    def hook(self, order: int = 0, rule: str = "a", **more: Any) -> Entry:
        text = {
            "url": self.receiver.url,
            "secret": more.pop("secret", None),
            "headers": more.pop("headers", {}),
            "fields": more.pop("fields", {}),
            "types": {},
            "group": ["firing_id", "account_id", "day", "cost"],
            "about": more.pop("about", {}),
        }
        return make.entry(
            rule, order, kind="webhook", text=json.dumps(text), target=None, stage=None, **more
        )


@pytest.fixture
def bench_of(tmp_path: Path, empty_store: Path) -> Iterator[Callable[..., Bench]]:
    file = shutil.copy(empty_store, tmp_path / "store.db")
    opened: list[Bench] = []

    def make_bench(receiver: Receiver, sink: FakeSink | None = None) -> Bench:
        opened.append(Bench(f"sqlite:///{file}", receiver, sink))
        return opened[-1]

    yield make_bench
    arm("")
    for bench in opened:
        bench.poster.close()
        bench.store.__exit__(None, None, None)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def test_g29_a_firing_is_one_request_that_says_which_it_is(
    receiver: Receiver, bench_of: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = bench_of(receiver)
    cost = pa.array([Decimal("1.50"), Decimal("12345678901234567890.12"), None, Decimal(0)])
    days = pa.array([0, 1, 2, None], pa.int32()).cast(pa.date32())
    fired = firings("a", 4, cost=cost, day=days)
    headers = {"Authorization": "Bearer ${TIDEGATE_SECRET_TOKEN}", "X-Plain": "yes"}
    fields = {"account": "account_id", "cost": "cost", "day": "day"}
    with caplog.at_level(logging.DEBUG):
        bench.add(
            bench.hook(secret="TIDEGATE_SECRET_OPS", headers=headers, fields=fields, action=2),
            fired=fired,
        )
        assert bench.work() == 1
    assert sorted(receiver.keys) == sorted(f"{one}/2" for one in hex_ids(fired))
    [second] = [one for one in receiver.received if one.fields["firing_id"] == hex_ids(fired)[1]]
    assert b'"cost":12345678901234567890.12' in second.body
    assert second.fields == {
        "firing_id": hex_ids(fired)[1],
        "rule": "a",
        "detected_at": "2026-03-02T09:02:00Z",
        "key": {"account_id": 8, "cost": second.fields["cost"], "day": "1970-01-02"},
        "account": 8,
        "cost": second.fields["cost"],
        "day": "1970-01-02",
    }
    assert second.headers["authorization"] == "Bearer tok en"
    assert second.headers["x-plain"] == "yes"
    assert second.headers["content-type"] == "application/json"
    assert second.headers["x-tidegate-signature"].startswith("t=")
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for value in SECRETS.values():
        assert value.encode() not in kept
        assert value not in caplog.text


def test_a_request_says_what_its_rule_said_of_itself_when_it_fired(
    receiver: Receiver, bench_of: Any
) -> None:
    bench = bench_of(receiver)
    about = {"severity": "critical", "labels": {"team": "fraud"}, "description": "two cities"}
    bench.add(bench.hook(fields={"description": "'the body wins'"}, about=about))
    bench.add(bench.hook())
    bench.work()
    first, second = receiver.received[:4], receiver.received[4:]
    said = about | {"description": "the body wins"}
    assert all(one.fields.items() >= said.items() for one in first)
    assert len(second) == 4
    assert not any(about.keys() & one.fields.keys() for one in second)


def test_expressions_are_evaluated_as_a_signals_are(receiver: Receiver, bench_of: Any) -> None:
    bench = bench_of(receiver)
    bench.add(bench.hook(fields={"total": "sum(amount)"}))
    bench.work()
    assert sorted(one.fields["total"] for one in receiver.received) == [50.5, 51.5, 52.5, 53.5]


def test_g29_only_what_failed_is_tried_again_by_the_same_key(
    receiver: Receiver, bench_of: Any
) -> None:
    receiver.answer = lambda one: 503 if one.fields["firing_id"] in IDS[1:3] else 200
    bench = bench_of(receiver)
    bench.add(bench.hook(otherwise_at=99 * SECOND))
    assert bench.work() == 0
    left = [e.otherwise_at for e in map(bench.store.of("bank").outbox.entry, (1, 2)) if e]
    assert left == [99 * SECOND, None]  # no alternative for what is done
    said = "2 requests failed: 127.0.0.1 answered 503"
    assert bench.states() == [
        (1, "pending", IDS[1:3], said),
        (2, "done", [IDS[0], IDS[3]], None),
    ]
    receiver.received.clear()
    receiver.answer = lambda one: RESET if one.fields["firing_id"] == IDS[2] else 200
    assert bench.work(SECOND) == 0
    bench.begin()  # a restart between two attempts: the entry is as it was narrowed
    receiver.answer = lambda _: 200
    assert bench.work(2 * SECOND) == 1
    assert sorted(receiver.keys[:2]) == sorted(f"{one}/0" for one in IDS[1:3])
    assert receiver.keys[2:] == [f"{IDS[2]}/0"]
    assert [(n, state, ids) for n, state, ids, _ in bench.states()] == [
        (1, "done", [IDS[2]]),
        (2, "done", [IDS[0], IDS[3]]),
        (3, "done", [IDS[1]]),
    ]
    shown = {f["firing_id"]: f["entries"] for f in bench.store.of("bank").firings.listed()}
    assert [[e["state"] for e in shown[one]] for one in IDS] == [["done"]] * 4


def test_a_stop_sends_no_more_of_an_entry_and_counts_as_no_attempt(
    receiver: Receiver, bench_of: Any
) -> None:
    """The last attempt that it has is cut short three times."""
    bench = bench_of(receiver)
    bench.add(bench.hook())

    def run() -> int:
        """Another engine, which is stopped as soon as one request came."""
        before = len(receiver.received)

        def stopped() -> bool:
            return len(receiver.received) > before

        bench.poster.close()
        bench.poster = WebhookPoster(receiver.hosts, 1, 2, stopped=stopped)
        bench.begin()
        done: int = bench.runner.work(Unasked(), stopped, patient=True)
        return done

    assert [run() for _ in IDS] == [0, 0, 0, 1]
    assert sorted(receiver.keys) == sorted(f"{one}/0" for one in IDS)  # each once
    outbox = bench.store.of("bank").outbox
    entries = [outbox.entry(n) for n in range(1, bench.store.last_entry() + 1)]
    assert {e.state for e in entries if e} == {"done"}
    assert max(e.progress.attempts for e in entries if e) == 1


def test_g29_what_the_receiver_refuses_is_dead_at_once_and_the_rest_goes_on(
    receiver: Receiver, bench_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told = {IDS[0]: 400, IDS[1]: 503}
    receiver.answer = lambda one: told.get(one.fields["firing_id"], 200)
    bench = bench_of(receiver)
    bench.add(bench.hook())
    with caplog.at_level(logging.ERROR):
        bench.work()
    assert bench.states() == [
        (1, "pending", [IDS[1]], "127.0.0.1 answered 503"),
        (2, "done", IDS[2:], None),
        (3, "dead", [IDS[0]], "127.0.0.1 answered 400"),
    ]  # fmt: skip
    assert "entry 3 of bucket 1 failed once and is dead" in caplog.text
    told.clear()
    assert bench.work(SECOND) == 1

    # Alone, or with all others: the entry itself is dead.
    receiver.answer = lambda _: 410
    bench.add(bench.hook())
    bench.work()
    assert bench.states()[-1] == (
        4, "dead", None, "4 requests failed: 127.0.0.1 answered 410"
    )  # fmt: skip
    assert len(bench.runner.queues) == 0


def test_g18_a_redrive_sends_what_is_dead_by_the_same_keys(
    receiver: Receiver, bench_of: Any
) -> None:
    receiver.answer = lambda one: 400 if one.fields["firing_id"] == IDS[0] else 200
    bench = bench_of(receiver)
    bench.add(bench.hook())
    bench.work()
    assert [state for _, state, _, _ in bench.states()] == ["dead", "done"]

    class Now(Unasked):
        def renewed(self, entry: Entry) -> Entry:
            return make.entry(
                entry.rule, kind=entry.kind, text=encode(entry.statement), target=None, stage=None,
                firing_ids=entry.firing_ids, place=entry.turn.place, bucket=entry.bucket,
            )  # fmt: skip

    receiver.answer = lambda _: 200
    receiver.received.clear()
    bench.store.of("bank").controls.ask("redrive", "1")
    [asked] = bench.store.of("bank").controls.pending()
    bench.runner.carry_out(asked, Now())
    assert bench.work() == 1
    assert receiver.keys == [f"{IDS[0]}/0"]


def test_g17_a_rule_that_holds_keeps_what_failed_together(
    receiver: Receiver, bench_of: Any
) -> None:
    fired = firings("h", 4)
    ids = hex_ids(fired)
    told = {ids[0]: 400, ids[1]: 503}
    receiver.answer = lambda one: told.get(one.fields["firing_id"], 200)
    bench = bench_of(receiver)
    bench.add(bench.hook(rule="h"), fired=fired)
    bench.work()
    del told[ids[1]]
    bench.work(SECOND)
    assert [(n, state) for n, state, _, _ in bench.states()] == [
        (1, "held"), (2, "done"), (3, "done"),
    ]  # fmt: skip
    told.clear()
    assert bench.work(4 * SECOND) == 1  # it is tried again at the longest pause
    assert bench.states()[0][:3] == (1, "done", [ids[0]])


def test_attempts_are_used_up(receiver: Receiver, bench_of: Any) -> None:
    receiver.answer = lambda _: 503
    bench = bench_of(receiver)
    bench.add(bench.hook(firing_ids=(IDS[0],)))
    for _ in range(3):
        bench.work(4 * SECOND)
    assert receiver.keys == [f"{IDS[0]}/0"] * 3
    assert bench.states() == [(1, "dead", [IDS[0]], "127.0.0.1 answered 503")]


def test_the_receiver_says_when(receiver: Receiver, bench_of: Any) -> None:
    receiver.answer = lambda _: (429, {"Retry-After": "60"})
    bench = bench_of(receiver)
    bench.add(bench.hook(firing_ids=(IDS[0],)))
    bench.work()
    receiver.answer = lambda _: 200
    assert bench.work(59 * SECOND) == 0
    assert bench.work(SECOND) == 1


def test_g29_what_was_sent_and_not_settled_is_sent_again_by_the_same_keys(
    receiver: Receiver, bench_of: Any
) -> None:
    bench = bench_of(receiver)
    bench.add(bench.hook())
    arm("action.after_commit=raise")
    with pytest.raises(FailpointError):
        bench.work()
    arm("")
    first = sorted(receiver.keys)
    receiver.received.clear()
    bench.begin()
    assert bench.work() == 1
    assert sorted(receiver.keys) == first == sorted(f"{one}/0" for one in IDS)


def test_g17_webhooks_and_statements_of_a_rule_do_not_wait_for_each_other(
    receiver: Receiver, bench_of: Any
) -> None:
    receiver.answer = lambda _: 503
    bench = bench_of(receiver, FakeSink(failing={4: 99}))
    bench.add(bench.hook(), make.entry("a", 1), bench.hook(2), make.entry("a", 3))
    bench.work()
    assert bench.sink.committed == [2]
    receiver.answer = lambda _: 200
    assert bench.work(SECOND) == 2  # both webhooks, though the statement fails
    assert [(n, s) for n, s, _, _ in bench.states()] == [
        (1, "done"), (2, "done"), (3, "done"), (4, "pending"),
    ]  # fmt: skip
    assert sorted(receiver.keys[-8:-4]) == sorted(receiver.keys[-4:])  # one after the other


def test_g18_a_statement_is_sealed_though_a_webhook_stands_before_it(
    receiver: Receiver, bench_of: Any
) -> None:
    class Sealing(FakeSink):
        def seal(self, entry: Entry) -> None:
            self.committed.append(entry.number)

    receiver.answer = lambda _: 503
    bench = bench_of(receiver, Sealing(failing={2: 99}))
    bench.add(bench.hook(app_id="x"), make.entry("a", 1, app_id="x"))
    bench.work()
    bench.store.of("bank").controls.ask("skip", "2")
    [asked] = bench.store.of("bank").controls.pending()
    assert (asked.kind, asked.subject) == ("skip", "2")
    bench.runner.carry_out(asked, Unasked())
    assert bench.sink.committed == [2]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"TIDEGATE_SECRET_OPS": "0123456789abcdef"}, "TIDEGATE_SECRET_TOKEN is not set"),
        ({**SECRETS, "TIDEGATE_SECRET_OPS": "too brief"}, "is shorter than 16 characters"),
        ({**SECRETS, "TIDEGATE_SECRET_TOKEN": "a\nX-Other: b"}, "is no line of printable ASCII"),
    ],
)
def test_g29_without_its_secret_nothing_is_sent(
    receiver: Receiver, bench_of: Any, environment: Mapping[str, str], said: str
) -> None:
    bench = bench_of(receiver)
    bench.environment.clear()
    bench.environment.update(environment)
    headers = {"X-Token": "${TIDEGATE_SECRET_TOKEN}"}
    bench.add(bench.hook(secret="TIDEGATE_SECRET_OPS", headers=headers))
    bench.work()
    [(_, state, _, error)] = bench.states()
    assert state == "dead"
    assert said in str(error)
    assert receiver.received == []
    assert not any(value in str(error) for value in environment.values())
