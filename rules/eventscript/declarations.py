"""The declarations before the regular expression of a script: inputs, outputs, types, functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Token, Tree

from tidegate.rules.errors import did_you_mean
from tidegate.rules.eventscript.expressions import Expressions
from tidegate.rules.eventscript.functions import FORMS
from tidegate.rules.eventscript.names import RawNames
from tidegate.rules.eventscript.parser import Mistakes, Parsed
from tidegate.rules.eventscript.tree import Case, Expression, Field, Function, Input
from tidegate.rules.eventscript.typenames import TypeNames
from tidegate.rules.eventscript.types import NOTHING, Basic, Type


@dataclass
class Declarations:
    """What a script declares. `events`: the input of each event name. `key`: the types of the key's
    columns."""

    types: TypeNames = field(default_factory=TypeNames)
    inputs: dict[str, Input] = field(default_factory=dict)
    outputs: dict[str, Type] = field(default_factory=dict)
    output_names: dict[str, Token] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    events: dict[str, Input] = field(default_factory=dict)
    key_names: tuple[str, ...] = ()
    key: tuple[Type, ...] = ()
    whole: bool = True  # False: something that is declared could not be read

    def unknown_event(self, name: str) -> tuple[str, str]:
        """The message and the hint for a marker that names no event."""
        if name == "groupby":  # a form that the paper withdrew in its section 4.3
            hint = "write group: in type NAME group(expression)"
            return "'groupby' is not a word of a script", hint
        if name in self.inputs:
            events = ", ".join(self.inputs[name].events)
            hint = f"its values are classified: write {events}"
        else:
            hint = did_you_mean(name, self.events) or "declare it: in type NAME"
        return f"unknown event {name!r}", hint


def declarations(trees: list[Parsed], mistakes: Mistakes) -> Declarations:
    """Read the declarations of a script, and add what is wrong to `mistakes`."""
    found = Declarations()
    before = len(mistakes.problems)
    for tree in trees:
        if tree.data == "alias":
            name, of = tree.children
            found.types.declare(name, of, mistakes)
    found.types.read_all(mistakes)
    for tree in trees:
        if tree.data == "function":
            _function(tree, found, mistakes)
    for tree in trees:
        for declared in tree.children if tree.data in ("inputs", "outputs") else ():
            if tree.data == "inputs":
                _input(declared, found, mistakes)
            else:
                _output(declared, found, mistakes)
    for name in found.outputs.keys() & found.inputs.keys():
        hint = "a script does not read what it emits; give the output a name of its own"
        message = f"{name!r} is both an input and an output"
        mistakes.add("name", message, found.output_names[name], hint)
    found.whole = len(mistakes.problems) == before
    return found


def _function(tree: Parsed, found: Declarations, mistakes: Mistakes) -> None:
    result, name, *arguments = tree.children
    gives = found.types.read(result, mistakes)
    takes = [found.types.read(each, mistakes) for each in arguments if isinstance(each, Tree)]
    if name in FORMS or name in found.functions:
        what = "is in every script" if name in FORMS else "stands twice"
        mistakes.add("name", f"the function {str(name)!r} {what}", name, "give it another name")
        return
    known = tuple(each for each in takes if each is not None)
    if gives is not None and len(known) == len(takes):
        found.functions[str(name)] = Function(str(name), gives, known, mistakes.place(name))


def _output(tree: Parsed, found: Declarations, mistakes: Mistakes) -> None:
    of, name = tree.children
    kind = found.types.read(of, mistakes)
    if name in found.outputs:
        mistakes.add("name", f"the output {str(name)!r} stands twice", name, "leave one out")
    elif kind is not None:
        found.outputs[str(name)] = kind
        found.output_names[str(name)] = name


def _input(tree: Parsed, found: Declarations, mistakes: Mistakes) -> None:
    of, name, *clauses = tree.children
    kind = found.types.read(of, mistakes)
    if name in found.inputs:
        mistakes.add("name", f"the input {str(name)!r} stands twice", name, "leave one out")
        return
    names = RawNames(str(name), kind or NOTHING)
    expressions = Expressions(mistakes, names, found.types, found.functions)
    case: Case | None = None
    group: tuple[Expression, ...] = ()
    said: set[str] = set()
    for clause in clauses:
        if clause.data in said:
            message = f"{clause.data} stands twice"
            mistakes.add("name", message, clause, "an input has one of each")
        elif kind is not None and clause.data == "case":
            case = _case(clause, expressions)
        elif kind is not None:
            group = _group(clause, expressions, found, mistakes)
        said.add(clause.data)
    if kind is None:
        return
    read = Input(str(name), kind, mistakes.place(name), case, group)
    found.inputs[str(name)] = read
    for event in read.events:
        other = found.events.get(event)
        if other is not None:
            message = f"the event {event!r} is of the input {other.name!r} too"
            hint = f"{other.name!r} is at line {other.place.line}; an event is of one input"
            mistakes.add("name", message, name, hint)
        found.events.setdefault(event, read)


def _case(tree: Parsed, expressions: Expressions) -> Case:
    branches: list[tuple[Expression, str]] = []
    otherwise: str | None = None
    for branch in tree.children:
        if isinstance(branch, Token):
            otherwise = str(branch)
            continue
        condition, name = branch.children
        node = expressions.read(condition, Basic.BOOLEAN)
        if node is not None:
            branches.append((node, str(name)))
    return Case(tuple(branches), otherwise)


def _group(
    tree: Parsed, expressions: Expressions, found: Declarations, mistakes: Mistakes
) -> tuple[Expression, ...]:
    columns: list[Expression] = []
    for each in tree.children:
        node = expressions.read(each)
        if node is not None and node.type == Basic.DURATION:
            hint = "group by its microseconds: microseconds(d)"
            mistakes.add("type", "a key cannot be duration", each, hint)
        elif node is not None and not isinstance(node.type, Basic):
            hint = "group by fields of it: group(x.a, x.b)"
            mistakes.add("type", f"a key cannot be {node.type}", each, hint)
        elif node is not None:
            columns.append(node)
    types = tuple(node.type for node in columns)
    if len(columns) < len(tree.children):
        return ()
    if not found.key:
        found.key, found.key_names = types, _key_names(columns)
    elif types != found.key:
        wanted = ", ".join(map(str, found.key))
        message = f"the key is of ({', '.join(map(str, types))}), that of another input ({wanted})"
        mistakes.add("key", message, tree, "all groups of a script are of the same types")
    return tuple(columns)


def _key_names(columns: list[Expression]) -> tuple[str, ...]:
    names: list[str] = []
    for number, node in enumerate(columns):
        name = node.name if isinstance(node, Field) else f"group{number}"
        names.append(f"group{number}" if name in names else name)
    return tuple(names)
