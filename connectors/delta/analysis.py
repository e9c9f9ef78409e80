"""What a statement reads, decided on the plan as resolved: the second verdict (G6, G27)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from connectors.delta.faults import SPARK_ERRORS, fault
from connectors.delta.gate import Locate, type_name
from connectors.delta.plans import Part, Plans, items, words
from engine.parameters import OLD
from rules.errors import InputError, Problem

_FOREIGN = words(  # classes of functions that are not Spark's own
    "ApplyFunctionExpression CallMethodViaReflection ExternalUserDefinedFunction PythonUDAF "
    "PythonUDF PythonUDTF ScalaAggregator ScalaUDAF ScalaUDF TryReflect TypedScalaAggregator "
    "V2Aggregator"
)
_OWN_PACKAGES = ("org.apache.spark.sql.catalyst.", "org.apache.spark.sql.delta.")
_CLOCKS = words(
    "CurrentBatchTimestamp CurrentDate CurrentTime CurrentTimestamp CurrentTimestampLike "
    "CurrentUser LocalTimestamp Now"
)
_AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
_ATTRIBUTE = "AttributeReference"
_ORDERED = words("AggregateExpression AnyValue CollectList CollectSet First Last ListAgg")
_WHOLE = words("Deduplicate Distinct Except Intersect Union")  # use all of their input
_FIXED = words("LocalRelation OneRowRelation Range View")

_HINTS = {
    "DELTA_UNSUPPORTED_SUBQUERY": "MERGE INTO the table USING the query, which may be a subquery",
    "MISSING_AGGREGATION": "a bare name is for key columns; max(..) or any_value(..) say which row",
    "UNRESOLVED_COLUMN": "event has the event types' columns and the engine's (semantics 5)",
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an analysed plan reads: columns of `event` (`old.x` for a field of the pre-image); and
    for a MERGE whether its source is the same whenever it is evaluated: it reads nothing but
    `event`."""

    columns: frozenset[str]
    fixed_source: bool


class Analysis:
    """Resolves in one session, in which `event` and the declared tables exist."""

    def __init__(self, plans: Plans, own: Collection[str]) -> None:
        self._plans = plans
        self._own = frozenset(name.lower() for name in own)  # names of `event`
        jvm: Any = plans.session._jvm
        self._hidden = jvm.org.apache.spark.sql.catalyst.plans.logical.Project.hiddenOutputTag()

    def statement(self, parsed: Any, locate: Locate) -> tuple[Any, Resolved]:
        """The analysed plan of an action or a query, and what it reads. Raises InputError."""
        try:
            plan = self._plans.resolve(parsed)
        except SPARK_ERRORS as error:
            raise unresolved(error, locate) from None
        parts = self.parts(plan, locate)
        merge = next((p.java for p in parts if p.kind == "MergeIntoCommand"), None)
        append = next((p.java for p in parts if p.kind == "AppendData"), None)
        output = items((plan if append is None else append.query()).output())
        if append is not None:
            self._check_width(len(output), len(items(append.table().output())), locate)
        columns = self.columns(parts, output)
        if any(p.kind == "UnresolvedStarExceptOrReplace" for p in self._plans.walk(parsed)):
            columns = frozenset(self._names(parts).values())  # it fails where one of them is gone
        return plan, Resolved(columns, merge is not None and self._fixed(merge.source()))

    def _check_width(self, given: int, taken: int, locate: Locate) -> None:
        """Delta says that there are too many columns only when it writes."""
        merged = self._plans.session.conf.get(_AUTO_MERGE, "false")
        if given > taken and str(merged).lower() != "true":
            message = f"the statement gives {given} columns, its target has {taken}"
            hint = "select as many columns as the target has, in its order, or INSERT .. BY NAME"
            raise InputError([Problem("sql-analysis", message, locate(0), hint)])

    def parts(self, plan: Any, locate: Locate) -> list[Part]:
        """All of an analysed plan. Raises InputError for what is not let in."""
        parts = list(self._plans.walk(plan, leaves=self._own))
        for part in parts:
            java = part.java
            if part.plan and part.kind == "LogicalRelation" and java.catalogTable().isEmpty():
                raise _refused("sql-path", "a relation without a name is read", locate)
            if not part.plan and (
                part.kind in _FOREIGN or not part.class_name.startswith(_OWN_PACKAGES)
            ):
                raise _refused("sql-function", f"the function {java} is not Spark's own", locate)
        return parts

    def columns(self, parts: list[Part], output: list[Any]) -> frozenset[str]:
        """Names of the columns of `event` that are read: any attribute above it in the plan, and
        what passes through to the result or to a set operation without being named."""
        names = self._names(parts)
        read = Counter(_numbers(output))
        fields: list[tuple[int, str]] = []  # of the pre-image
        for part in parts:
            java = part.java
            if part.kind == _ATTRIBUTE:
                read[java.exprId().id()] += 1
            elif part.kind in _WHOLE:
                for child in items(java.children()):
                    read.update(_numbers(items(child.output())))
            elif part.kind == "Project" and java.getTagValue(self._hidden).isDefined():
                # Spark's own, above JOIN .. USING: passes all columns on and names none
                bare = [e for e in items(java.projectList()) if type_name(e) == _ATTRIBUTE]
                read.subtract(_numbers(bare))
            elif not part.plan and self._plans.has_plan(part):
                read.update(_numbers(items(java.plan().output())))
            elif part.kind == "GetStructField" and type_name(java.child()) == _ATTRIBUTE:
                number = java.child().exprId().id()
                if names.get(number) == OLD:
                    field = java.childSchema().apply(java.ordinal()).name()
                    fields.append((number, str(field)))
        read.subtract(number for number, _ in fields)
        return frozenset(
            [name for number, name in names.items() if read[number] > 0]
            + [f"{names[n]}.{field}" for n, field in fields if read[n] <= 0]
        )

    def _names(self, parts: list[Part]) -> dict[int, str]:
        """The columns of `event` by the number that each has in a plan."""
        return {
            attribute.exprId().id(): str(attribute.name())
            for part in parts
            if part.kind == "View" and part.java.desc().identifier().table().lower() in self._own
            for attribute in items(part.java.output())
        }

    def _fixed(self, source: Any) -> bool:
        parts = list(self._plans.walk(source, leaves=self._own))
        leaves = {p.kind for p in parts if p.plan and items(p.java.children()) == []}
        return bool(source.deterministic()) and leaves <= _FIXED


def _numbers(attributes: Iterable[Any]) -> list[int]:
    """What Catalyst tells attributes apart by."""
    return [attribute.exprId().id() for attribute in attributes]


def changing(parts: Collection[Part]) -> str | None:
    """The first function found that gives another value another time (G25), as text. Those that
    only depend on the order of rows do not count: `event` has one."""
    for part in parts:
        java = part.java
        if part.plan or part.kind in _ORDERED:
            continue
        if part.kind in _CLOCKS or (
            not java.deterministic() and all(c.deterministic() for c in items(java.children()))
        ):
            return f"{java.prettyName()}(..)"
    return None


def unresolved(error: BaseException, locate: Locate, hint: str = "") -> InputError:
    """Spark's analysis error as a problem of the text."""
    found = fault(error)
    hint = hint or next((h for key, h in _HINTS.items() if found.condition.startswith(key)), "")
    place = locate(found.offset or 0)
    return InputError(
        [Problem("sql-analysis", f"[{found.condition}] {found.message}", place, hint)]
    )


def _refused(code: str, message: str, locate: Locate) -> InputError:
    hint = "declare the table under `tables:`, or use Spark's own functions"
    return InputError([Problem(code, message, locate(0), hint)])
