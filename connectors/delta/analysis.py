"""The second verdict on a SQL text, on its analysed plan: whether it is let in, and which columns
and tables it reads (G6, G27). The first verdict is `connectors.delta.gate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from tidegate.connectors.delta import nodes
from tidegate.connectors.delta.faults import SPARK_ERRORS, fault
from tidegate.connectors.delta.functions import FUNCTIONS, TABLE_FUNCTIONS
from tidegate.connectors.delta.gate import Locate, Verdict, full_name
from tidegate.connectors.delta.plans import Part, Parts, Plans, words
from tidegate.engine.core.parameters import ENGINE_COLUMNS, OLD
from tidegate.rules.errors import InputError, Problem

_AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
_ATTRIBUTE = "AttributeReference"
_OF_FILES = "__file_source_metadata_col"  # the mark of `_metadata`, whatever name that column has
_WHOLE = words("Deduplicate Distinct Except Intersect Union")  # they read every column below them
_FIXED = words("LocalRelation OneRowRelation Range View")  # leaves that never change their rows
_NAMED = {  # node that reads a relation -> its fields that hold the relation's name
    "DataSourceV2Relation": ("catalog", "identifier"),
    "HiveTableRelation": ("tableMeta",),
    "LogicalRelation": ("catalogTable",),
    "View": ("desc",),
}
# Delta adds these checks where a CHAR or VARCHAR column is written or read.
_CHECKED_LENGTH = "org.apache.spark.sql.catalyst.util.CharVarcharCodegenUtils"

_HINTS = {
    "DELTA_UNSUPPORTED_SUBQUERY": "MERGE INTO the table USING the query, which may be a subquery",
    "MISSING_AGGREGATION": "a bare name is for key columns; max(..) or any_value(..) say which row",
    "UNRESOLVED_COLUMN": "event has its event types' columns (an update's row before is `old`) "
    f"and {', '.join(ENGINE_COLUMNS)}",
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an analysed plan reads and returns.

    `columns`: the columns of `event` that it reads; `old.x` is the field x of the pre-image.
    `fixed_source`: for a MERGE, its source gives the same rows each time it is evaluated, for it
    reads nothing but `event`. `output`: name and type of each column that a query returns.
    `own_rows`: an INSERT of what the text and the rule's own relations give; it reads no other.
    """

    columns: frozenset[str]
    fixed_source: bool
    output: tuple[tuple[str, str], ...]
    own_rows: bool = False


