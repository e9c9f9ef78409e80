"""`rules:` of a test file: these run, and those that they use; the others are off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay.cases.books import SCHEMAS, case, read
from tidegate.engine.replay.cases.driver import CaseResult, Driver
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.memory.worlds import MemoryWorlds
from tidegate.rules.errors import InputError

HOT = """\
rulebook: hot
timezone: UTC
tables: {readings: {path: ./readings}, sensors: {path: ./sensors}}
events: {hot: {on: insert, table: readings, where: celsius > 80}}
rules:
  one: {on: hot, per: sensor, enabled: false}
  twice: {on: "any(2, one*)", per: sensor, context: chronicle, if: count(*) = 2}
  known:
    on: hot
    per: sensor
    if: {sql: SELECT e.firing_id FROM event e JOIN sensors s ON s.sensor = e.sensor}
"""
CASES = """\
rulebook: hot.yaml
schemas: {readings: "sensor BIGINT, celsius DOUBLE", sensors: "sensor BIGINT"}
tests:
- name: two hot readings
  steps:
  - {at: 2026-03-02T09:00:00, insert: {readings: {sensor: 7, celsius: 90}}}
  - {after: 1 min, insert: {readings: {sensor: 7, celsius: 91}}}
  expect: {firings: {twice: [{key: {sensor: 7}, constituents: 2}]}}
"""


def fast(folder: Path, text: str) -> CaseResult:
    (folder / "hot.yaml").write_text(HOT)
    (folder / "hot.test.yaml").write_text(text)
    cases = read_cases(folder / "hot.test.yaml")
    worlds = MemoryWorlds(cases.book, cases.schemas, cases.defaults)
    return Driver(cases, lambda _: worlds.world(), strict=False).run_fast(cases.cases[0])


def test_a_rule_that_is_left_out_needs_no_spark(tmp_path: Path) -> None:
    whole = fast(tmp_path, CASES.replace("twice: [{key: {sensor: 7}, constituents: 2}]", ""))
    assert (whole.outcome, whole.reason) == ("skipped", "the condition of rule known needs Spark")
    some = fast(tmp_path, CASES.replace("schemas:", "rules: [twice]\nschemas:"))
    assert (some.outcome, some.differences) == ("passed", ())
    assert some.unlisted == {"one": 2}, "the rule that it uses runs, too, and is on"
    named = fast(tmp_path, CASES.replace("schemas:", "rules: [twice, known]\nschemas:"))
    assert named.outcome == "skipped"


@pytest.mark.parametrize(
    ("chosen", "expect", "said"),
    [
        ("[four, sen]", "{}", "has no rule 'sen' (rules[1])\n    did you mean 'seen'?"),
        ("[seen]", "{firings: {four: []}}", "the rule 'four' does not run here: `rules` names"),
        ("[seen]", "{webhooks: {tell: []}}", "add tell to `rules`"),
        ("[]", "{}", "the list is empty"),
        ("seen", "{}", "write [seen]"),
    ],
)  # fmt: skip
def test_what_does_not_run_cannot_be_expected(
    tmp_path: Path, chosen: str, expect: str, said: str
) -> None:
    text = case("[{at: 2026-03-02T07:00:00}]", expect)
    text = text.replace(SCHEMAS, f"rules: {chosen}\n{SCHEMAS}")
    with pytest.raises(InputError) as refusal:
        read(tmp_path, text)
    assert said in str(refusal.value)


def test_without_rules_the_book_is_as_it_stands(tmp_path: Path) -> None:
    cases = read(tmp_path, case("[{at: 2026-03-02T07:00:00}]"))
    assert all(rule.enabled for rule in cases.book.rules.values())
