"""A firing's story: where its rows came from, what its condition saw, what became of it, and what
came of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.replay.why.books import SHOP, day, listed, story
from tests.replay.why.stored import run_case
from tests.support import make
from tidegate.engine.core.text.page import inert
from tidegate.engine.replay.why import links
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import Condition, Story, as_json
from tidegate.engine.replay.why.page import page
from tidegate.engine.replay.why.text import condition_sentence, lines
from tidegate.engine.replay.why.times import took
from tidegate.engine.store import SqlStore, open_store, traces
from tidegate.engine.store import tables as t
from tidegate.engine.store.traces import Traces
from tidegate.rules.errors import EngineError, InputError

Listed = Mapping[str, list[Mapping[str, Any]]]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqlStore, Listed]]:
    """A store in which a day has happened, and its firings by rule."""
    folder = tmp_path_factory.mktemp("shop")
    with open_store(f"sqlite:///{folder / 'shop.db'}", create=True) as store:
        yield store, day(folder, store)


def text_of(told: Story, width: int = 200) -> str:
    return "\n".join(lines(told, width))


def test_a_story_has_what_programs_are_promised(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    told = as_json(story(store, found["settled"][0]))
    first = [
        "firing_id", "rulebook", "timezone", "rule", "key", "start", "end", "detected_at",
        "bucket", "sentence", "constituents", "condition", "damped", "entries", "causes", "effects",
    ]  # fmt: skip
    assert [*told][: len(first)] == first
    assert told["key"] == {"id": 7}
    assert (told["start"], told["end"]) == ("2026-03-02T08:01:00Z", "2026-03-02T08:02:00Z")
    assert told["detected_at"] == found["settled"][0]["fired_at"]
    assert told["bucket"] == found["settled"][0]["bucket"]
    assert told["gone"] == []
    ordered, paid = told["constituents"]
    assert ordered["row"].items() >= {"id": 7, "amount": Decimal(4)}.items()
    assert {name: ordered[name] for name in ("event", "table", "version", "signal", "bucket")} == {
        "event": "ordered",
        "table": "orders",
        "version": 1,
        "signal": None,
        "bucket": 1,
    }
    assert ordered["waited_seconds"] == 60
    assert (paid["table"], paid["version"], paid["bucket"]) == (None, None, told["bucket"])
    assert (paid["signal"], paid["namespace"]) == ("00000001", "client")
    assert paid["waited_seconds"] == 0
    condition = told["condition"]
    assert (condition["text"], condition["outcome"]) == ("sum(amount) > 10", "held")
    assert {name: str(value) for name, value in condition["values"].items()} == {
        "sum(amount)": "12.00"
    }
    signal, webhook = told["entries"]
    assert (signal["kind"], signal["state"], signal["attempts"]) == ("signal", "done", 1)
    assert (signal["signals"], webhook["kind"], webhook["signals"]) == (1, "webhook", 0)


def test_a_story_says_when_its_rule_fires(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    told = story(store, found["settled"][0])
    assert told.sentences == (
        "Fires when `paid` comes after `ordered` for the same id, within 1 h.",
        "Of several `ordered`, the oldest is paired first. Both are consumed: each is in one firing"
        " at most.",
    )
    assert as_json(told)["sentences"] == [*told.sentences]
    assert " ".join(told.sentences) in " ".join(text_of(told, 60).split())
    assert inert(" ".join(told.sentences)) in page(told)


def test_no_secret_is_in_a_story(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    told = story(store, found["settled"][0])
    assert "ops.example.org" in text_of(told)
    assert "s3cret" not in (text_of(told) + str(as_json(told))).lower()


def test_what_a_signal_caused_is_followed_both_ways(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    cause = story(store, found["settled"][0])
    noted = [story(store, one) for one in found["noted"]]
    (mine,) = [one for one in noted if cause.firing_id in [link.firing_id for link in one.causes]]
    assert mine.firing_id in [link.firing_id for link in cause.effects]
    assert [link.via for link in mine.causes] == ["signal noticed"]
    assert f"of firing {cause.firing_id[:8]}" in text_of(mine)
    assert mine.depth == 2


def test_a_rule_that_uses_others_came_of_them(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    (twice,) = found["twice"]
    causes = {link.firing_id for link in story(store, twice).causes if link.rule == "settled"}
    settled = [one["firing_id"] for one in found["settled"]]
    assert causes == {*settled[:2]}
    assert [twice["firing_id"] in [e.firing_id for e in story(store, one).effects]
            for one in found["settled"]] == [True, True, False]  # fmt: skip


def test_a_story_says_where_not_all_buckets_were_looked_through(
    shop: tuple[SqlStore, Listed], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, found = shop
    (twice,) = found["twice"]
    assert story(store, twice).notes == ()
    monkeypatch.setattr(traces, "CHAINED_MAX", 1)
    (note,) = story(store, twice).notes
    assert note == (
        "Rule settled is connected with it. Of its firings those of the next 1 bucket, up to it,"
        " were looked through, and more are there."
    )


def test_a_story_says_where_not_all_that_came_of_it_was_looked_through(
    shop: tuple[SqlStore, Listed], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, found = shop
    note = "Not all firings were looked through for those by its signal: they are too large."
    assert note not in story(store, found["settled"][0]).notes
    monkeypatch.setattr(traces, "CHAINED_BYTES_MAX", 0)
    assert note in story(store, found["settled"][0]).notes


def test_a_condition_that_failed_says_its_values(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    failed = story(store, found["settled"][1])
    assert failed.condition.outcome == "failed"
    assert "`sum(amount) > 10` did not hold: sum(amount) is 3.00." in text_of(failed)
    assert "So none of its actions ran." in text_of(failed)
    assert failed.entries == ()
    assert failed.gone == ()


def test_what_was_damped_says_by_what(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    first, second, _ = (story(store, one) for one in found["quiet"])
    assert (first.damped, second.damped) == (None, "cooldown")
    assert "dropped by its rule's cooldown" in text_of(second)
    assert "damped by a cooldown of 1 h" in (second.sentence or "")


def test_a_dry_rule_says_so(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    told = story(store, found["dry"][0])
    assert told.dry
    assert told.gone == ()
    assert "Its rule is dry" in text_of(told)


def test_a_row_with_a_time_of_its_own_arrived_with_its_commit(
    shop: tuple[SqlStore, Listed],
) -> None:
    store, found = shop
    (late,) = found["late"]
    (row,) = story(store, late).constituents
    arrived = {one.version: one for one in story(store, found["settled"][2]).constituents}
    assert row.version == max(version or 0 for version in arrived) + 2
    assert row.bucket is not None
    last = max(one.bucket or 0 for one in arrived.values())
    assert row.bucket > last  # its own time is before theirs
    assert row.time < min(one.time for one in arrived.values())


def test_a_firing_is_found_by_some_digits_in_any_rulebook(shop: tuple[SqlStore, Listed]) -> None:
    store, found = shop
    whole = found["settled"][0]["firing_id"]
    assert why(store, "shop", whole[:8]).firing_id == whole
    assert why(store, None, whole.upper()).firing_id == whole
    with pytest.raises(EngineError, match="there is no firing ffffffffffff"):
        why(store, None, "f" * 12)
    with pytest.raises(InputError, match="is no firing's id"):
        why(store, None, "settled")
    with pytest.raises(EngineError, match="'other' is not in this store"):
        why(store, "other", whole)


def test_lines_fit_the_screen_and_times_are_of_the_rulebooks_zone(
    shop: tuple[SqlStore, Listed],
) -> None:
    store, found = shop
    told = story(store, found["settled"][0])
    assert max(map(len, lines(told, 60))) <= 60
    assert "ended at 09:02:00 (2026-03-02, Europe/Berlin)" in text_of(told)


def test_a_rule_that_was_edited_shows_both_texts(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'shop.db'}", create=True) as store:
        found = day(tmp_path, store)
        (settled, *_), (lost,) = found["settled"], found["lost"]
        edited = SHOP.replace("sum(amount) > 10", "sum(amount) > 99").replace(
            "  lost:", "  mislaid:"
        )
        store.of("shop").versions.register(edited, str(tmp_path / "shop.yaml"))
        told = story(store, settled)
        assert "if `sum(amount) > 10`" in (told.sentence or "")
        assert told.edited is not None
        assert "if `sum(amount) > 99`" in (told.edited.sentence or "")
        assert "The rule was edited since. Version 2:" in text_of(told)
        assert "Version 2 has no such rule any more." in text_of(story(store, lost))
        assert story(store, found["noted"][0]).edited is None


def test_what_retention_has_taken_is_said(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'shop.db'}", create=True) as store:
        found = day(tmp_path, store)
        noted = next(one for one in found["noted"] if story(store, one).causes)
        (cause,) = story(store, noted).causes
        late = found["late"][0]
        with store.database.write() as connection:
            connection.execute(sa.delete(t.outbox).where(t.outbox.c.rule == "settled"))
            connection.execute(sa.delete(t.commits))
        told = story(store, found["settled"][0])
        assert told.gone == ("entries",)
        assert "What its actions did is not there any more" in text_of(told)
        told = story(store, late)
        assert told.constituents[0].bucket is None
        assert told.gone == ("constituents.0.bucket",)
        assert "is forgotten (history_retention_days)" in text_of(told)
        with store.database.write() as connection:
            connection.execute(sa.delete(t.firings).where(t.firings.c.rule == cause.rule))
        told = story(store, noted)
        assert as_json(told)["causes"] == [cause.firing_id]
        assert told.gone == (f"causes.{cause.firing_id}",)
        assert "Retention has taken 1 firing that it came of" in text_of(told)


def test_an_emission_of_a_script_says_of_which(tmp_path: Path) -> None:
    file = Path(__file__).parents[3] / "rules/examples/scripts/scripts.test.yaml"
    with open_store(f"sqlite:///{tmp_path / 'scripts.db'}", create=True) as store:
        run_case(file, "every third abnormal hour in a row", store)
        (told, *_) = [story(store, one) for one in listed(store, "scripts")["tell"]]
    assert told.constituents[0].script is not None
    assert f"emitted by script {told.constituents[0].script}" in text_of(told)


def test_a_cause_behind_a_script_is_said_not_to_be_known(tmp_path: Path, empty_store: Path) -> None:
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    text = (
        "rulebook: bank\nevents: {ping: {signal: {n: bigint}}}\n"
        "scripts: {echo: {text: 'in {long n;} ping out {long n;} transfer"
        " ( ping(a) { !> transfer({n: a.n}); } )*'}}\nrules: {blocked: {on: transfer}}\n"
    )
    with open_store(url, create=False) as store:
        epoch = store.of("bank").lease.acquire("one", 60)
        store.of("bank").versions.register(text, "/bank.yaml")
        fired = make.firings("blocked", depth=pa.array([1, 2], pa.int32()))
        make.commit(store, epoch, make.plan(), fired=[fired])
        outside, deep = (why(store, None, one) for one in make.hex_ids(fired))
    assert [one.script for one in deep.constituents] == [None, "echo"]
    assert outside.notes == ()
    said = "What caused it went through a script, which does not say of what it emits."
    assert deep.notes == (said,)


def test_a_redrive_and_an_alternative_say_whom_they_stand_for(
    tmp_path: Path, empty_store: Path
) -> None:
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    with open_store(url, create=False) as store:
        epoch = store.of("bank").lease.acquire("one", 60)
        text = "rulebook: bank\nevents: {e: {signal: {}}}\nrules: {blocked: {on: e}}\n"
        store.of("bank").versions.register(text, None)
        fired = make.firings()
        (first,) = make.commit(store, epoch, make.plan(), fired=[fired], entries=[make.entry()])
        store.of("bank").controls.ask("redrive", "1", asked_by="ada")
        second = replace(first.placed(first.turn.place), number=0)
        outbox = store.of("bank", epoch).outbox
        (second,) = outbox.settle([make.outcome(first, "redriven", 3, successors=(second,))])
        more: dict[str, Any] = {"begun_at": make.BEGIN, "settled_at": make.BEGIN + make.SECOND}
        other = make.entry(order=1, alternative=True)
        ends = make.outcome(second, "dead", 1, "no such column", successors=(other,), **more)
        outbox.settle([ends])
        told = text_of(why(store, None, make.hex_ids(fired)[0]))
    assert "#1 runs `UPDATE a`: redriven after 3 attempts; it has not begun" in told
    assert "#2 took its place. ada asked for redrive at" in told
    assert "#2 runs `UPDATE a`: dead after 1 attempt; begun at 09:00:00, settled 1 s later" in told
    assert "It took the place of #1. Its last error: no such column. What gets past it:" in told
    assert "`tidegate redrive 2` or `tidegate skip 2`." in told
    assert "#3 (the alternative) runs `UPDATE a`: pending; it has not begun" in told


def test_a_firing_of_many_rows_is_told_at_once(tmp_path: Path, empty_store: Path) -> None:
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    with open_store(url, create=False) as store:
        epoch = store.of("bank").lease.acquire("one", 60)
        store.of("bank").versions.register("rulebook: bank\nevents: {e: {signal: {}}}\n", None)
        for bucket in range(1, 101):
            make.commit(store, epoch, make.plan(bucket))
        fired = make.firings(count=1, bucket=101)
        rows = 300
        times = pa.array([make.BEGIN + n * make.HOUR // 3 for n in range(rows)], pa.int64())
        relation = fired.relation.take([0] * rows)
        at = relation.column_names.index("occurred_at")
        relation = relation.set_column(at, "occurred_at", times.cast(make.UTC))
        count = pa.array([rows], pa.int32())
        table = fired.firings.set_column(
            fired.firings.column_names.index("constituents"), "constituents", count
        )
        whole = replace(fired, firings=table, relation=relation)
        make.commit(store, epoch, make.plan(101), fired=[whole])
        told = why(store, None, make.hex_ids(fired)[0])
        found = [one.bucket for one in told.constituents]
        said = text_of(told)
    assert found == [None, *((n + 2) // 3 for n in range(1, rows))]
    assert f".. and {rows - 20} more: --format json" in said


def test_digits_that_fit_firings_of_two_rulebooks_are_unclear(
    tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'shop.db')}"
    with open_store(url, create=False) as store:
        whole = day(tmp_path, store)["settled"][0]["firing_id"]
        store.of("other").versions.register("rulebook: other\nevents: {}\nrules: {}\n", None)
        assert why(store, None, whole).firing_id == whole
        place = store.of("shop").traces.place(whole)
        monkeypatch.setattr(Traces, "place", lambda *_: place)
        with pytest.raises(EngineError, match="firings of other and shop begin with"):
            why(store, None, whole[:8])
        assert why(store, "shop", whole[:8]).firing_id == whole


def test_digits_that_fit_several_firings_of_one_rulebook_are_unclear_whatever_others_have(
    tmp_path: Path, empty_store: Path
) -> None:
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    with open_store(url, create=False) as store:
        for name in ("bank", "other"):
            text = f"rulebook: {name}\nevents: {{e: {{signal: {{}}}}}}\nrules: {{pay: {{on: e}}}}\n"
            store.of(name).versions.register(text, None)
        epoch = store.of("bank").lease.acquire("one", 60)
        for bucket in (1, 2):
            fired = make.firings("pay", 1, bucket)
            make.commit(store, epoch, make.plan(bucket), fired=[fired])
        (whole,) = make.hex_ids(fired)
        with pytest.raises(EngineError, match="several firings begin with"):
            why(store, None, whole[:16])
        assert why(store, None, whole).firing_id == whole


def test_of_many_links_the_first_are_told(
    shop: tuple[SqlStore, Listed], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, found = shop
    (twice,) = found["twice"]
    assert len(story(store, twice).causes) == 2
    monkeypatch.setattr(links, "LINKS_MAX", 1)
    told = story(store, twice)
    assert len(told.causes) == 1
    assert told.notes == (
        "more than 1 firings by settled, an event of twice: the first are listed.",
    )


@pytest.mark.parametrize(
    ("micros", "said"),
    [
        (1, "less than 1 ms"),
        (999, "less than 1 ms"),
        (36_652, "37 ms"),
        (999_499, "999 ms"),
        (1_040_000, "1 s"),
        (11_555_322, "11.6 s"),
        (59_970_000, "1 min"),
        (83_400_000, "1 min 23 s"),
    ],
)
def test_what_the_engine_took_is_rounded(micros: int, said: str) -> None:
    assert took(micros) == said


MATCHED = """\
rulebook: matched
tables: {orders: {path: ./orders, key: [id]}}
events: {ordered: {on: insert, table: orders}}
rules:
  dearer:
    on: x:(ordered) ; y:(ordered) within 1 h
    per: kind
    context: recent
    where: y.amount > x.amount + 3
    if: max(amount) > 1
