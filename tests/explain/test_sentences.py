"""The sentences of `explain`: each text is pinned, and histories show that it is true.

`tests/golden/sentences.txt` has for each operator and context the text and a history. The detector
and the reference are held to its detections by the tests of all golden files; here it is the text.
Some phrases are claims that can be judged over any history: these are, over random ones.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from tests.explain.examples import TEXTS, said
from tests.golden.load import Case, Line, cases
from tests.reference.evaluate import evaluate
from tidegate import rules
from tidegate.engine.explain.clauses import Names, clause
from tidegate.engine.explain.sentences import PARTS_MAX, Sentences, templates
from tidegate.rules.algebra.bound import Bounds
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.expressions import windows as w
from tidegate.rules.model import Context, in_context

CASES = list(cases("sentences.txt"))
OPERATORS = {case.title: case for case in CASES if len(case.says) == len(Context)}
"""Those with a text in each context."""


def operator(case: Case) -> str:
    on = case.rulebook.rules["r"].pattern.on
    return clause(on, Names()).operator


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_text_of_each_operator_and_context(case: Case) -> None:
    rule, names = case.rulebook.rules["r"], case.rulebook.rules
    text = [*Sentences(rule, names).detection()]
    if not case.says:  # it never fires
        assert text == [case.fires]
        return
    assert " ".join(text[:-1]) == case.fires
    found = {None: text[-1]} | {c: Sentences(in_context(rule, c), names).choice(c) for c in Context}
    assert {context: found[context] for context in case.says} == case.says


def test_every_template_has_a_history_in_each_context() -> None:
    shown = {operator(case) for case in OPERATORS.values()}
    windows = {operator(c) for c in CASES if isinstance(c.rulebook.rules["r"].pattern.on, w.Window)}
    assert shown.isdisjoint(windows)
    assert shown | windows | {"instances", "select"} == templates().keys()
    assert all(case.expected.keys() == set(Context) for case in OPERATORS.values())
    assert any(rule.pattern.selection for case in CASES for rule in case.rulebook.rules.values())


# -- phrases that are judged over any history ----------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """What a rule has detected in a context (found) and in `unrestricted` (every), as `simulate`
    prints it. instants: how many occurrences the history has at each."""

    found: list[dict[str, Any]]
    every: list[dict[str, Any]]
    instants: Counter[int]

    @property
    def ends(self) -> set[int]:
        return {one["end"] for one in self.found}

    def starts(self, end: int) -> set[int]:
        """Those of all instances that end then."""
        return {one["start"] for one in self.every if one["end"] == end}


def once_an_instant(seen: Seen) -> None:
    assert len(seen.ends) == len(seen.found)


def no_occurrence_twice(seen: Seen) -> None:
    used = [json.dumps(part) for one in seen.found for part in one["constituents"]]
    assert len(used) == len({*used})


def each_instance(seen: Seen) -> None:
    assert seen.found == seen.every


def latest_start(seen: Seen) -> None:
    ends = {one["end"] for one in seen.every}
    latest = {end: max(seen.starts(end)) for end in ends}
    assert {one["end"]: one["start"] for one in seen.found} == latest


def oldest_first(seen: Seen) -> None:
    """Of those that end first: nothing is consumed by then."""
    if seen.every:
        end = min(one["end"] for one in seen.every)
        first = min(one["start"] for one in seen.found if one["end"] == end)
        assert first == min(seen.starts(end))


def later_ones(seen: Seen) -> None:
    """What a firing has is later than all of the same types in the firings before."""
    for before, after in product(seen.found, seen.found):
        if before["end"] < after["end"]:
            for old, new in product(before["constituents"], after["constituents"]):
                assert old["event"] != new["event"] or old["time"] < new["time"]


def begun_once(seen: Seen) -> None:
    starts = Counter(one["start"] for one in seen.found)
    assert all(number <= seen.instants[start] for start, number in starts.items())


def one_behind_another(seen: Seen) -> None:
    """Each window but the first begins where one ended."""
    if seen.found:
        starts = {one["start"] for one in seen.found}
        assert starts - seen.ends == {min(starts)}


def none_behind_another(seen: Seen) -> None:
    """But for another occurrence at the same instant."""
    behind = {one["start"] for one in seen.found} & seen.ends
    assert all(seen.instants[at] > 1 for at in behind)


PHRASES = {
    r"only one (fires|does)|fire once\.|once at an instant|(is|are) one firing": once_an_instant,
    r"in one firing( at most)?\.|All are consumed|currences are consumed\.": no_occurrence_twice,
    r"is consumed by the first": no_occurrence_twice,
    r"^Each (combination|match|choice of \d) is a firing|^Each \S+ fires with each": each_instance,
    r"is a firing of its own|also where several come|^Each `a` fires\. ": each_instance,
    r"latest (is paired|of each is|counts)|^The l.st .* taken|came last|last is": once_an_instant,
    r"(latest is paired|started last|^The last|^The latest|came last).* Nothing is": latest_start,
    r"[Tt]he oldest": oldest_first,
    r"needs .*later|with all (before|older)": later_ones,
    r"(begins one firing|fires once) at most": begun_once,
    r"ends a window and begins the next": one_behind_another,
    r"does not begin the next": none_behind_another,
}


def histories(names: list[str], seed: str) -> Iterator[list[Line]]:
    draw = random.Random(seed)
    for number in range(6):
        times = sorted(draw.randrange(1, 9) for _ in range(6))
        yield [
            (draw.choice(names), at * 1_000_000, {"v": number * 100 + n})
            for n, at in enumerate(times)
        ]


@pytest.mark.parametrize("title", OPERATORS)
def test_what_the_text_claims_is_so_over_random_histories(title: str) -> None:
    case = OPERATORS[title]
    judged = set()
    for history in histories(sorted({name for name, _, _ in case.history}), title):
        instants = Counter(at // 1_000_000 for _, at, _ in history)
        by = {context: _detected(case, history, context) for context in Context}
        for context, (phrase, holds) in product(Context, PHRASES.items()):
            if re.search(phrase, case.says[context]):
                judged.add(context)
                holds(Seen(by[context], by[Context.UNRESTRICTED], instants))
    assert judged == (set(Context) if title != "the second" else set())


def _detected(case: Case, history: list[Line], context: Context) -> list[dict[str, Any]]:
    found = evaluate(case.rulebook, history, context=context)
    return [one.printed() for one in found if one.rule == "r"]


# -- whole rules ---------------------------------------------------------------------------------

BANK = """\
rulebook: bank
tables: {accounts: {path: /l/accounts, key: [account_id]}}
events:
  refused: {signal: {account_id: bigint, amount: bigint}}
  transferred: {signal: {account_id: bigint, amount: bigint}}
  ask: {signal: {account_id: bigint}}
