"""A part of a rulebook says what the whole of it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.rules.analysis.graph import lateness_micros, uses_of
from tidegate.rules.errors import InputError
from tidegate.rules.loader import composed, load_rulebook, part
from tidegate.rules.model import Rulebook

ROOT = Path(__file__).parents[2]
BOOKS = sorted((ROOT / "rules" / "examples").rglob("*.yaml"))
SCRIPT = "in {long k;} ${first} out {} noticed (${first}() {!> noticed();})*"
CHAINS = """\
rulebook: chains
vars: {first: one}
events: {a: {signal: {k: bigint}}, b: {signal: {k: bigint}}}
scripts:
  echo: {text: "%s"}
rules:
  alone: {on: b}
  one: {on: a ; b, per: k}
  two: {on: "one", per: k}
  three: {on: {window: 5 min, of: two}, per: k}
  four: {on: end_of acts ; three}
  acts: {on: a, do: [{signal: b}], per: k, follows: alone}
  five: {on: alone or resolved held}
  held: {on: {holds: a, until: b, for: 5 min}}
"""
IN_TEXT = CHAINS % SCRIPT
IN_FILE = CHAINS.replace('text: "%s"', "file: echo.es")


def whole(file: Path) -> Rulebook | None:
    try:
        return load_rulebook(file, {}, None, frozenset())
    except InputError:
        return None  # a file that is included, or of a test


def same(book: Rulebook, rule: str, found: Rulebook) -> None:
    assert found.rules[rule] == book.rules[rule]
    assert (found.tables, found.events, found.timezone) == (book.tables, book.events, book.timezone)
    users = {n for n, other in book.rules.items() if rule in uses_of(other, book.rules)}
    assert users == {n for n, other in found.rules.items() if rule in uses_of(other, found.rules)}
    used = uses_of(book.rules[rule], book.rules)
    assert used == uses_of(found.rules[rule], found.rules)
    assert used.keys() & book.rules.keys() == used.keys() & found.rules.keys()
    assert all(found.rules[name] == book.rules[name] for name in found.rules)
    assert lateness_micros(found).get(rule) == lateness_micros(book).get(rule)


def test_each_rule_of_the_examples_is_read_alone_as_with_all_others() -> None:
    rules = left = 0
    for file in BOOKS:
        if (book := whole(file)) is None:
            continue
        read = composed(file, {}, None, {}, {})
        assert {*read.rules} == {*book.rules}
        for rule in book.rules:
            found = part(read, rule)
            same(book, rule, found)
            rules += 1
            left += len(found.rules) < len(book.rules)
    assert rules > 50
    assert left > 20


@pytest.mark.parametrize("rule", ["alone", "one", "two", "three", "four", "acts", "five", "held"])
def test_what_a_rule_uses_and_what_uses_it_is_read_with_it(rule: str) -> None:
    book = load_rulebook(IN_TEXT, {}, None, frozenset())
    found = part(composed(IN_TEXT, {}, None, {}, {}), rule)
    same(book, rule, found)
    assert "one" in found.rules, "a script uses it"
    assert ("two" in found.rules) is (rule not in ("alone", "five", "held"))


def test_a_variable_in_the_file_of_a_script_names_a_rule() -> None:
    limit = {"yaml_bytes_max": "1000"}
    read = composed(IN_FILE, limit, "/lake/chains.yaml", {}, {"echo.es": SCRIPT})
    for _ in range(1_000 // (2 * len("one")) + 2):  # what is filled in counts once, not each time
        assert {*part(read, "alone").rules} == {"alone", "one", "five", "held"}


def test_no_rule_is_read_where_none_is_asked_for() -> None:
    text = "rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: a}}\n"
    assert not part(composed(text, {}, None, {}, {}), "").rules


def test_a_rule_beside_the_text_is_part_of_it() -> None:
    text = "rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: a}, s: {on: a}}\n"
    added = {"put": "on: r ; a", "r/disabled_for": "disabled_for: []"}
    read = composed(text, {}, None, added, {})
    assert {*part(read, "put").rules} == {*part(read, "r").rules} == {"put", "r"}


def test_a_text_that_is_refused_is_refused_in_part_too() -> None:
    text = "rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: a}, s: {on: a}, s: {on: r}}\n"
    with pytest.raises(InputError, match="s"):
        part(composed(text, {}, None, {}, {}), "r")