class Analysis:
    """Analyses plans in one session, in which `event` and the declared tables exist.

    `own`: the names under which `event` can be read. `known`: full names of the relations that may
    be read. `functions`: those that the operator's policy adds to the list.
    """

    def __init__(
        self,
        plans: Plans,
        own: Collection[str],
        known: Collection[tuple[str, ...]] = (),
        functions: Collection[str] = (),
    ) -> None:
        self._plans = plans
        self._own = frozenset(name.lower() for name in own)
        self._known = frozenset(full_name(parts) for parts in known)
        self._functions = frozenset(name.lower().rsplit(".", 1)[-1] for name in functions)
        self._called = plans.classes(FUNCTIONS | TABLE_FUNCTIONS)

    def statement(self, verdict: Verdict, parsed: Any, locate: Locate, hint: str = "") -> Resolved:
        """What an action or a query reads. `parsed`: its plan, with its parameters bound. Raises
        InputError; `hint` goes with a name that Spark cannot resolve."""
        try:
            plan = self._plans.resolve(parsed)
        except SPARK_ERRORS as error:
            raise unresolved(error, locate, hint) from None
        parts = self.parts(plan, locate)
        merge = next((p for p in parts if p.kind == "MergeIntoCommand"), None)
        append = next((p for p in parts if p.kind == "AppendData"), None)
        own_rows = False
        if append is not None:
            (query,), (table,) = parts.held(append, "query"), parts.held(append, "table")
            output = self._plans.output(query.java)
            self._check_width(len(output), len(self._plans.output(table.java)), locate)
            named = [p for p in parts.below(append, "query") if p.kind in _NAMED]
            own_rows = all(map(self._is_own, named))
        else:
            output = self._plans.output(plan)
        columns = self.columns(parts, parts, {number for number, _, _ in output})
        if verdict.all_but_some:
            columns = frozenset(self._names(parts).values())  # it fails where one of them is gone
        fixed = merge is not None and self._fixed(parts, merge)
        given = tuple((name, kind) for _, name, kind in output)
        return Resolved(columns, fixed, given, own_rows)

    def _check_width(self, given: int, taken: int, locate: Locate) -> None:
        """Refuse more columns than the target has: Delta would refuse them only at the write."""
        merged = self._plans.session.conf.get(_AUTO_MERGE, "false")
        if given > taken and str(merged).lower() != "true":
            message = f"the statement gives {given} columns, its target has {taken}"
            hint = "select as many columns as the target has, in its order, or INSERT .. BY NAME"
            raise InputError([Problem("sql-analysis", message, locate(0), hint)])

    def parts(
        self, plan: Any, locate: Locate, plans: Collection[str] = nodes.ANALYSED_PLANS
    ) -> Parts:
        """All nodes of an analysed plan. Raises InputError for a plan node that is not in `plans`,
        for a relation that is not known, and for an expression that is not let in."""
        parts = self._plans.walk(plan, leaves=self._own)
        in_views: set[int] = set()
        for part in parts:
            if part.owner in in_views or (part.owner >= 0 and parts.all[part.owner].kind == "View"):
                in_views.add(part.number)
            if not part.plan:
                self._check_expression(part, locate)
            elif part.class_name not in plans:
                hint = "an action or query is made of tables, joins, groups and subqueries"
                message = f"{nodes.said(part.kind)} is refused"
                raise InputError([Problem("sql-kind", message, locate(0), hint)])
            elif part.kind in _NAMED and not self._is_own(part):
                self._check_relation(part, locate, in_view=part.number in in_views)
        return parts

    def _check_relation(self, part: Part, locate: Locate, *, in_view: bool) -> None:
        names = [text for name in _NAMED[part.kind] for text in part.texts.get(name, ())]
        if len(names) < 2 or not names[-1]:
            hint = "declare the table under `tables:`"
            message = "a relation without a name is read"
            raise InputError([Problem("sql-path", message, locate(0), hint)])
        if not in_view and full_name(filter(None, names)) not in self._known:
            said = ".".join(filter(None, names))
            message = f"{said} is neither a declared table nor listed under `reads:`"
            hint = "list it with its catalog and database, as it is said here"
            raise InputError([Problem("sql-table", message, locate(0), hint)])

    def _check_expression(self, part: Part, locate: Locate) -> None:
        if part.kind == _ATTRIBUTE and _is_of_files(part):
            hint = "OPTIMIZE moves a row to another file: read the row's own columns"
            message = "_metadata, the column of file names, is refused"
            raise InputError([Problem("sql-column", message, locate(0), hint)])
        if part.class_name in nodes.ANALYSED_EXPRESSIONS or part.class_name in self._called:
            return
        if part.kind == "StaticInvoke" and part.said("staticObject") == _CHECKED_LENGTH:
            return
        name = _called(part)
        if name.lower() not in self._functions:
            hint = "use Spark's functions of their arguments, or have the operator allow this one"
            message = f"the function {name}(..) is refused"
            raise InputError([Problem("sql-function", message, locate(0), hint)])

    def columns(
        self, parts: Parts, used: Iterable[Part], output: Collection[int] = ()
    ) -> frozenset[str]:
        """Names of the columns of `event` that the nodes in `used` read.

        An attribute reads its column. A set operation and a subquery read all columns below them,
        named or not. `output`: numbers of the columns that the text returns, which are read too.
        """
        names = self._names(parts)
        read = Counter(output)
        fields: list[tuple[int, str]] = []  # of the pre-image
        for part in used:
            if part.kind == _ATTRIBUTE:
                read[_number(part)] += 1
            elif part.kind in _WHOLE:
                for child in parts.held(part):
                    read.update(self._numbers(child))
            elif part.kind == "Project" and part.flag("hiddenOutput"):
                # Spark adds it above JOIN .. USING. It lists all columns, but reads none.
                passed = parts.held(part, "projectList")
                read.subtract(_number(p) for p in passed if p.kind == _ATTRIBUTE)
            elif part.plan and part.owner >= 0 and not parts.all[part.owner].plan:
                read.update(self._numbers(part))  # a subquery
            elif part.kind == "GetStructField":
                (child,) = parts.held(part, "child")
                if child.kind == _ATTRIBUTE and names.get(_number(child)) == OLD:
                    java = part.java
                    field = java.childSchema().apply(java.ordinal()).name()
                    fields.append((_number(child), str(field)))
        read.subtract(number for number, _ in fields)
        return frozenset(
            [name for number, name in names.items() if read[number] > 0]
            + [f"{names[n]}.{field}" for n, field in fields if read[n] <= 0]
        )

    def _numbers(self, part: Part) -> list[int]:
        """Catalyst's number of each column that a plan node gives."""
        return [number for number, _, _ in self._plans.output(part.java)] if part.plan else []

    def _names(self, parts: Parts) -> dict[int, str]:
        """Catalyst's number of each column of `event` in a plan -> its name."""
        return {
            number: name
            for part in parts
            if self._is_own(part)
            for number, name, _ in self._plans.output(part.java)
        }

    def _is_own(self, part: Part) -> bool:
        """Whether a node is `event`, which is a temporary view of this session."""
        if part.kind != "View" or not part.flag("isTempView"):
            return False
        *space, name = part.texts.get("desc", [""])
        return not any(space) and name.lower() in self._own

    def _fixed(self, parts: Parts, merge: Part) -> bool:
        """Whether the source of a MERGE gives the same rows each time."""
        inside = parts.below(merge, "source")
        owners = {p.owner for p in inside if p.plan}
        leaves = {p.kind for p in inside if p.plan and p.number not in owners}
        return leaves <= _FIXED and bool(inside[0].java.deterministic())


def _is_of_files(attribute: Part) -> bool:
    """Whether an attribute is `_metadata`, the hidden column about a row's file. Spark puts more
    underscores before the name where the table has a column called so."""
    named = attribute.said("name").lstrip("_") == "metadata"
    return named and bool(attribute.java.metadata().contains(_OF_FILES))


def _called(part: Part) -> str:
    """The name of a function; the kind of its node where it has no name."""
    try:
        return str(part.java.prettyName())
    except SPARK_ERRORS:
        return part.kind


def _number(attribute: Part) -> int:
    return int(attribute.said("exprId"))


def unresolved(error: BaseException, locate: Locate, hint: str = "") -> InputError:
    """Spark's analysis error as a problem at its place in the text."""
    found = fault(error)
    hint = hint or next((h for key, h in _HINTS.items() if found.condition.startswith(key)), "")
    place = locate(found.offset or 0)
    return InputError(
        [Problem("sql-analysis", f"[{found.condition}] {found.message}", place, hint)]
    )
