"""S10: `begin_of` and `end_of` of transactions and updates, among other events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.compare import agree
from tests.golden.load import Case, cases
from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.keys import needs_keyed
from tests.reference.planted import planted, untils
from tests.reference.strategies import EVERYTHING, SECOND, expected, expressions
from tests.support.history import printed, run
from tidegate.engine.core.event_names import Edge, EventKey, beginning
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.errors import Place
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import BeginOf, EndOf, Expression, Name
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import (
    Change,
    Context,
    EventType,
    Pattern,
    Rule,
    Rulebook,
    SignalEvent,
    TableEvent,
)

NAMES = ("a", "t", "begin_of t", "end_of t", "u", "begin_of u")


FIELDS = {"a": ("k", "v"), "u": ("k", "v"), "t": ("v",)}
SIGNALS: dict[str, EventType] = {
    name: SignalEvent(name, Place(), dict.fromkeys(fields, "bigint"))
    for name, fields in FIELDS.items()
}


def book(
    on: Expression, context: Context, keyed: bool, commit: Change = Change.TRANSACTION
) -> Rulebook:
    changes = {"t": commit, "u": Change.UPDATE}
    tables = {
        name: TableEvent(name, Place(), change, "t", columns={f: f for f in FIELDS[name]})
        for name, change in changes.items()
    }
    used = {n.name for n in on.walk() if isinstance(n, Name | BeginOf | EndOf)} - {"t"}
    per = dict.fromkeys(sorted(used), ("k",)) if keyed and needs_keyed(on, used) else {}
    names = ("k",) if per else ()
    rule = Rule("r", Place(), Pattern(on, format_expression(on), context, key_names=names, per=per))
    return Rulebook("b", None, "", "UTC", {}, {**SIGNALS, **tables}, {"r": rule})


@detecting
@given(data=st.data())
@example_count(60)
def test_s10_edges_are_those_of_the_reference_for_any_cut(data: st.DataObject) -> None:
    on = data.draw(expressions(EVERYTHING, NAMES, 2))
    commit = data.draw(st.sampled_from([Change.TRANSACTION, Change.COMMIT]))
    rulebook = book(on, data.draw(st.sampled_from(Context)), data.draw(st.booleans()), commit)
    history = data.draw(planted(rulebook, 8))
    until = data.draw(untils(history))
    answer = saw(expected(rulebook, history, until=until))
    assert run(rulebook, history, until=until) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history)), until) == answer


@pytest.mark.parametrize("case", [*cases("edges.txt")], ids=str)
def test_s10_printed_examples(case: Case) -> None:
    for context in case.expected:
        assert context in (None, Context.RESTRICTED)
        agree(run(case.rulebook, case.history), case, context)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("changes", [1, 2])
def test_s01_images_with_parameters_of_their_own_rank_by_these(
    before: int, after: int, changes: int
) -> None:
    rulebook = book(parse("(u or begin_of u) ; a"), Context.RESTRICTED, keyed=False)
    images = {
        name: Batch("u", np.zeros(changes, np.int64), np.arange(changes), pa.table({"v": values}))
        for name, values in {beginning("u"): [before] * changes, "u": [after] * changes}.items()
    }
    asked = Batch("a", np.array([SECOND]), np.arange(1), pa.table({"v": [0]}))
    (found,), _, _ = Detector(rulebook, {"r": 0}).step(Carried(), {**images, "a": asked}, SECOND)
    (line,) = printed(found)
    assert [each["v"] for each in line["constituents"]] == [2, 0]


@pytest.mark.parametrize(
    ("text", "key", "shown", "written"),
    [
        ("a", EventKey("a"), "a", "a"),
        ("[begin]t", EventKey("t", edge=Edge.BEGIN), "t", "begin_of t"),
        ("[begin]t but of r by 3", EventKey("t", "r", 3, Edge.BEGIN), "t", "begin_of t"),
        ("a by 0", EventKey("a", behind=0), "a", "a"),
        ("failed pay by 7", EventKey("pay", behind=7, edge=Edge.FAILED), *["failed pay"] * 2),
        ("resolved hot", EventKey("hot", edge=Edge.RESOLVED), *["resolved hot"] * 2),
        ('[tick]P(cron("0 0 * * *"), [1 s] by x)', None, "tick", None),
    ],
)
def test_the_text_of_an_event_type_is_what_stores_have(
    text: str, key: EventKey | None, shown: str, written: str | None
) -> None:
    found = EventKey.of(text)
    assert (str(found), found.shown) == (text, shown)
    assert key in (None, found)
    assert written in (None, found.written)
