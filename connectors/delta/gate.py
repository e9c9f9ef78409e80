"""What SQL is let in, decided on the plan as parsed (G19, G25, G27).

Deny by default: a statement is of a listed kind, made of listed plan nodes, writes one declared
table, and reads relations by name. The verdict on the analysed plan is `connectors.delta.analysis`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from pyspark.errors import ParseException

from connectors.delta.plans import Part, Plans, items, offset, words
from rules.errors import InputError, Place, Problem

Locate = Callable[[int], Place]  # the place of the character at an offset of the text

KINDS = words("InsertIntoStatement MergeIntoTable UpdateTable")

_NODES = words(
    "Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LocalLimit "
    "LocalRelation Offset OneRowRelation PipeOperator Pivot Project RelationTimeTravel Repartition "
    "RepartitionByExpression Sample Sort SubqueryAlias Union UnresolvedHaving UnresolvedHint "
    "UnresolvedInlineTable UnresolvedQualify UnresolvedRelation UnresolvedSubqueryColumnAliases "
    "UnresolvedTVFAliases UnresolvedTableValuedFunction UnresolvedWith Unpivot Window "
    "WithWindowDefinition"
)
_SUBQUERIES = words(
    "Exists FunctionTableSubqueryArgumentExpression InSubquery LateralSubquery ListQuery "
    "ScalarSubquery"
)
_SAID = {  # how a refused node is called in a message
    "CompoundBody": "SQL scripting",
    "ScriptTransformation": "TRANSFORM .. USING",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER(..)",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(..)",
    "NamedStreamingRelation": "STREAM",
    "OverwriteByExpression": "INSERT .. REPLACE WHERE",
    "Project": "SELECT",
    "RelationTimeTravel": "VERSION AS OF",
    "SetCommand": "SET",
}
_FUNCTIONS_REFUSED = words(
    "reflect java_method try_reflect from_protobuf to_protobuf"  # call Java, read files
)
_TABLE_FUNCTIONS = words(
    "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack "
    "variant_explode variant_explode_outer"
)
_SOURCES = words(  # short names under which Spark reads a path as a relation
    "avro binaryfile csv delta image jdbc json kafka libsvm orc parquet rate socket statestore "
    "text xml"
)
_KINDS_HINT = "an action is one INSERT INTO, MERGE or UPDATE of a declared table"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a statement is: its parsed plan, the declared table it writes (None for a query), and
    the unqualified names that it reads, as written."""

    plan: Any
    target: str | None
    reads: frozenset[str]


