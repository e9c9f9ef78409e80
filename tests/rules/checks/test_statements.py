"""SQL judged without Spark: nothing that an honest rulebook says is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.conftest import honest
from tidegate.rules.loader import validated
from tidegate.rules.sql.forms import (
    SqlFault,
    action_fault,
    expression_fault,
    query_fault,
)
from tidegate.rules.sql.statement import expression_of, functions, statement
from tidegate.rules.sql.tokens import sql_tokens, sql_words

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


def test_nothing_of_an_honest_text_is_unknown() -> None:
    """Almost every one is read; what is not is left to Spark."""
    read = [statement(text) if at in JUDGES else expression_of(text) for at, text in honest()]
    found = [each for each in read if each is not None]
    assert len(found) >= 0.95 * len(read)
    calls = {call.name.lower() for each in found for call in each.calls}
    assert len(calls) > 100
    for each, (_, text) in zip(read, honest(), strict=True):  # a call is a word before a bracket
        words = {word.offset for word in sql_words(text) if word.called}
        assert {call.offset for call in (each.calls if each else ())} <= words
    assert calls - functions().keys() == set()
    relations = {named.name for each in found for named in each.relations}
    assert relations == {"event", "accounts", "alerts", "p_r", "moves", "checked"}
    assert all(each.writes for each, (at, _) in zip(read, honest(), strict=True)
               if each and at == "action")  # fmt: skip


@pytest.mark.parametrize(
    "file",
    sorted(f for f in Path("rules/examples").glob("*/*.yaml") if ".test." not in f.name),
    ids=str,
)
def test_no_example_is_refused(file: Path) -> None:
    assert validated(file, {}, functions=()).name


@pytest.mark.parametrize(
    "text",
    [
        "FROM event |> SET kind = 1 |> SELECT x",
        "SELECT firing_id FROM event WHERE a IN (TABLE big)",
        "SELECT (SELECT",
        "SELECT x'zz'",
        "SET firing_id FROM event QUALIFY y OVER z::int)",
        "",
    ],
)
def test_what_sqlglot_cannot_read_is_left_to_spark(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert statement(text) is None
    assert caplog.records == []


def test_calls_by_names_of_types_are_read_as_deep_as_it_is_quick() -> None:
    """sqlglot needs twice as long for each that stands in another."""
    assert statement(f"SELECT {'int(' * 6}1{')' * 6}") is not None
    assert statement(f"SELECT {'int(' * 60}1{')' * 60}") is None
    assert statement(f"SELECT {'abs(' * 20}1{')' * 20}") is not None


def test_tokens_stand_where_they_are_written() -> None:
    text = "INSERT INTO t /*+ BROADCAST(a) */ SELECT 1L, -- no\n 'it''s', `a``b`, é > 2.5e3D"
    assert [token.text for token in sql_tokens(text) if token.text != "'s'"] == [
        "INSERT", "INTO", "t", "SELECT", "1L", ",", "'it'", ",", "`a``b`", ",", "é", ">", "2.5e3D",
    ]  # fmt: skip
    for token in sql_tokens(text):
        assert text[token.offset :].startswith(token.text)
