"""What is doubtful about a script that is right."""

from __future__ import annotations

from tidegate.rules.errors import Place, Problem
from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.regexes import below, walk
from tidegate.rules.eventscript.tree import nodes


def doubts(program: t.Program, outputs: dict[str, Place]) -> list[Problem]:
    """Warnings: variables read too early, inputs unused, outputs never emitted. `outputs`: where
    each is declared."""
    found = _early(program.regex)
    named = [each.event for each in walk(program.regex) if isinstance(each, t.Named)]
    for declared in program.inputs if None not in named else ():
        if not set(declared.events) & set(named):
            message = f"no marker takes the input {declared.name!r}"
            hint = "every value of it is unexpected; leave it out, or write ."
            found.append(Problem("unused", message, declared.place, hint))
    emitted = {node.output for node in nodes(program.regex) if isinstance(node, t.Emit)}
    for name in program.outputs:
        if name not in emitted:
            message = f"nothing emits the output {name!r}"
            found.append(Problem("unused", message, outputs[name], f"write !> {name}(..);"))
    return found


def _early(regex: t.Regex) -> list[Problem]:
    reads = _Reads()
    reads.regex(regex, frozenset())
    return [
        Problem(
            "unassigned",
            f"{name!r} may be read before anything assigns it",
            place,
            "it is then 0, 0.0, false, the empty string, the epoch or null, as its type is",
        )
        for name, place in reads.early.items()
    ]


_Names = frozenset[str]


class _Reads:
    """Follows every way through a script with the variables that are assigned by then. A loop of
    statements may run no round; conditions are not looked into."""

    def __init__(self) -> None:
        self.early: dict[str, Place] = {}

    def regex(self, node: t.Regex, known: _Names) -> _Names:
        """What is assigned behind `node`, on every way, where `known` is before it."""
        if isinstance(node, t.Named | t.Elapse | t.Arrive):
            for part in _operands(node):
                self.expression(part, known)
            return known | {node.variable} if node.variable else known
        if isinstance(node, t.Act):
            return self.statement(node.block, known)
        if isinstance(node, t.Sequence):
            for item in node.items:
                known = self.regex(item, known)
            return known
        if isinstance(node, t.Either):
            return frozenset.intersection(*(self.regex(item, known) for item in node.items))
        if isinstance(node, t.Both):
            return self.regex(node.left, known) | self.regex(node.right, known)
        if isinstance(node, t.Without):
            self.regex(node.right, known)
            return self.regex(node.left, known)
        behind = known
        for item in below(node):
            behind = self.regex(item, known)
        return behind if isinstance(node, t.Repeat) and node.low else known

    def statement(self, node: t.Statement, known: _Names) -> _Names:
        """As `regex`."""
        if isinstance(node, t.Block):
            for each in node.statements:
                known = self.statement(each, known)
        elif isinstance(node, t.Assign):
            self.expression(node.value, known)
            if isinstance(node.target, t.Variable):
                return known | {node.target.name}
            self.expression(node.target, known)
        elif isinstance(node, t.Emit):
            self.expression(node.value, known)
        elif isinstance(node, t.If):
            self.expression(node.condition, known)
            then = self.statement(node.then, known)
            return then & self.statement(node.other, known) if node.other else known
        elif isinstance(node, t.Count | t.Each | t.While):
            for part in _operands(node):
                self.expression(part, known)
            self.statement(node.body, known)
        return known

    def expression(self, node: t.Expression | None, known: _Names) -> None:
        for part in nodes(node):
            if isinstance(part, t.Variable) and part.name not in known:
                self.early.setdefault(part.name, part.place)


def _operands(node: t.Node) -> list[t.Expression | None]:
    """The expressions that stand in a marker or a loop itself."""
    if isinstance(node, t.Elapse):
        return [node.amount]
    if isinstance(node, t.Arrive):
        return [node.instant, *node.components]
    if isinstance(node, t.Count):
        return [node.low, node.high]
    if isinstance(node, t.Each):
        return [node.array]
    return [node.condition] if isinstance(node, t.While) else []
