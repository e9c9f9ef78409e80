"""Catalyst plans through py4j: parse a text, analyse it, list the nodes of its plan."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import _to_seq
from pyspark.sql.types import DataType

from tidegate.connectors.delta.java_classes import compiled, java_class

_CATALYST = "org.apache.spark.sql.catalyst"
_LITERALS = {  # type name -> how SQL writes a value of that type
    "byte": "{}Y",
    "short": "{}S",
    "long": "{}L",
    "float": "{}F",
    "decimal": "{}BD",
    "date": "DATE'{}'",
    "timestamp": "TIMESTAMP'{}'",
    "timestamp_ntz": "TIMESTAMP_NTZ'{}'",
}
_classes: WeakKeyDictionary[Any, dict[frozenset[str], frozenset[str]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One node of a plan, or of an expression in a plan.

    plan: whether it is a plan node. owner: number of the node whose `field` holds it; -1: it is the
    root. start, stop: offsets of its first and last character in the text, where Spark keeps them.
    texts: the plain values in its own fields, by field.
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
        """The first plain value in a field; "" where there is none."""
        return next(iter(self.texts.get(name, ())), "")

    def flag(self, name: str) -> bool:
        return self.said(name) == "true"


@dataclass(frozen=True, slots=True)
class Parts:
    """All nodes of a plan; each comes before the nodes that it holds. `opaque`: the classes of
    objects in their fields that are neither nodes, nor values, nor collections of these."""

    all: Sequence[Part]
    opaque: frozenset[str]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.all)

    def held(self, part: Part, name: str = "") -> list[Part]:
        """The nodes that a node holds, in one field or in all."""
        return [p for p in self.all if p.owner == part.number and name in ("", p.field)]

    def below(self, part: Part, name: str = "") -> list[Part]:
        """All nodes below a node, in one field or in all."""
        inside: set[int] = set()
        for other in self.all[part.number + 1 :]:
            mine = other.owner == part.number and name in ("", other.field)
            if mine or other.owner in inside:
                inside.add(other.number)
        return [self.all[number] for number in sorted(inside)]


class Plans:
    """Parses texts, analyses plans and lists their nodes, in one session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._java: Any = session._jsparkSession
        self._walker = compiled(session, "Walker")

    def statement(self, text: str) -> Any:
        """The parsed plan; `pyspark.errors.ParseException` if it is none."""
        return self._walker.parse(self._java, text, False)

    def expression(self, text: str) -> Any:
        """The parsed expression and nothing after it; `ParseException` if it is none."""
        return self._walker.parse(self._java, text, True)

    def column(self, expression: Any) -> Column:
        """A parsed expression as a column. Its text is not parsed again."""
        utils = java_class(self.session, "org.apache.spark.sql.classic.ExpressionUtils")
        return Column(utils.column(expression))

    def resolve(self, plan: Any) -> Any:
        """The analysed plan. Nothing is run; `pyspark.errors.AnalysisException` names the fault."""
        mode = java_class(self.session, "org.apache.spark.sql.execution.CommandExecutionMode")
        return self._java.sessionState().executePlan(plan, mode.SKIP()).analyzed()

    def bind(self, plan: Any, types: Mapping[str, DataType], values: Mapping[str, Any]) -> Any:
        """The parsed plan with constants of these types in place of its named parameters. One that
        `values` lacks is null."""
        context = self.session.sparkContext
        constants = [self._constant(kind, values.get(name)) for name, kind in types.items()]
        return java_class(self.session, f"{_CATALYST}.analysis.NameParameterizedQuery")(
            plan, _to_seq(context, list(types)), _to_seq(context, constants)
        )

    def _constant(self, kind: DataType, value: Any) -> Any:
        """A literal of exactly this type. Plain digits would get a type by their size."""
        form = _LITERALS.get(kind.typeName())
        infinite = isinstance(value, float) and not math.isfinite(value)
        if value is None or form is None or infinite:
            types = java_class(self.session, "org.apache.spark.sql.types.DataType")
            literal = java_class(self.session, f"{_CATALYST}.expressions.Literal")
            return literal.create(value, types.fromJson(kind.json()))
        return self.expression(form.format(value))

    def walk(self, root: Any, *, leaves: Collection[str] = ()) -> Parts:
        """Every node in any field of any node. Views are entered, except the session's own views
        with a name in `leaves`."""
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
        """The columns of an analysed plan: Catalyst's number, name and type of each."""
        said = json.loads(self._walker.output(plan))
        return [(int(n), name, kind) for n, name, kind in zip(*[iter(said)] * 3, strict=True)]

    def replaced(self, plan: Any) -> Any:
        """An analysed plan in which Spark has replaced functions that are made of others. Example:
        to_date(x) becomes a cast of x."""
        return java_class(self.session, f"{_CATALYST}.optimizer.ReplaceExpressions").apply(plan)

    def classes(self, functions: frozenset[str]) -> frozenset[str]:
        """The classes of functions with these names, by Spark's own registries."""
        known = _classes.setdefault(self.session._jvm, {})
        if functions not in known:
            known[functions] = frozenset(json.loads(self._walker.classes(" ".join(functions))))
        return known[functions]


def words(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


def expression(session: SparkSession, text: str) -> Column:
    """A text as a column, parsed as one expression under the session's own settings, as the gate
    parses it. Raises `pyspark.errors.ParseException`."""
    plans = Plans(session)
    return plans.column(plans.expression(text))


def tried(session: SparkSession, text: str) -> Column:
    """A predicate as a boolean column: true where it holds, false where it does not or is null,
    null where it raises. It is parsed as one expression. Raises `pyspark.errors.ParseException`.
    """
    plans = Plans(session)
    predicate = plans.expression(text)
    boolean = java_class(session, "org.apache.spark.sql.types.DataTypes").BooleanType
    literals = java_class(session, f"{_CATALYST}.expressions.Literal")
    ifs = java_class(session, f"{_CATALYST}.expressions.If")
    truth, falsehood = (literals.create(value, boolean) for value in (True, False))
    tries = java_class(session, f"{_CATALYST}.expressions.TryEval")
    decided = tries(ifs(predicate, truth, falsehood))
    return plans.column(decided)
