"""`why --as-test`: what it prints is a test, and it passes without Spark for ordinary rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.replay.why.books import day, listed, story
from tests.replay.why.stored import run_case, run_steps
from tidegate.engine.replay.cases.driver import CaseResult, Driver
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.memory.worlds import MemoryWorlds
from tidegate.engine.replay.why.case import case_text
from tidegate.engine.replay.why.yaml_text import quoted
from tidegate.engine.store import open_store
from tidegate.rules.yaml.reader import Scalar, read_yaml

EXAMPLES = Path(__file__).parents[3] / "rules/examples"
FIRINGS_MAX = 4  # of a case


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
    for number, case in enumerate(cases.cases[:3]):
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


def test_a_text_is_quoted_so_that_it_is_read_back() -> None:
    every = [*range(0xD800), *range(0xE000, 0x10000), 0x1F600]
    text = "".join(map(chr, every))
    top, refused = read_yaml(f"k: {quoted(text)}", "<text>", 2**20)
    assert not refused
    assert isinstance(found := top.entries["k"], Scalar)
    assert found.text == text