class Gate:
    """The verdicts for one rulebook; `tables` are its declared names."""

    def __init__(self, plans: Plans, tables: Collection[str]) -> None:
        self._plans = plans
        self._tables = {name.lower(): name for name in tables}

    def action(
        self, text: str, locate: Locate, parameters: Collection[str] = (), rule: str = ""
    ) -> Verdict:
        """An action: INSERT INTO, MERGE or UPDATE of a declared table, which may read others by
        their full name. `parameters` are the named ones it may use."""
        plan = self._parse(text, locate, self._plans.statement)
        statement = plan
        while type_name(statement) == "UnresolvedWith":
            statement = statement.child()
        kind = type_name(statement)
        if kind == "DeleteFromTable":
            raise _refused("sql-delete", *_delete_as_merge(text, statement, self._plans), locate(0))
        if kind not in KINDS:
            raise _refused("sql-kind", f"{_said(kind)} is no action", _KINDS_HINT, locate(0))
        target = self._target(statement, kind, locate)
        reads = self._walk(plan, locate, parameters, {*_NODES, kind}, rule, declared_only=False)
        return Verdict(plan, target, reads)

    def query(self, text: str, locate: Locate, rule: str = "") -> Verdict:
        """A condition's query: reads declared tables and `event`, by unqualified names (G31)."""
        plan = self._parse(text, locate, self._plans.statement)
        kind = type_name(plan)
        if kind not in _NODES:
            hint = "a condition is one SELECT that returns the firing_ids that hold"
            raise _refused("sql-kind", f"{_said(kind)} is no condition", hint, locate(0))
        nodes = _NODES - {"RelationTimeTravel"}  # the bucket says which version is seen
        return Verdict(plan, None, self._walk(plan, locate, (), nodes, rule, declared_only=True))

    def expression(self, text: str, locate: Locate) -> Any:
        """`where`, `if` and fields: one expression without subqueries and parameters (G25, G27).
        Returns it as parsed."""
        expression = self._parse(text, locate, self._plans.expression)
        for part in self._plans.walk(expression, plan=False):
            if part.plan or part.kind in _SUBQUERIES:
                hint = "an expression sees one firing or row; use if: {sql: SELECT ..}"
                raise _refused("sql-subquery", "a subquery is refused here", hint, locate(0))
            if part.kind == "Alias" and part.java.equals(expression):
                message = f"an expression, not a column: AS {part.java.name()}"
                raise _refused("sql-alias", message, "leave the name out", locate(0))
            self._check_expression(part, locate, ())
        return expression

    def _parse(self, text: str, locate: Locate, parse: Callable[[str], Any]) -> Any:
        try:
            return parse(text)
        except ParseException as error:
            message, at = _said_by_spark(error, text)
            hint = "one statement an sql item" if ";" in text[: at + 1] else ""
            raise _refused("sql-syntax", message, hint, locate(at)) from None

    def _target(self, statement: Any, kind: str, locate: Locate) -> str:
        if kind == "InsertIntoStatement":
            if statement.overwrite():
                hint = "INSERT INTO appends; MERGE or UPDATE changes rows: each leaves a marker"
                raise _refused("sql-kind", "INSERT OVERWRITE is no action", hint, locate(0))
            relation = statement.table()
        else:
            relation = statement.targetTable() if kind == "MergeIntoTable" else statement.table()
        while type_name(relation) == "SubqueryAlias":
            relation = relation.child()
        if type_name(relation) != "UnresolvedRelation":
            message = f"{_said(type_name(relation))} is no target"
            raise _refused("sql-target", message, _KINDS_HINT, locate(0))
        at = locate(offset(relation) or 0)
        options = set(relation.options().asCaseSensitiveMap().keySet())
        if options - {"__required_write_privileges__"}:
            message = "write options are refused: they could displace the marker"
            raise _refused("sql-options", message, "leave WITH (..) out", at)
        parts = items(relation.multipartIdentifier())
        if len(parts) != 1 or parts[0].lower() not in self._tables:
            message = f"{'.'.join(parts)} is not a declared table, so no action may write it"
            raise _refused("sql-target", message, self._meant(parts[-1], ()), at)
        return self._tables[parts[0].lower()]

    def _walk(
        self,
        plan: Any,
        locate: Locate,
        parameters: Collection[str],
        nodes: Collection[str],
        rule: str,
        *,
        declared_only: bool,
    ) -> frozenset[str]:
        own = {"event", f"p_{rule}".lower()}
        parts = list(self._plans.walk(plan))
        named = {
            str(relation._1()).lower()
            for part in parts
            if part.kind == "UnresolvedWith"
            for relation in items(part.java.cteRelations())
        }
        if hidden := named & self._tables.keys():
            message = f"WITH {min(hidden)} hides the declared table of that name"
            raise _refused("sql-hidden-table", message, "give it another name", locate(0))
        reads = set()
        for part in parts:
            if not part.plan:
                self._check_expression(part, locate, parameters)
            elif part.kind not in nodes:
                message = f"{_said(part.kind)} is refused"
                raise _refused("sql-kind", message, _KINDS_HINT, self._at(part, locate))
            elif part.kind == "UnresolvedRelation":
                reads |= self._check_relation(part, locate, named, own, declared_only)
            elif part.kind == "UnresolvedTableValuedFunction":
                name = ".".join(items(part.java.name())).lower()
                if name not in _TABLE_FUNCTIONS:
                    message = f"the table function {name}(..) is refused"
                    hint = f"let in are {', '.join(sorted(_TABLE_FUNCTIONS))}"
                    raise _refused("sql-function", message, hint, self._at(part, locate))
        return frozenset(reads)

    def _check_relation(
        self,
        part: Part,
        locate: Locate,
        named: Collection[str],
        own: Collection[str],
        declared_only: bool,
    ) -> set[str]:
        names = items(part.java.multipartIdentifier())
        text = ".".join(names)
        at = self._at(part, locate)
        if len(names) == 1:
            name = names[0].lower()
            if name in named or name in own:
                return set()
            if name not in self._tables:
                message = f"{text} is not a declared table"
                raise _refused("sql-table", message, self._meant(name, own), at)
            return {self._tables[name]}
        if any(mark in text for mark in "/\\:") or names[0].lower() in _SOURCES:
            message = f"`{text}` reads a path; tables are read by name"
            raise _refused("sql-path", message, "declare it under `tables:` with its path", at)
        if declared_only:
            message = f"a condition names declared tables only, unqualified; {text} is qualified"
            hint = "declare it under `tables:`; the bucket pins its version then (G31)"
            raise _refused("sql-table", message, hint, at)
        return set()

    def _check_expression(self, part: Part, locate: Locate, parameters: Collection[str]) -> None:
        kind, java = part.kind, part.java
        if kind in _SAID:
            raise _refused("sql-kind", f"{_said(kind)} is refused", "", self._at(part, locate))
        if kind == "UnresolvedFunction":
            names = items(java.nameParts())
            if names[-1].lower() in _FUNCTIONS_REFUSED or len(names) > 2:
                message = f"the function {'.'.join(names)}(..) is refused"
                hint = "Spark's own functions are let in, but not those that call or read outside"
                raise _refused("sql-function", message, hint, self._at(part, locate))
        elif kind == "PosParameter" or (kind == "NamedParameter" and java.name() not in parameters):
            said = "?" if kind == "PosParameter" else f":{java.name()}"
            hint = (
                f"known are {', '.join(':' + name for name in parameters)}"
                if parameters
                else "parameters are for `for_each: firing`; else read the columns of event"
            )
            message = f"no parameter {said} here"
            raise _refused("sql-parameter", message, hint, self._at(part, locate))

    def _at(self, part: Part, locate: Locate) -> Place:
        return locate(offset(part.java) or 0)

    def _meant(self, name: str, own: Collection[str]) -> str:
        close = difflib.get_close_matches(name.lower(), [*self._tables, *own], 1)
        if close:
            return f"did you mean {self._tables.get(close[0], close[0])}?"
        return f"declared are {', '.join(self._tables.values()) or 'none'}"


