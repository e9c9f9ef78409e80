"""`why --as-test`: what it prints is a test, and it passes without Spark for ordinary rules."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.reference.examples import fewer
from tests.replay.why.books import day, listed, story
from tests.replay.why.stored import run_case, run_steps
from tests.support import make
from tidegate.engine.replay.cases.driver import CaseResult, Driver
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.memory.worlds import MemoryWorlds
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.case import case_text
from tidegate.engine.replay.why.yaml_text import quoted
from tidegate.engine.store import open_store
from tidegate.rules.yaml.reader import Scalar, read_yaml

EXAMPLES = Path(__file__).parents[3] / "rules/examples"
FIRINGS_MAX = 4  # of a case


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases are kept where the command is typed."""
    monkeypatch.chdir(tmp_path)


def result(file: Path) -> CaseResult:
    """The result of the one case in a file, without Spark."""
    cases = read_cases(file)
    worlds = MemoryWorlds(cases.book, cases.schemas, cases.defaults)
    return Driver(cases, lambda _: worlds.world(), strict=False).run_fast(cases.cases[0])


@pytest.mark.parametrize(
    "name",
    ["cards/cards", "order/order", "unpaid/unpaid", "stock/stock", "heartbeat/heartbeat",
     "cookbook/08-guessed-password", "cookbook/09-low-twice-a-day", "cookbook/17-shipped-unpaid"],
)  # fmt: skip
def test_the_firings_of_an_example_become_tests_that_pass(name: str, tmp_path: Path) -> None:
    cases = read_cases(EXAMPLES / f"{name}.test.yaml")
    passed = 0
    for number, case in enumerate(cases.cases[: fewer(3, least=1)]):
        with open_store(f"sqlite:///{tmp_path / f'{number}.db'}", create=True) as store:
            run_steps(cases, case, store)
            found = [one for some in listed(store, cases.book.name).values() for one in some]
            for firing in found[:FIRINGS_MAX]:
                file = tmp_path / "one.test.yaml"
                file.write_text(case_text(store, story(store, firing)))
                ran = result(file)
                assert (ran.outcome, ran.differences, ran.error) == ("passed", (), None)
                passed += 1
    assert passed


def test_each_kind_of_change_becomes_a_step(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'shop.db'}", create=True) as store:
        found = day(tmp_path, store)
        for rule in ("settled", "lost", "late", "removed", "noted", "twice", "quiet"):
            file = tmp_path / "one.test.yaml"
            file.write_text(case_text(store, story(store, found[rule][0])))
            ran = result(file)
            assert (rule, ran.outcome, ran.differences) == (rule, "passed", ())


NAMES = """\
rulebook: names
tables: {people: {path: ./people, key: [name]}}
events: {gone: {on: delete, table: people}}
rules: {left: {on: gone, per: name}}
"""
LEAVING = r"""
rulebook: names.yaml
schemas: {people: "name STRING"}
tests:
- name: day
  tables: {people: [{name: "o'neil \\' x"}, {name: "o''neil"}]}
  steps:
  - {at: 2026-03-02T09:00:00}
  - {after: 1 min, delete: {people: "name is not null"}}
"""


def test_a_key_with_quotes_is_a_literal_of_spark(tmp_path: Path) -> None:
    (tmp_path / "names.yaml").write_text(NAMES)
    (tmp_path / "names.test.yaml").write_text(LEAVING)
    with open_store(f"sqlite:///{tmp_path / 'names.db'}", create=True) as store:
        run_case(tmp_path / "names.test.yaml", "day", store)
        left = listed(store, "names")["left"]
        assert sorted(one["key"]["name"] for one in left) == ["o''neil", r"o'neil \' x"]
        texts = [case_text(store, story(store, one)) for one in left]
    for name, text in (("o''neil", r"o\\'\\'neil"), (r"o'neil \' x", r"o\\'neil \\\\\\' x")):
        (mine,) = [text_ for text_ in texts if f"\"name = '{text}'\"" in text_]
        assert json.dumps(name) in mine


def test_a_case_says_what_the_store_does_not_keep(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'shop.db'}", create=True) as store:
        found = day(tmp_path, store)
        text = case_text(store, story(store, found["quiet"][1]))
        assert "# It was dropped by its cooldown: nothing came before it here, so it fires." in text
        told = story(store, found["lost"][0])
        assert f"# tidegate why {told.firing_id} --as-test" in case_text(store, told)


