"""SQL judged without Spark: nothing that an honest rulebook says is refused."""

from __future__ import annotations

import pytest

from tests.hostile.conftest import honest
from tidegate.rules.sqlforms import (
    SqlFault,
    action_fault,
    expression_fault,
    query_fault,
    unread,
)

JUDGES = {"action": action_fault, "query": query_fault}


def test_honest_texts_have_no_fault() -> None:
    texts = honest()
    assert len(texts) >= 200
    found = [(text, JUDGES.get(place, expression_fault)(text)) for place, text in texts]
    assert [text for text, fault in found if fault] == []


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT ';', \"(\", `]`, 'it''s', 'a\\'b', r'\\' FROM event",
        "-- it's (a comment;\nINSERT INTO t SELECT x /* ' ( ; /* ] */ */ FROM event;\n-- end",
        "/* DELETE FROM t */ merge INTO t USING event ON true WHEN MATCHED THEN DELETE",
        "WITH a AS (SELECT 1), b AS (DELETE) UPDATE t SET x = a[0]",
        "FROM event INSERT INTO t SELECT x",
    ],
)
def test_quotes_comments_and_brackets_are_sparks(text: str) -> None:
    assert action_fault(text) is None


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("UPDATE t SET x = 'a\\'", 17, "the quote ' is not closed"),
        ("UPDATE t SET x = (1]", 17, "'(' is closed by ']'"),
        ("UPDATE t SET x = 1 /* /* */", 19, "the comment /* is not closed"),
        ("UPDATE t SET x = 1; ;", 20, "something stands behind the semicolon"),
        ("/* a */ ; ", 0, "there is nothing but comments"),
        ("Delete from a.t where x", 0, "DELETE is refused: one that deletes nothing leaves no"),
        ("(SELECT 1)", 0, "a query alone writes nothing"),
        ("-- why\nVACUUM t", 7, "VACUUM is no action"),
        ("updte t SET x = 1", 0, "'updte' begins no statement"),
        ("UPDATE t SET x = 1 WHERE y = 2 and;", 31, "the text ends behind 'and'"),
        ("UPDATE t SET x =", 15, "the text ends behind '='"),
        ("INSERT INTO t SELECT ${env:X} FROM event", 21, "${env:X}: nothing is substituted in SQL"),
        ("INSERT INTO t SELECT ${", 21, "${: nothing is substituted in SQL"),
    ],
)
def test_what_is_no_action(text: str, offset: int, message: str) -> None:
    fault = action_fault(text)
    assert isinstance(fault, SqlFault)
    assert (fault.offset, fault.message[: len(message)]) == (offset, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count(a) > 2 and", "the text ends behind 'and'"),
        ("a IS NOT", "the text ends behind 'NOT'"),
        ("a >", "the text ends behind '>'"),
        ("a > 2 and t.and", None),
        ("`or`", None),
        ("x = ${y}", "${y}: nothing is substituted in SQL"),
        ("x = '${y}'", None),
    ],
)
def test_an_expression_that_stops_short_or_waits_for_a_value(
    text: str, message: str | None
) -> None:
    fault = expression_fault(text)
    assert message == (fault and fault.message)


def test_g19_a_rule_that_may_repeat_may_delete_and_nothing_else() -> None:
    assert action_fault("DELETE FROM t WHERE x = :x", unmarked=True) is None
    assert action_fault("DELETE FROM t WHERE (x", unmarked=True) is not None
    assert action_fault("OPTIMIZE t", unmarked=True) is not None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * FROM EVENT", None),
        ("SELECT * FROM `event`", None),
        ("SELECT p_r.x FROM p_r", None),
        ("SELECT 'event' FROM t -- event", "select from event"),
        ("SELECT event(x) FROM t", "select from event"),
        ("SELECT x FROM evnt", "did you mean 'event' for 'evnt'?"),
    ],
)
def test_a_text_that_never_reads_event(text: str, hint: str | None) -> None:
    found = unread(text, ("event", "p_r"))
    assert found is None if hint is None else str(found).startswith(hint)
