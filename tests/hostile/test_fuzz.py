"""Forbidden pieces at every place of honest texts and plans: none gets through (G27).

Places are found by reflection over the plans of honest texts, never listed.
"""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import ParseException

from tests.hostile.conftest import HERE, TABLES, Judge, honest
from tidegate.connectors.delta import nodes
from tidegate.connectors.delta.analysis import Analysis
from tidegate.connectors.delta.functions import FUNCTIONS, TABLE_FUNCTIONS
from tidegate.connectors.delta.gate import Gate
from tidegate.connectors.delta.plans import Plans
from tidegate.connectors.java.jars import delta_jars
from tidegate.rules.errors import InputError

PLANTS = {
    "expression": (
        "reflect('java.lang.System', 'getenv')",
        "try_reflect('java.lang.System', 'getenv')",
        "system.builtin.java_method('java.lang.System', 'getenv')",
        "(SELECT TRANSFORM(1) USING 'cat')",
        "input_file_name()",
        "current_user()",
        "session.abs(1)",
        "somewhere.abs(1)",
        "from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
        "schema_of_json('{}')",
        "IDENTIFIER('acc' || 'ount')",
        "(SELECT max(value) FROM text.`/etc/passwd`)",
        "(SELECT 1 FROM accounts TIMESTAMP AS OF (SELECT 1))",
        "(SELECT count(*) OVER w FROM accounts WINDOW w AS (ORDER BY (SELECT reflect('a', 'b'))))",
        "aggregate(array(1), 0, (a, x) -> a + length(input_file_name()))",
        "CASE WHEN EXISTS (SELECT 1 FROM undeclared) THEN 1 END",
        "(WITH accountſ AS (SELECT 1) SELECT 2)",
    ),
    "relation": (
        "text.`/etc/passwd`",
        "undeclared",
        "spark_catalog.default.undeclared",
        "IDENTIFIER('acc' || 'ounts')",
        "STREAM accounts",
    ),
    "plan": (
        "(SELECT TRANSFORM(account) USING 'cat' FROM accounts)",
        "(SELECT * FROM text.`/etc/passwd`)",
        "(SELECT * FROM undeclared)",
        "(TABLE spark_catalog.default.undeclared)",
        "(SELECT * FROM IDENTIFIER('acc' || 'ounts'))",
        "(SELECT * FROM accounts WITH ('versionAsOf' = '0'))",
        "(SELECT * FROM accounts TIMESTAMP AS OF (SELECT 1))",
        "(FROM accounts |> WHERE reflect('a', 'b') = 'c')",
        "(SELECT * FROM python_worker_logs())",
        "(WITH accounts AS (SELECT 1 AS account) SELECT * FROM accounts)",
    ),
}
GATE = {
    "sql-function",
    "sql-hidden-table",
    "sql-kind",
    "sql-name",
    "sql-options",
    "sql-parameter",
    "sql-path",
    "sql-subquery",
    "sql-table",
    "sql-target",
}


def planted_texts(judge: Judge) -> list[tuple[str, str]]:
    """Every plant at every place of every honest text."""
    found = []
    for place, text in honest():
        parse = judge.plans.expression if place in ("where", "if") else judge.plans.statement
        slots: set[tuple[int, int, str]] = set()
        for part in judge.plans.walk(parse(text)):
            if part.start is not None and part.stop is not None:
                slots.add((part.start, part.stop, "plan" if part.plan else "expression"))
                if part.kind == "UnresolvedRelation":
                    slots.add((part.start, part.stop, "relation"))
        for start, stop, sort in sorted(slots):
            found += [(place, text[:start] + p + text[stop + 1 :]) for p in PLANTS[sort]]
    return found


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_g27_no_planted_text_gets_through(judge: Judge, count: int) -> None:
    plants = random.Random(9).sample(planted_texts(judge), count)
    through, parsed = [], 0
    for place, text in plants:
        problem = judge(place, text)
        if problem is None or problem.code not in GATE | {"sql-syntax"}:
            through.append(f"{place}: {text}\n    {problem}")
        parsed += problem is None or problem.code != "sql-syntax"
    assert not through, "\n".join(through)
    assert parsed >= count * 2 / 3


