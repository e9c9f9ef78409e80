"""A limit that is reached names the rule, the key, the setting and the remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.golden.load import read
from tests.support.history import batches, run
from tests.support.rulebooks import loaded
from tidegate.engine.core.state import State
from tidegate.engine.core.values import Bucket, Carried, Needs, Plan
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.stage import BucketDetector, detect
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Settings


@pytest.mark.parametrize(
    ("settings", "code", "setting"),
    [
        (Settings(carried_per_key_max=3), "carried-per-key", "carried_per_key_max"),
        (Settings(search_steps_max=3), "search-steps", "search_steps_max"),
    ],
)
def test_a_limit_names_rule_key_setting_and_remedy(
    settings: Settings, code: str, setting: str
) -> None:
    case = read(
        "title: x\nrule calm: a\nrule busy: (a ; a) and b\nper busy: k\ncontext busy: chronicle\n"
        "history: a@0(k=8) a@1(k=7) a@2(k=7) a@3(k=7) a@4(k=7) b@5(k=7)"
    )
    rulebook, history = replace(case.rulebook, settings=settings), list(case.history)
    with pytest.raises(RuleLimitError) as caught:
        run(rulebook, history, [4_000_000])
    assert caught.value.code == code
    assert caught.value.message.startswith("rule busy, key k=7: ")
    assert "k=7" not in caught.value.reason  # for where a message shows no values of tables
    assert setting in caught.value.message
    assert caught.value.hint == f"bound the expression by `within`, or raise {setting}"


def test_a_limit_that_is_of_no_one_key_names_none() -> None:
    case = read("title: x\nrule p: P(a, [1 s], b)\nper p: k\nhistory: a@0(k=7) b@20000000(k=7)")
    with pytest.raises(RuleLimitError) as caught:
        run(case.rulebook, case.history)
    assert caught.value.code == "ticks"
    assert caught.value.message.startswith("rule p: ")


def test_every_instance_is_a_step_where_all_are_detected() -> None:
    """Simultaneous occurrences have one interval and many instances."""
    seen = " ".join(f"{name}@1(v={n})" for name in "abc" for n in range(30))
    case = read(f"title: x\non: a and b and c\ncontext: unrestricted\nhistory: {seen}")
    settings = Settings(search_steps_max=20_000)
    with pytest.raises(EngineError, match="search_steps_max"):
        run(replace(case.rulebook, settings=settings), case.history)


def test_what_a_within_forgets_is_not_counted_as_carried() -> None:
    case = read(
        "title: x\non: a ; b within 2\ncontext: chronicle\n"
        "history: a@0 a@1 a@2 a@3 a@4 a@5 a@6 c@9 b@10"
    )
    rulebook = replace(case.rulebook, settings=Settings(carried_per_key_max=3))
    history = list(case.history)
    assert run(rulebook, history, [9_000_000]) == []


def test_g13_a_rule_that_was_parked_before_is_not_parked_anew_with_one_that_it_uses() -> None:
    limits = Settings(carried_per_key_max=3)
    book = loaded("abc", r="on: a ; b, context: chronicle", u="on: r ; c", v="on: r or c")
    book = replace(book, settings=limits)
    state = State(0, 0, 0, {}, {}, {}, Carried(), parked=frozenset({"u"}))
    bucket = Bucket(
        Plan("x", 1, 0, 9_000_000, 0), batches(book, [("a", n, {"k": 0, "v": 0}) for n in range(5)])
    )
    detecting = BucketDetector(book, dict.fromkeys(book.rules, 0), Needs({}))
    parked = detect(detecting, state, bucket, limits).parked
    assert sorted((one.rule, one.instant) for one in parked) == [("r", 1), ("v", 1)]


@pytest.mark.parametrize("on", ["{window: 1 h, of: a}", "{session: 1 h, of: a}"])
def test_an_open_window_has_a_limit(on: str) -> None:
    """Of one key."""
    case = read(
        f"title: x\nrule calm: a\nrule busy: {on}\nper busy: k\n"
        "history: a@0(k=8) a@1(k=7) a@2(k=7) a@3(k=7) a@4(k=7)"
    )
    rulebook = replace(case.rulebook, settings=Settings(carried_per_key_max=3))
    assert len(run(rulebook, case.history[:4], [4_000_000])) == 4 + 2
    with pytest.raises(RuleLimitError) as caught:
        run(rulebook, case.history, [4_000_000])
    assert caught.value.message.startswith("rule busy, key k=7: a window has 4 rows, at most 3")
    assert caught.value.hint == "make the window shorter, or raise carried_per_key_max"


@pytest.mark.parametrize(
    "on",
    [
        "{window: 1 h, every: 30 min, of: a}",
        "{over: {window: 1 h, of: a, fire: count(*) > 9}}",
        "{holds: a, until: b, for: 1 h}",
    ],
)
def test_what_slides_crosses_or_holds_has_a_limit(on: str) -> None:
    """Of one key, as an open window has."""
    case = read(
        f"title: x\nrule busy: {on}\nper busy: k\n"
        "history: a@0(k=8) a@1(k=7) a@2(k=7) a@3(k=7) a@4(k=7)"
    )
    rulebook = replace(case.rulebook, settings=Settings(carried_per_key_max=3))
    run(rulebook, case.history[:4], [4_000_000])
    with pytest.raises(RuleLimitError) as caught:
        run(rulebook, case.history, [4_000_000])
    assert caught.value.message.startswith("rule busy, key k=7: a window has 4 rows, at most 3")
    assert caught.value.hint == "make the window shorter, or raise carried_per_key_max"