def test_an_action_edge_and_a_script_are_told_and_left_out(tmp_path: Path) -> None:
    file = EXAMPLES / "scripts/scripts.test.yaml"
    cases = read_cases(file)
    case = next(one for one in cases.cases if one.name == "every third abnormal hour in a row")
    with open_store(f"sqlite:///{tmp_path / 'scripts.db'}", create=True) as store:
        run_steps(cases, case, store)
        told = story(store, listed(store, "scripts")["tell"][0])
        assert "comes of script" in case_text(store, told)


def test_a_case_of_a_script_says_what_to_add_and_fails_for_want_of_it(tmp_path: Path) -> None:
    cases = read_cases(EXAMPLES / "scripts/scripts.test.yaml")
    case = next(one for one in cases.cases if one.name == "every third abnormal hour in a row")
    with open_store(f"sqlite:///{tmp_path / 'scripts.db'}", create=True) as store:
        run_steps(cases, case, store)
        text = case_text(store, story(store, listed(store, "scripts")["tell"][0]))
    said = " ".join(line.removeprefix("# ") for line in text.splitlines())
    assert "`alarmed` comes of script alarm: add `normal` and `abnormal` under `steps`" in said
    (tmp_path / "one.test.yaml").write_text(text)
    (missing,) = result(tmp_path / "one.test.yaml").mismatches
    assert missing.why is not None
    assert missing.why.startswith("No `alarmed` came")


QUERY = """\
  known:
    on: ordered
    per: id
    if: {sql: SELECT e.firing_id FROM event e JOIN stores s ON s.id = e.id}
  both: {on: known ; paid, per: id, context: chronicle}
"""


def test_a_case_runs_the_rule_alone_and_those_that_it_uses(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'shop.db'}", create=True) as store:
        found = day(tmp_path, store)
        text = case_text(store, story(store, found["twice"][0]))
        assert "rules: [twice]" in text.splitlines()
        assert "Spark" not in text
        book = (
            (tmp_path / "shop.yaml")
            .read_text()
            .replace("tables: {", "tables: {stores: {path: s}, ")
        )
        (tmp_path / "shop.yaml").write_text(book + QUERY)
        file = tmp_path / "one.test.yaml"
        file.write_text(text.replace("schemas:", 'schemas:\n  stores: {id: "bigint"}'))
        assert result(file).outcome == "passed", "what `known` asks is not asked"


def test_a_query_of_a_rule_that_it_uses_is_told_with_its_table(
    tmp_path: Path, empty_store: Path
) -> None:
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    text = (
        "rulebook: bank\ntables: {stores: {path: /stores}}\n"
        "events: {withdrawal: {signal: {id: bigint}}, transfer: {signal: {id: bigint}}}\nrules:\n"
        + QUERY.replace("ordered", "withdrawal").replace("paid", "transfer")
    )
    with open_store(url, create=False) as store:
        epoch = store.of("bank").lease.acquire("one", 60)
        store.of("bank").versions.register(text, "/bank.yaml")
        fired = [make.firings("both", 1), make.firings("known", 1)]
        make.commit(store, epoch, make.plan(), fired=fired)
        both, known = (case_text(store, why(store, None, make.hex_ids(one)[0])) for one in fired)
    needs = "# Add the rows of `stores` that it needs to `tables`."
    assert "# The `if` of known, which it uses, is a query, so that the test needs Spark." in both
    assert "# Its condition is a query, so that the test needs Spark." in known
    assert (needs in both, needs in known) == (True, True)


def test_a_rulebook_below_the_folder_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "rules").mkdir()
    with open_store(f"sqlite:///{tmp_path / 'shop.db'}", create=True) as store:
        told = story(store, day(folder, store)["quiet"][0])
        monkeypatch.chdir(tmp_path)
        text = case_text(store, told)
        assert 'rulebook: "rules/shop.yaml"' in text.splitlines()
        (tmp_path / "one.test.yaml").write_text(text)
        assert result(tmp_path / "one.test.yaml").outcome == "passed"
        monkeypatch.chdir(folder)
        assert 'rulebook: "shop.yaml"' in case_text(store, told).splitlines()
        (beside := tmp_path / "beside").mkdir()
        monkeypatch.chdir(beside)
        assert f'rulebook: "{folder / "shop.yaml"}"' in case_text(store, told).splitlines()


def test_a_text_is_quoted_so_that_it_is_read_back() -> None:
    every = [*range(0xD800), *range(0xE000, 0x10000), 0x1F600]
    text = "".join(map(chr, every))
    top, refused = read_yaml(f"k: {quoted(text)}", "<text>", 2**20)
    assert not refused
    assert isinstance(found := top.entries["k"], Scalar)
    assert found.text == text
