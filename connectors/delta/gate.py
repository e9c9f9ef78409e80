"""The first verdict on a SQL text, on its parsed plan: whether it is let in (G19, G25, G27).

What is not listed is refused. A statement is let in if it is of a listed kind, consists of listed
nodes and functions, writes one declared table, and reads declared relations by name. The second
verdict, on the analysed plan, is `connectors.delta.analysis`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException

from tidegate.connectors.delta import nodes
from tidegate.connectors.delta.faults import parse_error
from tidegate.connectors.delta.functions import FUNCTIONS, TABLE_FUNCTIONS, moment_written
from tidegate.connectors.delta.plans import Part, Parts, Plans, words
from tidegate.rules.errors import InputError, Place, Problem, did_you_mean, nearest
from tidegate.rules.sql.deletes import MESSAGE, delete_as_merge
from tidegate.rules.sql.statement import functions

Locate = Callable[[int], Place]  # the place of the character at an offset of the text

CATALOG = "spark_catalog"
_SOURCES = words(  # short names under which Spark reads a path as a relation
    "avro binaryfile csv delta image jdbc json kafka libsvm orc parquet rate socket statestore "
    "text xml"
)
_PRIVILEGES = "__required_write_privileges__"  # an option that Spark itself sets on the target
_KINDS_HINT = "an action is one INSERT INTO, MERGE or UPDATE of a declared table"
_KIND_HINTS = {"NamePlaceholder": "name the columns: struct(account_id, amount)"}
_TABLE_HINT = "use the names under `tables:`"
_CALLED = {  # node that calls a function -> its field that holds the function's name
    "UnresolvedFunction": "nameParts",
    "UnresolvedGenerator": "name",
    "UnresolvedTableValuedFunction": "name",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a statement is.

    plan, kind: its parsed plan, and the class of its root. target: the declared table that it
    writes, None for a query. reads: the declared tables that it names. all_but_some: it holds `*
    EXCEPT`. transitions: the transition tables that it reads. unmarked: its commit has no marker.
    """

    plan: Any
    kind: str
    target: str | None
    reads: frozenset[str]
    all_but_some: bool
    transitions: frozenset[str] = frozenset()
    unmarked: bool = False