class Planted(Plans):
    """Parses and resolves to what is at hand."""

    plan: Any

    def statement(self, text: str) -> Any:  # noqa: ARG002
        return self.plan

    expression = statement


class Objects:
    """Nodes of all classes, put into plans of honest texts."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        jvm: Any = judge.spark._jvm
        package = f"tidegate.p{uuid.uuid4().hex}"
        source = Path(__file__).with_name("Planter.java").read_text(encoding="utf-8")
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source.replace("package tidegate;", f"package {package};", 1))
        loaded = compiler.getClassLoader().loadClass(f"{package}.Planter")
        self.planter = loaded.newInstance()
        own = [str(p) for p in (Path(pyspark.__file__).parent / "jars").glob("spark-*.jar")]
        jars = own + [jar for jar in delta_jars() if "delta-spark" in jar]
        array = judge.spark.sparkContext._gateway.new_array(jvm.java.lang.String, len(jars))
        for at, jar in enumerate(jars):
            array[at] = jar
        self.classes = sorted(str(name) for name in self.planter.classes(array))
        self.plans = Planted(judge.plans.session)

    def judge_plan(self, plan: Any, *, analysed: bool) -> None:
        """Raises InputError for a plan that is not let in."""
        if analysed:
            known = self.judge.analyst._relations
            Analysis(self.plans, ("event", "p_r"), known).parts(plan, lambda _: HERE)
        else:
            self.plans.plan = plan
            Gate(self.plans, TABLES).action("", lambda _: HERE, (), "r")

    def refused(self, plan: Any, slot: Any, name: str, *, analysed: bool) -> bool | None:
        """Whether a plan, let in before, is refused with a node of this class; None if the node
        does not fit there."""
        if not self.planter.plant(slot, name):
            return None
        try:
            self.judge_plan(plan, analysed=analysed)
        except InputError as error:
            return error.problems[0].code in GATE
        finally:
            self.planter.restore(slot)
        return False


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("analysed", [False, True])
def test_g27_no_planted_node_gets_through(judge: Judge, count: int, analysed: bool) -> None:
    objects = Objects(judge)
    assert len(objects.classes) > 800
    for name in ("event", "p_r"):  # the views of the honest texts
        assert judge("action", f"INSERT INTO alerts SELECT account, kind FROM {name}") is None
    if analysed:
        called = judge.plans.classes(FUNCTIONS | TABLE_FUNCTIONS)
        allowed = nodes.ANALYSED_PLANS | nodes.ANALYSED_EXPRESSIONS | called
    else:
        allowed = nodes.PARSED_PLANS | nodes.PARSED_EXPRESSIONS
    foreign = [name for name in objects.classes if name[1:] not in allowed]
    chance = random.Random(9)
    chance.shuffle(foreign)
    texts = [text for place, text in honest() if place == "action" and "TIMESTAMP AS" not in text]
    fits, through = 0, []
    slots: list[tuple[Any, Any]] = []
    for number in range(count):
        if number % 50 == 0:
            plan = judge.plans.statement(chance.choice(texts))
            plan = judge.plans.resolve(plan) if analysed else plan
            objects.judge_plan(plan, analysed=analysed)
            slots = [(plan, slot) for slot in objects.planter.slots(plan)]
        name = foreign[number % len(foreign)]
        alike = [pair for pair in slots if pair[1].isPlan() == (name[0] == "p")]
        if not alike:
            continue
        plan, slot = chance.choice(alike)
        refused = objects.refused(plan, slot, name[1:], analysed=analysed)
        fits += refused is not None
        if refused is False:
            through.append(f"{name[1:]} at {slot.name()}")
    assert not through, "\n".join(through)
    assert fits >= count * 2 / 3


def test_the_planter_finds_places_that_the_text_names(judge: Judge) -> None:
    """So that the tests above are about all places, not about a few."""
    text = "INSERT INTO alerts SELECT account, 'x' FROM event WINDOW w AS (PARTITION BY account)"
    found = {str(slot.name()) for slot in Objects(judge).planter.slots(judge.plans.statement(text))}
    assert {"InsertIntoStatement.query", "WithWindowDefinition.child", "Map1.value1"} <= found
    with pytest.raises(ParseException):
        judge.plans.statement("INSERT INTO")
