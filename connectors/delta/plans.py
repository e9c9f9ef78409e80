"""Catalyst plans through py4j: what a text is made of, as Spark understood it."""

from __future__ import annotations

import dataclasses
import json
import math
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import _to_seq
from pyspark.sql.types import DataType

_WALKER = Path(__file__).with_name("Walker.java")
_LITERALS = {  # by type name: how SQL says a value of it
    "byte": "{}Y",
    "short": "{}S",
    "long": "{}L",
    "float": "{}F",
    "decimal": "{}BD",
    "date": "DATE'{}'",
    "timestamp": "TIMESTAMP'{}'",
    "timestamp_ntz": "TIMESTAMP_NTZ'{}'",
}
_walkers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by JVM
_classes: WeakKeyDictionary[Any, dict[frozenset[str], frozenset[str]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One node: of a plan (`plan`), or of an expression in it.

    `owner` is the number of the node whose `field` holds it, -1 for the root; `start` and `stop`
    are its first and last character in the text, where Spark has kept them; `texts` are the plain
    values in each of its own fields.
    """

    number: int
    class_name: str  # qualified
    plan: bool
    owner: int
    field: str
    start: int | None
    stop: int | None
    texts: Mapping[str, Sequence[str]]
    _nodes: Any = dataclasses.field(repr=False)

    @property
    def kind(self) -> str:
        return self.class_name.rsplit(".", 1)[-1].removesuffix("$")

    @property
    def java(self) -> Any:
        """The node itself."""
        return self._nodes.node(self.number)

    def said(self, name: str) -> str:
        """The first plain value in a field, "" where there is none."""
        return next(iter(self.texts.get(name, ())), "")

    def flag(self, name: str) -> bool:
        return self.said(name) == "true"


@dataclass(frozen=True, slots=True)
class Parts:
    """All nodes of a plan, each before what it holds; `opaque` are the classes of the objects in
    their fields that are neither nodes nor values nor collections of these."""

    all: Sequence[Part]
    opaque: frozenset[str]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.all)

    def held(self, part: Part, name: str = "") -> list[Part]:
        """The nodes that a node holds, in all its fields or in one."""
        return [p for p in self.all if p.owner == part.number and name in ("", p.field)]

    def below(self, part: Part, name: str = "") -> list[Part]:
        """All nodes below one, in all its fields or in one."""
        inside: set[int] = set()
        for other in self.all[part.number + 1 :]:
            mine = other.owner == part.number and name in ("", other.field)
            if mine or other.owner in inside:
                inside.add(other.number)
        return [self.all[number] for number in sorted(inside)]


class Plans:
    """Parses, resolves and walks in one session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._java: Any = session._jsparkSession
        self._walker = _walker(session)

    def statement(self, text: str) -> Any:
        """The parsed plan; `pyspark.errors.ParseException` if it is none."""
        return self._walker.parse(self._java, text, False)

    def expression(self, text: str) -> Any:
        """The parsed expression and nothing after it; `ParseException` if it is none."""
        return self._walker.parse(self._java, text, True)

    def column(self, expression: Any) -> Column:
        """An expression as a column: exactly what was parsed, not its text again."""
        jvm: Any = self.session._jvm
        return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def resolve(self, plan: Any) -> Any:
        """The analysed plan. Nothing is run; `pyspark.errors.AnalysisException` names the fault."""
        jvm: Any = self.session._jvm
        skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        return self._java.sessionState().executePlan(plan, skip).analyzed()

    def bind(self, plan: Any, types: Mapping[str, DataType], values: Mapping[str, Any]) -> Any:
        """The parsed plan with constants of these types for its named parameters, null where
        `values` has none."""
        jvm: Any = self.session._jvm
        context = self.session.sparkContext
        constants = [self._constant(kind, values.get(name)) for name, kind in types.items()]
        return jvm.org.apache.spark.sql.catalyst.analysis.NameParameterizedQuery(
            plan, _to_seq(context, list(types)), _to_seq(context, constants)
        )

    def _constant(self, kind: DataType, value: Any) -> Any:
        """A literal of exactly this type: a number's would follow from its size otherwise."""
        jvm: Any = self.session._jvm
        sql = jvm.org.apache.spark.sql
        form = _LITERALS.get(kind.typeName())
        infinite = isinstance(value, float) and not math.isfinite(value)
        if value is None or form is None or infinite:
            java_type = sql.types.DataType.fromJson(kind.json())
            return sql.catalyst.expressions.Literal.create(value, java_type)
        return self.expression(form.format(value))

    def walk(self, root: Any, *, leaves: Collection[str] = ()) -> Parts:
        """Every node in any field of any node. Views are entered, but for the session's own that
        are called as in `leaves`."""
        nodes = self._walker.walk(root, " ".join(leaves))
        text = ""
        while more := nodes.json(len(text)):
            text += more
        found = json.loads(text)
        names = found["classes"]
        parts = [
            Part(number, names[of], plan, owner, held_by, start, stop, texts, nodes)
            for number, (of, plan, owner, held_by, start, stop, texts) in enumerate(found["nodes"])
        ]
        return Parts(parts, frozenset(found["others"]))

    def output(self, plan: Any) -> list[tuple[int, str, str]]:
        """The columns of a resolved plan: what Catalyst tells each apart by, its name, its type."""
        said = json.loads(self._walker.output(plan))
        return [(int(n), name, kind) for n, name, kind in zip(*[iter(said)] * 3, strict=True)]

    def replaced(self, plan: Any) -> Any:
        """An analysed plan with what Spark puts in the place of functions that are made of others,
        before it looks at texts that are cast to times."""
        jvm: Any = self.session._jvm
        return jvm.org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions.apply(plan)

    def classes(self, functions: frozenset[str]) -> frozenset[str]:
        """The classes that Spark's own registries have for functions of these names."""
        known = _classes.setdefault(self.session._jvm, {})
        if functions not in known:
            known[functions] = frozenset(json.loads(self._walker.classes(" ".join(functions))))
        return known[functions]


def _walker(session: SparkSession) -> Any:
    """Walker.java, compiled by the compiler that Spark has for its own generated code."""
    jvm: Any = session._jvm
    if jvm not in _walkers:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        # py4j remembers methods by the name of their class, so that no other may have the same.
        package = f"tidegate.w{uuid.uuid4().hex}"
        source = _WALKER.read_text(encoding="utf-8")
        compiler.cook(source.replace("package tidegate;", f"package {package};", 1))
        loaded = compiler.getClassLoader().loadClass(f"{package}.Walker")
        _walkers[jvm] = loaded.newInstance()
    return _walkers[jvm]


def items(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [sequence.apply(n) for n in range(sequence.length())]


def words(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


def expression(session: SparkSession, text: str) -> Column:
    """`text` as one expression, never pasted, under the session's own settings: what was judged.

    Raises `pyspark.errors.ParseException`.
    """
    plans = Plans(session)
    return plans.column(plans.expression(text))


def tried(session: SparkSession, text: str) -> Column:
    """The predicate as a boolean column: true; false, also where it is null; null where it raises.

    `text` is parsed as one expression, never pasted. Raises `pyspark.errors.ParseException`.
    """
    jvm: Any = session._jvm
    sql = jvm.org.apache.spark.sql
    expressions = sql.catalyst.expressions
    plans = Plans(session)
    predicate = plans.expression(text)
    boolean = sql.types.DataTypes.BooleanType
    truth, falsehood = (expressions.Literal.create(value, boolean) for value in (True, False))
    decided = expressions.TryEval(expressions.If(predicate, truth, falsehood))
    return plans.column(decided)