def type_name(java: Any) -> str:
    """The simple class name of a node."""
    return str(java.getClass().getSimpleName()).removesuffix("$")


def _said(kind: str) -> str:
    if kind in _SAID:
        return _SAID[kind]
    words = "".join(f" {c}" if c.isupper() else c for c in kind.removeprefix("Unresolved"))
    return words.strip().upper()


def _refused(code: str, message: str, hint: str, place: Place) -> InputError:
    return InputError([Problem(code, message, place, hint)])


def _said_by_spark(error: ParseException, text: str) -> tuple[str, int]:
    """The first line of Spark's message, and the offset that it names."""
    said = str(error)
    head = said.split("== SQL")[0].strip().removesuffix(")")
    head, _, position = head.rpartition("(line ")
    line, _, column = position.partition(", pos ")
    lines = text.splitlines(keepends=True)
    if not (line.isdigit() and column.isdigit()):
        return (said.splitlines() or ["malformed SQL"])[0], 0
    at = sum(len(before) for before in lines[: int(line) - 1]) + int(column)
    message = head.split(" SQLSTATE")[0].strip()
    return message, min(at, len(text))


def _delete_as_merge(text: str, statement: Any, plans: Plans) -> tuple[str, str]:
    """The MERGE that does what a DELETE says, and leaves a marker even if it deletes nothing."""
    relation, alias = statement.table(), ""
    if type_name(relation) == "SubqueryAlias":
        alias = str(relation.alias())
        relation = relation.child()
    table = ".".join(items(relation.multipartIdentifier()))
    name = alias or table
    rest = text[relation.origin().stopIndex().get() + 1 :]
    where = re.split(r"\bwhere\b", rest, maxsplit=1, flags=re.IGNORECASE)[1:]
    condition = where[0].strip().rstrip(";").rstrip() if where else "true"
    within = re.fullmatch(r"([\w.`]+)\s+in\s*\((.*)\)", condition, re.IGNORECASE | re.DOTALL)
    if type_name(statement.condition()) == "InSubquery" and within:
        column = within[1] if "." in within[1] else f"{name}.{within[1]}"
        source = f"(SELECT DISTINCT * FROM ({within[2].strip()}) AS s(doomed)) AS d"  # noqa: S608
        on = f"{column} = d.doomed"
    elif any(part.kind in _SUBQUERIES for part in plans.walk(statement)):
        source, on = "(<a query of the rows to delete>) AS d", "<a row of d is the target's>"
    else:
        source, on = "(SELECT 1) AS one", condition
    message = "DELETE is refused: one that deletes nothing leaves no marker and could be repeated"
    target = f"{table} AS {alias}" if alias else table
    return message, f"write: MERGE INTO {target} USING {source} ON {on} WHEN MATCHED THEN DELETE"
