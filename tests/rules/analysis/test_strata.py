"""In which order scripts and rules are stepped."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.rules.analysis.graph import Stratum, strata

BOOK = """
rulebook: layers
events: {{a: {{signal: {{k: bigint}}}}, b: {{signal: {{k: bigint}}}}}}
scripts:
  {scripts}
rules:
  {rules}
"""


def script(name: str, taken: str, emitted: str, more: str = "") -> str:
    does = f"({taken}(x) {{!> {emitted}({{k: x.k}});}})*"
    text = f"in {{long k;}} {taken} out {{long k;}} {emitted} {does}"
    return f'{name}: {{text: "{text}"{more}}}'


def layers(scripts: list[str], of: dict[str, str]) -> list[Stratum]:
    lines = [f"{name}: {{on: {on}}}" for name, on in of.items()]
    text = BOOK.format(scripts="\n  ".join(scripts) or "{}", rules="\n  ".join(lines) or "{}")
    return [*strata(rules.load(text.replace("scripts:\n  {}\n", "")))]


def test_rules_that_look_at_no_script_of_theirs_are_one_stratum() -> None:
    first = script("first", "a", "up")
    assert layers([], {"r": "a ; b", "q": "r"}) == [Stratum((), ("r", "q"), ("r", "q"))]
    assert layers([first], {"r": "a", "q": "up"}) == [Stratum(("first",), ("r", "q"), ("r", "q"))]


def test_a_script_that_takes_what_a_rule_detects_comes_after_all_rules_that_may_be_before() -> None:
    found = layers([script("last", "r", "up")], {"r": "a", "q": "b"})
    assert found == [Stratum((), ("r", "q"), ("r", "q")), Stratum(("last",), (), ())]


def test_a_rule_over_what_is_emitted_of_a_rule_is_of_the_next_stratum() -> None:
    scripts = [script("one", "r", "up"), script("two", "up", "down"), script("three", "q", "end")]
    of = {"end_too": "end or p", "q": "down ; r", "r": "p or a", "p": "b", "s": "end_too"}
    assert layers(scripts, of) == [
        Stratum((), ("r", "p"), ("r", "p")),
        Stratum(("one", "two"), ("q",), ("q", "r", "p")),
        Stratum(("three",), ("end_too", "s"), ("end_too", "p", "s")),
    ]


@pytest.mark.parametrize("off", ["script", "rule"])
def test_what_is_disabled_puts_nothing_after_itself(off: str) -> None:
    between = script("one", "r", "up", ", enabled: false" if off == "script" else "")
    rule = "a, enabled: false" if off == "rule" else "a"
    (found,) = layers([between], {"r": rule, "q": "up"})
    assert found.rules == (("r", "q") if off == "script" else ("q",))
