"""Walks over Catalyst plans through py4j: what a text is made of, as Spark understood it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.classic.column import _to_seq
from pyspark.sql.types import DataType

_CATALYST = "org.apache.spark.sql.catalyst."
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


@dataclass(frozen=True, slots=True)
class Part:
    """One node of a plan (`plan`) or of an expression in it; `java` is the node itself."""

    java: Any
    plan: bool
    class_name: str  # qualified

    @property
    def kind(self) -> str:
        return self.class_name.rsplit(".", 1)[-1].removesuffix("$")


class Plans:
    """Parses, resolves and walks in one session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        jvm: Any = session._jvm
        self._state = session._jsparkSession.sessionState()
        self._skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._holder = loader.loadClass(f"{_CATALYST}expressions.PlanExpression")
        self._holds_plan: dict[str, bool] = {}

    def statement(self, text: str) -> Any:
        """The parsed plan; `pyspark.errors.ParseException` if it is none."""
        return self._state.sqlParser().parsePlan(text)

    def expression(self, text: str) -> Any:
        """The parsed expression and nothing after it; `ParseException` if it is none."""
        return self._state.sqlParser().parseExpression(text)

    def resolve(self, plan: Any) -> Any:
        """The analysed plan. Nothing is run; `pyspark.errors.AnalysisException` names the fault."""
        return self._state.executePlan(plan, self._skip).analyzed()

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

    def walk(self, root: Any, *, plan: bool = True, leaves: Collection[str] = ()) -> Iterator[Part]:
        """Every node, also those that Catalyst does not count as children: subqueries, common
        table expressions, what a time travel and an INSERT or a MERGE are about. Views are entered,
        but for those called as in `leaves`."""
        stack = [(root, plan)]
        while stack:
            java, is_plan = stack.pop()
            part = Part(java, is_plan, java.getClass().getName())
            yield part
            if part.kind == "View" and java.desc().identifier().table().lower() in leaves:
                continue
            stack += [(child, is_plan) for child in items(java.children())]
            if is_plan:
                stack += [(child, False) for child in items(java.expressions())]
                stack += [(child, True) for child in items(java.innerChildren())]
                stack += [(getattr(java, name)(), True) for name in _HIDDEN.get(part.kind, ())]
            elif self.has_plan(part):
                stack.append((java.plan(), True))

    def has_plan(self, part: Part) -> bool:
        """Whether an expression holds a plan: a subquery."""
        known = self._holds_plan.get(part.class_name)
        if known is None:
            known = self._holds_plan[part.class_name] = self._holder.isInstance(part.java)
        return known


_HIDDEN = {
    "InsertIntoStatement": ("table",),
    "RelationTimeTravel": ("relation",),
    "MergeIntoCommand": ("source", "target"),
    "AppendData": ("table",),
}


def items(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [sequence.apply(n) for n in range(sequence.length())]


def offset(java: Any) -> int | None:
    """Where in its text a node begins, if Spark has kept that."""
    start = java.origin().startIndex()
    return int(start.get()) if start.isDefined() else None


def words(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())
