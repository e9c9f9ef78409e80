"""The versions of a rulebook, and what names them (G24)."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate import load
from tidegate.connectors.http import rulebooks
from tidegate.engine.app.reload import Changes, RulebookFile
from tidegate.engine.control.rulebooks import Rules, ask_to_reload, the_rulebooks
from tidegate.engine.replay.why.texts import Texts
from tidegate.engine.store import KeptRulebook, SqlStore
from tidegate.engine.store import tables as t
from tidegate.engine.store.versions import Versions
from tidegate.rules.errors import InputError
from tidegate.rules.model import Rulebook

TEXT = "rulebook: bank\nevents: {a: {signal: {k: bigint}}}\nrules: {r: {on: a, per: k}}\n"


def test_g24_a_text_is_a_version_and_buckets_and_entries_name_theirs(store: SqlStore) -> None:
    assert [
        store.of("bank").versions.register(text, None) for text in ("x: 1", "x: 1", "x: 2")
    ] == [1, 1, 2]
    epoch = store.of("bank").lease.acquire("one", 60)
    make.commit(store, epoch, make.plan(1), entries=[make.entry()])
    assert store.of("bank").versions.propose(KeptRulebook("x: 3", None)) == 3
    make.commit(store, epoch, make.plan(2), entries=[make.entry()])  # 2 still runs
    assert store.of("bank").versions.register("x: 3", None) == 3
    make.commit(store, epoch, make.plan(3), entries=[make.entry()])
    with store.database.read() as connection:
        for table in (t.buckets, t.outbox):
            found = connection.execute(sa.select(table.c.version).order_by(table.c.bucket))
            assert [*found.scalars()] == [2, 2, 3]
    assert store.of("bank").versions.register("x: 1", None) == 4  # not the first again: it is newer
    version = store.of("bank").versions.version
    assert [(version(n) or KeptRulebook("", None)).text for n in (1, 3, 5)] == [
        "x: 1", "x: 3", "",
    ]  # fmt: skip


def test_g24_rules_as_data_build_on_what_was_asked_for_last(store: SqlStore) -> None:
    store.of("bank").versions.register(TEXT, None)
    data = Rules(store, "bank")
    assert data.put("s", "{on: r ; a}") == 2
    assert data.put("q", "{on: a}") == 3
    assert data.disable_for("r", {"k": "7"}) == 4
    assert [(r["rule"], r["put"]) for r in data.list()] == [
        ("r", None), ("q", "{on: a}"), ("s", "{on: r ; a}"),
    ]  # fmt: skip
    assert store.of("bank").versions.newest().load().rules["r"].disabled_for == ({"k": "7"},)
    assert [r["disabled_for"] for r in data.list()] == [[{"k": "7"}], [], []]
    assert store.rulebooks()["bank"].added == {}  # nothing of it runs yet
    assert data.enable_for("r", {"k": "7"}) == 5
    assert data.drop("s") == 6
    book = store.of("bank").versions.newest().load()
    assert ([*book.rules], book.rules["r"].disabled_for) == (["r", "q"], ())
    assert ask_to_reload(store, book, TEXT + "# more\n") == 7
    assert [*store.of("bank").versions.newest().load().rules] == ["r", "q"]  # what was put stays
    with pytest.raises(InputError, match="unknown event 'q'"):
        ask_to_reload(store, book, TEXT.replace("{on: a,", "{on: q ; a,"))  # q is put
    asked = [c for c in store.of("bank").controls.pending() if c.kind == "reload"]
    assert [c.subject for c in asked] == ["2", "3", "4", "5", "6", "7"]
    status = store.of("bank").status.shown()
    assert (status["version"], len(status["asked_for"])) == (1, 6)


def test_g24_what_two_operators_put_at_once_is_both_there(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.of("bank").versions.register(TEXT, None)
    newest, others = Versions.newest, ["s", "t"]

    def ask(rulebook: str) -> KeptRulebook:
        return newest(store.of(rulebook).versions)

    def asked(kept: Versions) -> KeptRulebook:
        found = newest(kept)
        if others:  # somebody else, between the look and what comes of it
            name = others.pop()
            kept.propose(replace(found, added={**found.added, name: "{on: a}"}))
        return found

    monkeypatch.setattr(Versions, "newest", asked)
    Rules(store, "bank").put("u", "{on: a}")
    assert [*ask("bank").load().rules] == ["r", "s", "t", "u"]
    others.append("w")
    ask_to_reload(store, load(TEXT), TEXT + "# more\n")
    assert (ask("bank").text, "w" in ask("bank").added) == (TEXT + "# more\n", True)


def test_a_rule_of_the_file_is_not_changed_by_putting_a_part_of_it(store: SqlStore) -> None:
    store.of("bank").versions.register(TEXT, None)
    with pytest.raises(InputError, match="'r/x' is not a name"):
        Rules(store, "bank").put("r/x", "{do: []}")


def test_keys_are_enabled_in_the_words_that_a_command_has_for_them(store: SqlStore) -> None:
    flags = TEXT.replace("k: bigint", "k: boolean").replace(
        "per: k", "per: k, disabled_for: [true, false]"
    )
    store.of("bank").versions.register(flags, None)
    Rules(store, "bank").enable_for("r", {"k": "true"})
    assert store.of("bank").versions.newest().load().rules["r"].disabled_for == ({"k": "false"},)


@pytest.mark.parametrize(
    ("rule", "value", "said"),
    [
        ("r", "x", "--key: k=x: the values of k are bigint"),
        ("r", "1.5", "--key: k=1.5: the values of k are bigint"),
        ("nested", "x", "the values of k are bigint"),
        ("switched", "yes", "the values of k are boolean"),
        ("begun", "now", "write 2026-03-02T09:00:00Z"),
        ("both", "x", ""),  # the column of a table may be of any type
        ("stored", "x", ""),
        ("r", "07", ""),
        ("begun", "2026-03-02T09:00:00Z", ""),
    ],
)
def test_a_value_that_the_key_of_a_rule_cannot_have_is_refused_at_once(
    store: SqlStore, rule: str, value: str, said: str
) -> None:
    """As the engine would, which would go on to refuse each later change with it."""
    text = """\