rules:
"""


def of_rule(text: str, per: str = "per: account_id") -> list[str]:
    book = rules.load(f"{BANK}  r:\n    {per}\n{text}", features=all_features())
    rule = book.rules["r"]
    return [*Sentences(rule, book.rules).all(Bounds(book.rules).of_rule(rule))]


def test_a_whole_rule() -> None:
    text = """\
    on: refused ; transferred within 5 min
    if: sum(amount) > 10
    cooldown: 1 h
    do:
      - sql: |
          MERGE INTO accounts a USING (SELECT DISTINCT account_id FROM event) e
          ON a.account_id = e.account_id WHEN MATCHED THEN UPDATE SET blocked = true
      - signal: ask
    within: 5 min
    otherwise: {webhook: {url: "https://ops.example.org/alarm?token=s3"}}
"""
    assert of_rule(text) == [
        "Fires when `transferred` comes after `refused` for the same account_id, within 5 min.",
        "Of several `refused`, the latest is paired. Nothing is consumed: the same `refused` pairs"
        " with the next `transferred`, too. Several `transferred` at one instant fire once.",
        "Remembers the last `refused` of each account_id, for 5 min.",
        "A firing goes on only if `sum(amount) > 10` is true of its rows.",
        "After a firing of one account_id, others are dropped for 1 h.",
        "Then it runs `MERGE INTO accounts ..` and raises ask, once for all firings of a bucket.",
        "If that is not done within 5 min, it also sends a webhook to ops.example.org.",
        "What was not done in time goes on being tried.",
    ]


@pytest.mark.parametrize(
    ("on", "context", "remembers"),
    [
        ("refused", "unrestricted", "nothing"),
        ("refused ; ask", "restricted", "the last `refused` of each account_id, for ever"),
        ("refused ; ask within 5 s", "recent", "the last `refused` of each account_id, for 5 s"),
        ("refused and ask within 5 s", "restricted", "the last of each account_id of each of"
         " `refused` and `ask`, for 5 s"),
        ("any(4, ask*) within 5 s", "restricted", "the last 3 `ask` of each account_id, for 5 s"),
        ("any(2, ask*) within 5 s", "restricted", "the last `ask` of each account_id, for 5 s"),
        ("not(refused)[ask, [5 s]]", "restricted", "each `ask` of each account_id, for 5 s"),
        ("ask ; [5 s]", "restricted", "each `ask` of each account_id, for 5 s"),
        ("refused ; (ask ; transferred)", "restricted", "at most 2 instances of each account_id"
         " with 3 occurrences, for ever"),
        ("refused ; ask within 5 s", "chronicle", "the occurrences of each account_id that are not"
         " consumed yet, for 5 s"),
        ("refused ; ask within 5 s", "unrestricted", "every occurrence of each account_id that may"
         " still match, for 5 s"),
        ("ask[3]", "restricted", "a count of each account_id, for ever"),
        ("{window: 5 s, of: ask}", None, "the `ask` of each account_id in the open window"),
        ("{session: 5 s, of: ask}", None, "the `ask` of each account_id in the open session, and"
         " forgets a key 5 s after its last row"),
        ("{holds: ask, until: refused, for: 5 s}", None, "the `ask` of each account_id in the last"
         " 5 s, and whether it has fired, for ever"),
    ],
)  # fmt: skip
def test_what_a_rule_remembers(on: str, context: str | None, remembers: str) -> None:
    chosen = f"    context: {context}\n" if context else ""
    (found,) = (s for s in of_rule(f"    on: {on}\n{chosen}") if s.startswith("Remembers "))
    assert found == f"Remembers {remembers}."


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("if: {sql: SELECT firing_id FROM event}", "A firing goes on only if `SELECT firing_id FROM"
         " event` returns its `firing_id`. It sees the tables as the firing's bucket has pinned"
         " them."),
        ("hysteresis: {fire: max(amount) > 8, rearm: max(amount) < 7}", "Of the firings of one"
         " account_id, one of which `max(amount) > 8` is true goes on, and then none until"
         " `max(amount) < 7` has been true of one."),
        ("dedupe: {by: amount, within: 1 h}", "A firing of one account_id with the same `amount` as"
         " another in the 1 h before is dropped."),
        ("throttle: 3 per 1 h", "At most 3 firings of one account_id go on in 1 h; others are"
         " dropped."),
        ("do: DELETE FROM accounts WHERE account_id = 3 or account_id = 4\nat_least_once: true",
         "Then it runs `DELETE FROM accounts ..`, once for all firings of a bucket."),
        ("do: DELETE FROM accounts\nat_least_once: true\ncoupling: detached", "Then it runs"
         " `DELETE FROM accounts`, some time after the bucket, once for all firings of a bucket."),
        ("do: [{signal: ask}, {disable: r}]", "Then it raises ask and disables rule r."),
        ("do: INSERT INTO accounts SELECT account_id FROM event\nfor_each: firing", "Then it runs"
         " `INSERT INTO accounts ..`, once for each firing."),
        ("do: INSERT INTO accounts SELECT account_id FROM event\ncoupling: immediate", "Then it"
         " runs `INSERT INTO accounts ..`, firing by firing, in the order of"
         " detection."),
        ("do: {signal: ask}\nmode: dry", "It is dry (`mode: dry`): what it would do is left out."
         " It raises ask."),
        ("priority: 3", "It only detects: it has no actions."),
    ],
)  # fmt: skip
def test_what_becomes_of_a_firing(key: str, says: str) -> None:
    keys = "".join(f"    {line}\n" for line in key.splitlines())
    assert says in of_rule(f"    on: refused\n{keys}")


def test_of_many_parts_the_first_are_described() -> None:
    on = "refused"
    for _ in range(PARTS_MAX + 2):
        on = f"(({on} ; ask) and refused)"
    text = of_rule(f"    on: {on} within 1 h\n")
    described = [one for one in text if " happens " in one]
    assert len(described) == PARTS_MAX
    assert text[PARTS_MAX + 1] == "Further parts: see the graph of `explain`."
    assert all(len(one) < 200 for one in text)


def test_the_rules_of_the_examples() -> None:
    """Changed on purpose: python -m tests.explain.examples."""
    assert said() == TEXTS.read_text()