"""
MATCHED_CASES = """\
rulebook: matched.yaml
schemas: {orders: "id BIGINT, kind STRING, amount BIGINT"}
tests:
- name: dearer
  steps:
  - {at: 2026-03-02T09:00:00}
  - {after: 1 min, insert: {orders: {id: 1, kind: a, amount: 4}}}
  - {after: 1 min, insert: {orders: {id: 2, kind: a, amount: 9}}}
"""


def test_the_sentence_has_the_condition_between_constituents(
    tmp_path: Path, empty_store: Path
) -> None:
    (tmp_path / "matched.yaml").write_text(MATCHED)
    file = tmp_path / "matched.test.yaml"
    file.write_text(MATCHED_CASES)
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'matched.db')}"
    with open_store(url, create=True) as store:
        run_case(file, "dearer", store)
        (firing,) = listed(store, "matched")["dearer"]
        assert story(store, firing).sentence == (
            "Rule dearer fires on `x:(ordered) ; y:(ordered) within 1 h`, per kind, in context"
            " recent, where `y.amount > x.amount + 3`, if `max(amount) > 1`."
        )


@pytest.mark.parametrize(
    ("coupling", "said"),
    [
        ("immediate", "of each table as it was at the end of the firing"),
        ("deferred", "of the tables as its bucket pinned them"),
        ("detached", "after the bucket, of the tables as they were then"),
    ],
)
def test_a_query_of_unknown_versions_says_when_it_was_asked(coupling: str, said: str) -> None:
    condition = Condition("SELECT firing_id FROM event", "held", query=True, coupling=coupling)
    assert condition_sentence(condition).endswith(f" held; it was asked {said}.")