rulebook: bank
tables: {t: {path: /t}}
events:
  a: {signal: {k: bigint}}
  b: {signal: {k: boolean}}
  c: {signal: {k: timestamp}}
  d: {on: insert, table: t}
  e: {on: insert, table: t, columns: [j as k]}
rules:
  r: {on: a, per: k}
  nested: {on: r, per: k}
  switched: {on: b, per: k}
  begun: {on: c, per: k}
  both: {on: a or d, per: k}
  stored: {on: e, per: k}
"""
    store.of("bank").versions.register(text, None)
    if not said:
        assert Rules(store, "bank").disable_for(rule, {"k": value}) == 2
        return
    with pytest.raises(InputError) as caught:
        Rules(store, "bank").disable_for(rule, {"k": value})
    assert said in str(caught.value)
    assert not store.of("bank").controls.pending()
    store.of("bank").versions.register(text, None, {"r/disabled_for": '{"disabled_for": ["x"]}'})
    Rules(store, "bank").enable_for("r", {"k": "x"})  # what got there otherwise can be taken out


def test_keys_that_were_disabled_of_a_rule_that_is_gone_can_be_dropped(store: SqlStore) -> None:
    switch = {"s/disabled_for": '{"disabled_for": [{"k": 7}]}'}
    store.of("bank").versions.register(TEXT, None, switch)
    back = TEXT.replace("r: {on: a, per: k}", "r: {on: a}, s: {on: a}")
    with pytest.raises(InputError, match="disabled_for lists keys"):
        ask_to_reload(store, load(TEXT), back)
    Rules(store, "bank").drop("s")
    ask_to_reload(store, load(TEXT), back)
    assert store.of("bank").versions.newest().added == {}
    for name, said in (("s", "own text"), ("t", "`t`")):
        with pytest.raises(InputError, match=said):
            Rules(store, "bank").drop(name)


def test_a_file_that_is_registered_for_its_signals_keeps_what_was_put_beside_it(
    store: SqlStore,
) -> None:
    text = TEXT.replace("r: {on: a, per: k}", "r: {on: s}")  # of the file, and uses what was put
    store.of("bank").versions.register(text, None, {"s": "{on: a}"})
    store.of("shop").versions.register("rulebook: shop\n", None)
    assert [*the_rulebooks(store, None)["bank"].rules] == ["r", "s"]
    store.of("bank").versions.register(TEXT, None)
    assert store.rulebooks()["bank"].added == {"s": "{on: a}"}
    store.of("bank").versions.register(TEXT, None, {})
    assert store.rulebooks()["bank"].added == {}


def test_an_inbox_follows_the_rules_that_are_put(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rulebooks, "FRESH_SECONDS", 0)
    store.of("bank").versions.register(TEXT, None)
    known = rulebooks.Source(store)
    for added in ({"s": "{on: a}"}, {}):
        store.of("bank").versions.register(TEXT, None, added)
        assert [*asyncio.run(known.books())["bank"].rules] == ["r", *added]


def test_a_watched_file_that_changed_before_its_engine_was_ready_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "bank.yaml"
    path.write_text(TEXT)
    book = load(path)
    path.write_text(TEXT + "# while it waited for its lease\n")
    os.utime(path, (0, 0))
    file = RulebookFile(book, watched=True)
    file.runs(book)
    found = file.changed({})
    assert found is not None
    assert found.text.endswith("lease\n")
    assert file.changed({}) is None


def test_g24_what_an_operator_asked_for_comes_first_and_a_changed_file_then(
    store: SqlStore, tmp_path: Path
) -> None:
    path, taken = tmp_path / "bank.yaml", []
    path.write_text(TEXT)
    book = load(path)
    epoch = store.of("bank").lease.acquire("one", 60)
    store.of("bank").versions.register(TEXT, str(path))

    def take_over(changed: Rulebook) -> int:
        taken.append((changed.text, [*changed.added]))
        return store.of("bank").versions.register(changed.text, changed.file, changed.added)

    changes = Changes(
        store.of("bank", epoch), "bank", RulebookFile(book, watched=True), {}, take_over
    )
    Rules(store, "bank").put("s", "{on: a}")
    path.write_text(TEXT + "# more\n")
    os.utime(path, (0, 0))  # it is written to its end
    changes.make({}, asked=True)
    for _ in range(2):
        changes.make({"s": "{on: a}"}, asked=False)
    assert taken == [(TEXT, ["s"]), (TEXT + "# more\n", ["s"])]
    assert store.of("bank").controls.pending() == ()


def test_what_came_of_a_watched_file_is_in_the_status(store: SqlStore, tmp_path: Path) -> None:
    path = tmp_path / "bank.yaml"
    path.write_text(TEXT)
    book = load(path)
    epoch = store.of("bank").lease.acquire("one", 60)
    store.of("bank").versions.register(TEXT, str(path))
    file = RulebookFile(book, watched=True)
    changes = Changes(store.of("bank", epoch), "bank", file, {}, lambda _: 2)
    for text in (TEXT.replace("{on: a,", "{on: q,"), None, TEXT + "# more\n"):
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
            os.utime(path, (0, 0))
        changes.make({}, asked=False)
    answers = [one["answer"] for one in store.of("bank").status.shown()["answered"]]
    assert "refused: " in answers[0]
    assert "unknown event 'q'" in answers[0]
    assert "there is no such file" in answers[1]
    assert answers[2:] == ["version 2 runs"]


@pytest.mark.parametrize("gone", [True, False])
def test_g24_a_registered_rulebook_stands_by_itself(
    store: SqlStore, tmp_path: Path, gone: bool
) -> None:
    """The file of its script is gone, or says something else by now: what runs is as it was."""
    path, script = tmp_path / "bank.yaml", tmp_path / "a.es"
    path.write_text("rulebook: bank\nscripts: {s: {file: a.es}}\nrules: {r: {on: z}}\n")
    script.write_text("in long a out long z\na(x) {!> z(x);}")
    book = load(path)
    number = store.of("bank").versions.register(book.text, str(path), files=book.files)
    if gone:
        script.unlink()
    else:
        script.write_text("in {} b out long z\nb() {!> z(1);}")
    for found in (
        the_rulebooks(store, None)["bank"],
        asyncio.run(rulebooks.Source(store).books())["bank"],
    ):
        assert [*found.scripts["s"].inputs] == ["a"]
    assert store.of("bank").versions.register(found.text, str(path), files=found.files) == number
    Rules(store, "bank").put("t", "{on: a}")
    assert [*store.of("bank").versions.newest().load().scripts["s"].inputs] == ["a"]
    if gone:
        with pytest.raises(InputError, match=r"there is no file .*a\.es"):
            ask_to_reload(store, book)
    else:  # the rule that was put takes an event that is no more
        with pytest.raises(InputError, match="unknown event 'a'"):
            ask_to_reload(store, book)
        Rules(store, "bank").drop("t")
        assert ask_to_reload(store, book) > number
        script.unlink()
        assert [*store.of("bank").versions.newest().load().scripts["s"].inputs] == ["b"]


def test_a_reload_keeps_the_variables_of_the_engine(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for it may have others, or none."""
    text = TEXT + 'tables: {t: {path: "${TIDEGATE_VAR_LAKE}/t"}}\n'
    monkeypatch.setenv("TIDEGATE_VAR_LAKE", "/prod")
    book = load(text)
    store.of("bank").versions.register(text, None, files=book.files)
    for here in ("/dev", None):
        monkeypatch.delenv("TIDEGATE_VAR_LAKE")
        if here:
            monkeypatch.setenv("TIDEGATE_VAR_LAKE", here)
        ask_to_reload(store, book, f"{text}# {here}\n")
        assert store.of("bank").versions.newest().load().tables["t"].path == "/prod/t"
        monkeypatch.setenv("TIDEGATE_VAR_LAKE", "/prod")