class Gate:
    """The verdicts for one rulebook.

    `tables`: its declared tables. `reads`: full names of further tables that its actions may read.
    `functions`: those that the operator's policy adds to the list. `unmarked`: the kinds of
    `engine.core.policy.UNMARKED` that the policy lets rules run.
    """

    def __init__(
        self,
        plans: Plans,
        tables: Collection[str],
        reads: Collection[tuple[str, ...]] = (),
        functions: Collection[str] = (),
        unmarked: Collection[str] = (),
    ) -> None:
        self._plans = plans
        self._tables = {name.lower(): name for name in tables}
        self._reads = {full_name(parts) for parts in reads}
        self._functions = frozenset(name.lower() for name in functions)
        self._unmarked = frozenset(unmarked)

    def action(
        self,
        text: str,
        locate: Locate,
        parameters: Collection[str] = (),
        rule: str = "",
        transitions: Collection[str] = (),
        *,
        at_least_once: bool = False,
    ) -> Verdict:
        """The verdict on an action: INSERT INTO, MERGE or UPDATE of a declared table.

        `parameters`: the named parameters that it may use. `transitions`: the transition tables of
        its rule; a declared table of the same name comes first. `at_least_once`: statements without
        a marker are let in, too, as far as the policy lists them.
        """
        plan, parts = self._parse(text, locate, self._plans.statement)
        statement = parts.all[0]
        while statement.kind == "UnresolvedWith":
            (statement,) = parts.held(statement, "child")
        unmarked = nodes.unmarked(statement)
        if unmarked is not None and at_least_once:
            self._check_allowed(unmarked, locate)
        elif statement.kind == "DeleteFromTable":
            raise _refused("sql-delete", MESSAGE, delete_as_merge(text), locate(0))
        elif unmarked is not None:
            hint = "INSERT INTO appends; MERGE or UPDATE changes rows: each leaves a marker"
            raise _refused("sql-kind", "INSERT OVERWRITE is no action", hint, locate(0))
        elif statement.class_name not in nodes.STATEMENTS:
            message = f"{nodes.said(statement.kind)} is no action"
            raise _refused("sql-kind", message, _KINDS_HINT, locate(0))
        target, relation = self._target(statement, parts, locate)
        walk = _Walk(locate, parameters, self._own(rule, transitions), declared_only=False)
        held = [p for p in parts.held(statement) if p.texts == relation.texts]  # a MERGE has two
        written = {statement.number, relation.number, *(p.number for p in held)}
        reads, own = self._walk(parts, walk, written)
        read = frozenset(transitions) & own
        some = _all_but_some(parts)
        return Verdict(
            plan, statement.kind, target, reads, some, read, unmarked=unmarked is not None
        )

    def _check_allowed(self, unmarked: str, locate: Locate) -> None:
        if unmarked not in self._unmarked:
            message = f"the policy lets in no {unmarked.replace('_', ' ').upper()}"
            hint = f"its operator writes at_least_once: [{unmarked}] into the file of --policy"
            raise _refused("sql-policy", message, hint, locate(0))

    def query(
        self, text: str, locate: Locate, rule: str = "", transitions: Collection[str] = ()
    ) -> Verdict:
        """The verdict on a condition's query: it reads declared tables and `event`, by unqualified
        names (G31)."""
        plan, parts = self._parse(text, locate, self._plans.statement)
        first = parts.all[0]
        if first.class_name not in nodes.PARSED_PLANS or first.kind == "UnresolvedRelation":
            hint = "a condition is one SELECT that returns the firing_ids that hold"
            message = f"{nodes.said(first.kind)} is no condition"
            raise _refused("sql-kind", message, hint, locate(0))
        walk = _Walk(locate, (), self._own(rule, transitions), declared_only=True)
        reads, own = self._walk(parts, walk, ())
        read = frozenset(transitions) & own
        return Verdict(plan, first.kind, None, reads, _all_but_some(parts), read)

    def expression(self, text: str, locate: Locate, *, steady: bool = True) -> Any:
        """One expression without subqueries and parameters (G25, G27), as parsed: a `where`, an
        `if`, a field, or what a table's owner has written into the table.

        `steady`: refuse literals such as TIMESTAMP'today'. Functions such as now() are found later,
        in the analysed plan.
        """
        expression, parts = self._parse(text, locate, self._plans.expression)
        for part in parts:
            if part.plan or part.kind in nodes.SUBQUERIES:
                hint = "an expression sees one firing or row; use if: {sql: SELECT ..}"
                raise _refused("sql-subquery", "a subquery is refused here", hint, locate(0))
            if part.kind == "Alias" and part.number == 0:
                message = f"an expression, not a column: AS {part.said('name')}"
                raise _refused("sql-alias", message, "leave the name out", locate(0))
            self._check_expression(part, locate, ())
        self._check_values(parts, locate)
        if steady and (found := moment_written(parts, text)):
            message = f"{found[0]} is refused: its value changes with time"
            hint = "write a date or time in digits; detected_at is the detecting instant"
            raise _refused("sql-nondeterministic", message, hint, locate(found[1]))
        return expression

    def _parse(self, text: str, locate: Locate, parse: Callable[[str], Any]) -> tuple[Any, Parts]:
        try:
            plan = parse(text)
            return plan, self._plans.walk(plan)
        except ParseException as error:
            message, at = parse_error(error, text)
            several, hint = ";" in text[: at + 1], ""
            if several and parse == self._plans.statement:
                hint = "write one statement in each sql item"
            elif several:
                hint = "leave the ; out"
            raise _refused("sql-syntax", message, hint, locate(at)) from None
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() != "StackOverflowError":
                raise
            hint = "write it in several expressions, or over fewer levels"
            raise _refused("sql-syntax", "it is nested too deeply", hint, locate(0)) from None

    def _target(self, statement: Part, parts: Parts, locate: Locate) -> tuple[str, Part]:
        """The declared table that a statement writes, and the node that names it."""
        self._check_extras(statement, parts, locate)
        field = "targetTable" if statement.kind == "MergeIntoTable" else "table"
        (relation,) = parts.held(statement, field)
        while relation.kind == "SubqueryAlias":
            (relation,) = parts.held(relation, "child")
        if relation.kind != "UnresolvedRelation":
            message = f"{nodes.said(relation.kind)} is no target"
            raise _refused("sql-target", message, _KINDS_HINT, locate(0))
        at = _at(relation, locate)
        options = relation.texts.get("options", ())
        if options and (len(options) != 2 or options[0] != _PRIVILEGES):
            message = "write options are refused: they could displace the marker"
            raise _refused("sql-options", message, "leave WITH (..) out", at)
        names = relation.texts["multipartIdentifier"]
        if len(names) != 1 or not names[0].isascii() or names[0].lower() not in self._tables:
            message = f"{'.'.join(names)} is not a declared table, so no action may write it"
            raise _refused("sql-target", message, self._meant(names[-1], ()), at)
        return self._tables[names[0].lower()], relation

    def _check_extras(self, statement: Part, parts: Parts, locate: Locate) -> None:
        """Refuse clauses that make a listed kind of statement do something else."""
        replaced = "replaceCriteriaOpt"
        if replaced in statement.texts or parts.held(statement, replaced):
            raise _refused("sql-kind", "INSERT .. REPLACE is no action", _KINDS_HINT, locate(0))
        if statement.flag("withSchemaEvolution"):
            message = "WITH SCHEMA EVOLUTION is refused: an action writes rows, not schemas"
            hint = "ALTER TABLE .. ADD COLUMN first, then name the columns"
            raise _refused("sql-kind", message, hint, locate(0))

    def _own(self, rule: str, transitions: Collection[str]) -> set[str]:
        """The names of a rule's own relations, without those that a declared table has."""
        return {"event", f"p_{rule}".lower()} | ({*transitions} - self._tables.keys())

    def _walk(
        self, parts: Parts, walk: _Walk, written: Collection[int]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The declared tables that a text reads, and the rule's own relations that it reads. Every
        node must be let in. `written`: numbers of the nodes that are the statement and its target.
        """
        named = self._named(parts, walk)
        reads: set[str] = set()
        own: set[str] = set()
        for part in parts:
            if part.number in written:
                continue
            if not part.plan:
                self._check_expression(part, walk.locate, walk.parameters)
            elif part.class_name not in nodes.PARSED_PLANS:
                raise _refused_kind(part, walk.locate)
            elif part.kind == "UnresolvedRelation":
                found = self._check_relation(part, walk, named)
                reads |= found
                own |= {".".join(part.texts["multipartIdentifier"]).lower()} - named - found
            elif part.kind == "RelationTimeTravel":
                self._check_time_travel(part, parts, walk)
            elif part.kind == "UnresolvedTableValuedFunction":
                self._check_table_function(part, walk.locate)
        self._check_values(parts, walk.locate)
        return frozenset(reads), frozenset(own & {*walk.own})

    def _named(self, parts: Parts, walk: _Walk) -> frozenset[str]:
        """The names that WITH gives. They must be ASCII: Spark ignores case, and then some other
        letters equal an ASCII letter (the Kelvin sign equals k)."""
        written = [
            name
            for part in parts
            if part.kind == "UnresolvedWith"
            for name in (
                *part.texts.get("cteRelations", ()),
                *(alias.said("identifier") for alias in parts.held(part, "cteRelations")),
            )
        ]
        for name in written:
            if not name.isascii():
                message = f"WITH {name}: a name in WITH is written in ASCII"
                raise _refused("sql-name", message, "give it another name", walk.locate(0))
        named = frozenset(name.lower() for name in written)
        if hidden := named & self._tables.keys():
            message = f"WITH {min(hidden)} hides the declared table of that name"
            raise _refused("sql-hidden-table", message, "give it another name", walk.locate(0))
        return named

    def _check_relation(self, part: Part, walk: _Walk, named: Collection[str]) -> set[str]:
        names = part.texts["multipartIdentifier"]
        text = ".".join(names)
        at = _at(part, walk.locate)
        if part.texts.get("options") or part.flag("isStreaming"):
            message = f"{text}: options and streams are refused; a table is read as it is"
            raise _refused("sql-options", message, "leave WITH (..) or STREAM out", at)
        if len(names) == 1:
            name = names[0].lower() if names[0].isascii() else ""
            if name in named or name in walk.own:
                return set()
            if name not in self._tables:
                message = f"{text} is not a declared table"
                raise _refused("sql-table", message, self._meant(names[0], walk.own), at)
            return {self._tables[name]}
        if any(mark in text for mark in "/\\:") or names[0].lower() in _SOURCES:
            message = f"`{text}` reads a path; tables are read by name"
            raise _refused("sql-path", message, "declare it under `tables:` with its path", at)
        if walk.declared_only:
            message = f"a condition names declared tables only, unqualified; {text} is qualified"
            hint = "declare it under `tables:`; then the bucket pins its version"
            raise _refused("sql-table", message, hint, at)
        if full_name(names) not in self._reads:
            message = f"{text} is neither a declared table nor listed under `reads:`"
            hint = f"list it at the rulebook's top level, reads: [{text}], or under `tables:`"
            raise _refused("sql-table", message, hint, at)
        return set()

    def _check_time_travel(self, part: Part, parts: Parts, walk: _Walk) -> None:
        """Refuse VERSION AS OF in conditions, and subqueries in TIMESTAMP AS OF: the analysis would
        run them."""
        at = _at(part, walk.locate)
        if walk.declared_only:  # the bucket says which version is seen
            raise _refused("sql-kind", "VERSION AS OF is refused", _TABLE_HINT, at)
        if any(p.plan or p.kind in nodes.SUBQUERIES for p in parts.below(part, "timestamp")):
            message = "a subquery in TIMESTAMP AS OF is refused"
            raise _refused("sql-subquery", message, "write the instant itself", at)

    def _check_table_function(self, part: Part, locate: Locate) -> None:
        name = ".".join(part.texts.get("name", ())).lower()
        if part.flag("isStreaming") or name not in TABLE_FUNCTIONS | self._functions:
            message = f"the table function {name}(..) is refused"
            hint = f"let in are {', '.join(sorted(TABLE_FUNCTIONS))}"
            raise _refused("sql-function", message, hint, _at(part, locate))

    def _check_expression(self, part: Part, locate: Locate, parameters: Collection[str]) -> None:
        kind = part.kind
        if kind == "PosParameter" or (
            kind == "NamedParameter" and part.said("name") not in parameters
        ):
            said = "?" if kind == "PosParameter" else f":{part.said('name')}"
            hint = (
                f"known are {', '.join(':' + name for name in parameters)}"
                if parameters
                else "parameters are for `for_each: firing`; else read the columns of event"
            )
            message = f"no parameter {said} here"
            raise _refused("sql-parameter", message, hint, _at(part, locate))
        if part.class_name not in nodes.PARSED_EXPRESSIONS:
            raise _refused_kind(part, locate)
        if kind in _CALLED:
            names = [name.lower() for name in part.texts.get(_CALLED[kind], ())]
            if not self._is_known(names) or part.flag("isInternal"):
                raise _refused("sql-function", *_of_function(names), _at(part, locate))

    def _is_known(self, names: list[str]) -> bool:
        if ".".join(names) in self._functions:
            return True
        own = names[:-1] in ([], ["builtin"], ["system", "builtin"])
        return own and bool(names) and names[-1] in FUNCTIONS | self._functions

    def _check_values(self, parts: Parts, locate: Locate) -> None:
        for name in sorted(parts.opaque - nodes.PARSED_VALUES):
            if not _is_function_of(name):
                kind = name.rsplit(".", 1)[-1].strip("$")
                raise _refused("sql-kind", f"{nodes.said(kind)} is refused", "", locate(0))

    def _meant(self, name: str, own: Iterable[str]) -> str:
        if close := nearest(name.lower(), [*self._tables, *own]):
            return f"did you mean {self._tables.get(close, close)}?"
        return f"declared are {', '.join(self._tables.values()) or 'none'}"


@dataclass(frozen=True, slots=True)
class _Walk:
    """What is the same for a whole text. `own`: names of the rule's own relations.
    `declared_only`: it may read declared tables only, as a condition."""

    locate: Locate
    parameters: Collection[str]
    own: Collection[str]
    declared_only: bool


def _of_function(names: Sequence[str]) -> tuple[str, str]:
    """Message and hint for a function that is not let in: it does not exist, or it depends on more
    than its arguments."""
    name = ".".join(names)
    if len(names) > 1 or name in functions():
        hint = "let in are Spark's functions of their arguments; others by the operator's "
        return f"the function {name}(..) is refused", hint + "policy (--policy)"
    hint = did_you_mean(name, functions())
    hint = hint or "one of your own is let in by the operator's policy: functions: [..]"
    return f"there is no function {name}", hint


def full_name(parts: Iterable[str]) -> tuple[str, ...]:
    """A name with its catalog, in small letters: names are compared so."""
    names = tuple(part.lower() for part in parts)
    return names if len(names) > 2 else (CATALOG, *names)


def _is_function_of(name: str) -> bool:
    """Whether a class is a lambda that a node of Catalyst keeps in a field."""
    inner = name.partition("$$")[2].startswith(("Lambda", "anonfun"))
    return inner and name.startswith("org.apache.spark.sql.catalyst.expressions.")


def _all_but_some(parts: Parts) -> bool:
    return any(part.kind == "UnresolvedStarExceptOrReplace" for part in parts)


def _at(part: Part, locate: Locate) -> Place:
    return locate(part.start or 0)


def _refused(code: str, message: str, hint: str, place: Place) -> InputError:
    return InputError([Problem(code, message, place, hint)])


def _refused_kind(part: Part, locate: Locate) -> InputError:
    message = f"{nodes.said(part.kind)} is refused"
    hint = _KINDS_HINT if part.plan else _KIND_HINTS.get(part.kind.strip("$"), "")
    return _refused("sql-kind", message, hint, _at(part, locate))