def test_a_reload_takes_no_new_variable_from_who_asks(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.of("bank").versions.register(TEXT, None)
    text = TEXT + 'tables: {t: {path: "/${TIDEGATE_VAR_NEW}/t"}}\n'
    monkeypatch.setenv("TIDEGATE_VAR_NEW", "dev")
    with pytest.raises(InputError, match=r"(?s)4:22: the variable TIDEGATE_VAR_NEW .*SIGHUP"):
        ask_to_reload(store, load(TEXT), text)
    assert store.of("bank").controls.pending() == ()
    ask_to_reload(store, load(TEXT), text, {"TIDEGATE_VAR_NEW": "prod"})  # the engine itself
    assert store.of("bank").versions.newest().files == {"${TIDEGATE_VAR_NEW}": "prod"}
    ask_to_reload(store, load(TEXT), f"{text}# more\n")  # which it knows now
    assert store.of("bank").versions.newest().load().tables["t"].path == "/prod/t"


def test_a_text_that_was_taken_is_read_however_long_it_is(store: SqlStore) -> None:
    text = "rulebook: bank\nevents: {a: {signal: {}}}\nrules: {r: {on: a}}\n"
    long = f"{text}# {'x' * 2**20}\n"
    assert load(long, settings={"yaml_bytes_max": "2000000"}).rules
    store.of("bank").versions.register(long, None)
    assert {*the_rulebooks(store, None)["bank"].rules} == {"r"}
    assert [one["rule"] for one in Rules(store, "bank").list()] == ["r"]
    told = Texts(store.of("bank").versions).book(1, "r")
    assert told is not None
    assert {*told.rules} == {"r"}
    assert {*rulebooks.Source(store, may_be_empty=True).known["bank"].rules} == {"r"}
    with pytest.raises(InputError, match="yaml_bytes_max"):
        Rules(store, "bank").put("s", "on: a")


def test_the_limits_of_the_engine_hold_for_what_is_proposed_to_it(store: SqlStore) -> None:
    long = f"{TEXT}# {'x' * 2**20}\n"
    limits = {"yaml_bytes_max": "2000000", "lease_seconds": "60"}
    versions, data = store.of("bank").versions, Rules(store, "bank")
    versions.introduce(KeptRulebook(long, None), limits)
    versions.register(long, None)
    assert data.put("s", "on: a") == 2
    assert data.disable_for("r", {"k": "7"}) == 3
    assert ask_to_reload(store, load(TEXT), f"{long}# more\n") == 4
    with pytest.raises(InputError, match="yaml_bytes_max = 2000000"):
        ask_to_reload(store, load(TEXT), f"{long}# {'y' * 2**20}\n")
    versions.introduce(KeptRulebook(TEXT, None), {})  # the next engine is started without them
    with pytest.raises(InputError, match="yaml_bytes_max = 1048576"):
        data.drop("s")
