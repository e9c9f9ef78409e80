"""Reads a Spark SQL expression as typed nodes: the closed list of forms (G30).

Literals, columns (`x`, `old.x`, `new.x`), `= <> < <= > >=`, IN (literals), BETWEEN, IS [NOT] NULL,
AND, OR, NOT, `+ - * / %`, abs, `case`, `if`, coalesce, casts that cannot fail, LIKE a literal,
lower, upper, length, trim. Whatever else a text has raises OutsideError.

sqlglot takes more texts than Spark, and binds some otherwise. So a text is read only if it is what
sqlglot writes of its tree, and a comparison has no comparison beside it without parentheses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from tidegate.engine.core.evaluator import kernels, literals
from tidegate.engine.core.evaluator.branches import case, coalesce, joined
from tidegate.engine.core.evaluator.casts import cast, literal_node, paired, written_cast
from tidegate.engine.core.evaluator.kinds import (
    WORD_DIGITS,
    as_decimal,
    common,
    is_decimal,
    is_float,
    is_integer,
    is_number,
    result,
)
from tidegate.engine.core.evaluator.nodes import Node, OutsideError, column, doubtful, made
from tidegate.engine.core.types.spark import arrow_type
from tidegate.rules.sql.tree import tree_of

NESTED_MAX = 100  # forms inside each other; ANDs and ORs of one chain are one
_FLOATS_MAX = 10  # options of an IN: of more Spark makes a set, which tells -0.0 from 0.0
_NEGATED_MAX = 34  # digits of a decimal: Spark rounds to so many where it turns the sign
_TYPED = re.compile(r"\b(date|timestamp|timestamp_ntz)\s*('[^']*')", re.IGNORECASE)
_WORD = re.compile(r"'[^']*'|`[^`]*`|\bNOT\s+IS\b|\w+|[<>=!]+|\S")
_IMAGES = ("old", "new")
_SPELLED = {"==": "=", "!=": "<>"}
_HARMLESS = {"big_int", "typed", "safe", "_type"}  # what sqlglot adds to a tree


def read_tree(text: str) -> exp.Expr:
    """The tree of a text that sqlglot reads as Spark does. Raises OutsideError."""
    tree = tree_of(text, expression=True)
    if tree is None or "\\" in text:
        raise OutsideError
    try:
        written = tree.sql("spark")
    except RecursionError:
        raise OutsideError from None
    if _words(_TYPED.sub(r"CAST(\2 AS \1)", text)) != _words(written):
        raise OutsideError
    return tree


def _words(text: str) -> Counter[str]:
    """The words of a text. sqlglot also takes what Spark does not, such as `x BETWEEN 1 2`, and
    writes it as it should be."""
    return Counter(_SPELLED.get(word, word) for word in _WORD.findall(text.upper()))


class Reader:
    """Makes nodes of sqlglot's trees, over columns of these types. Case does not matter in names.

    `types` are by name, pre-images as `old.x`; where there are any, `new.x` is `x`.
    """

    def __init__(self, types: Mapping[str, pa.DataType]) -> None:
        self._types = types
        names = Counter(name.lower() for name in types)
        self._proper = {name.lower(): name for name in types if names[name.lower()] == 1}
        if any(name.startswith("old.") for name in types):
            rows = [name for name in types if not name.startswith("old.")]
            self._proper.update({f"new.{name.lower()}": name for name in rows})
        self._depth = 0

    def node(self, tree: exp.Expr) -> Node:
        """The node of a tree. Raises OutsideError."""
        form = self.form(tree)
        if form is None or self._depth > NESTED_MAX:
            raise OutsideError
        self._depth += 1
        found = form(self, tree)
        self._depth -= 1
        return found

    def form(self, tree: exp.Expr) -> Form | None:
        """What reads a tree of this class."""
        return FORMS.get(type(tree))

    def operand(self, tree: exp.Expr) -> Node:
        """The node of an operand. Raises OutsideError for a predicate without parentheses."""
        if isinstance(tree, _PREDICATES):
            raise OutsideError
        return self.node(tree)

    def named(self, tree: exp.Expr) -> Node:
        """The node of a column's name."""
        if not isinstance(tree, exp.Column):
            raise OutsideError
        parts = [part.name.lower() for part in tree.parts]
        name = self._proper.get(".".join(parts), "")
        dotted = len(parts) > 1 and parts[0] not in _IMAGES
        if name not in self._types or dotted or any("." in part for part in parts):
            raise OutsideError
        return column(name, self._types[name])


Form = Callable[[Reader, exp.Expr], Node]
COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_PREDICATES: tuple[type[exp.Expr], ...] = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Between,
    exp.In,
    exp.Is,
    exp.Like,
    *COMPARISONS,
)


def only(tree: exp.Expr, *names: str) -> None:
    """Raises OutsideError if a tree has other parts than these."""
    given = {name for name, value in tree.args.items() if value not in (None, [], False)}
    if not given <= {*names, *_HARMLESS}:
        raise OutsideError


# -- forms -----------------------------------------------------------------------------------------


def _literal(_: Reader, tree: exp.Expr) -> Node:
    return literals.string(tree.name) if tree.args["is_string"] else literals.number(tree.name)


def _boolean(_: Reader, tree: exp.Expr) -> Node:
    return literal_node(bool(tree.this), pa.bool_())


def _negative(reader: Reader, tree: exp.Expr) -> Node:
    part = tree.this
    if isinstance(part, exp.Literal) and not part.args["is_string"]:
        return literals.number("-" + part.name)
    return _numeric(reader.operand(part), "-", kernels.negated)


def _absolute(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this")
    return _numeric(reader.node(tree.this), "ABS ", kernels.absolute)


def _numeric(
    part: Node, word: str, kernel: Callable[[pa.DataType], tuple[kernels.Kernel, bool]]
) -> Node:
    beyond = is_decimal(part.kind) and part.kind.precision > _NEGATED_MAX
    if beyond or not is_number(part.kind):
        raise OutsideError
    run, checked = kernel(part.kind)
    return made(part.kind, f"{word}({part.text})", (part,), run, checked=checked)


def _chain(reader: Reader, tree: exp.Expr) -> Node:
    word = "AND" if isinstance(tree, exp.And) else "OR"
    return joined([reader.node(part) for part in tree.flatten()], word)


def _not(reader: Reader, tree: exp.Expr) -> Node:
    return _inverted(reader.node(tree.this))


def _inverted(part: Node) -> Node:
    if part.kind != pa.bool_():
        raise OutsideError
    return made(part.kind, f"NOT {part.text}", (part,), pc.invert)


def _is_null(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "expression")
    if not isinstance(tree.expression, exp.Null):
        raise OutsideError
    part = reader.operand(tree.this)
    return made(pa.bool_(), f"{part.text} IS NULL", (part,), lambda values: values.is_null())


def _comparison(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "expression")
    left, right = reader.operand(tree.this), reader.operand(tree.expression)
    return _compare(COMPARISONS[type(tree)], left, right)


def _compare(operator: str, left: Node, right: Node) -> Node:
    if _beyond(left, right) or _beyond(right, left):
        raise OutsideError
    left, right = paired(left, right)
    kind = common(left.kind, right.kind)
    kernel = kernels.compared(operator, kind)
    parts = _operand(left, kind), _operand(right, kind)
    if types.is_null(left.kind) or types.is_null(right.kind):
        raise OutsideError
    return made(pa.bool_(), f"({parts[0].text} {operator} {parts[1].text})", parts, kernel)


def _beyond(literal: Node, other: Node) -> bool:
    """Whether an integer is compared with a literal beyond all longs: Spark makes it true or false,
    of null too."""
    value = literal.literal
    if not (is_integer(other.kind) and isinstance(value, int | Decimal)):
        return False
    return not -literals.MOST <= value <= literals.MOST


def _operand(part: Node, kind: pa.DataType) -> Node:
    """An operand of a comparison. One of another type may go unevaluated: Spark knows what becomes
    of `tiny + 1 = 1000`."""
    return cast(part if part.kind == kind else doubtful(part), kind)


def _between(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "low", "high")
    value, low, high = (reader.operand(tree.args[name]) for name in ("this", "low", "high"))
    return joined([_compare(">=", value, low), _compare("<=", value, high)], "AND")


def _in(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "expressions")
    part = reader.operand(tree.this)
    options = [reader.node(option) for option in tree.expressions]
    if not options or any(option.literal is None for option in options):
        raise OutsideError
    kind = common(part.kind, *(option.kind for option in options))
    if is_float(kind) and len(options) > _FLOATS_MAX:
        raise OutsideError
    part, options = _operand(part, kind), [cast(option, kind) for option in options]
    values = [option.literal for option in options]
    text = f"{part.text} IN ({', '.join(option.text for option in options)})"
    return made(pa.bool_(), text, (part,), lambda rows: kernels.is_in(rows, values))


def _like(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "expression", "negate")
    part, pattern = reader.operand(tree.this), tree.expression
    if part.kind != pa.string() or not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise OutsideError
    given = str(pattern.name)
    text = f"({part.text} LIKE {given!r})"
    like = made(pa.bool_(), text, (part,), lambda values: pc.match_like(values, given))
    return _inverted(like) if tree.args.get("negate") else like


def _arithmetic(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "expression")
    operator = _ARITHMETIC[type(tree)]
    left, right = paired(reader.operand(tree.this), reader.operand(tree.expression))
    kind = result(operator, left.kind, right.kind)
    operands = kind if operator == "/" else common(left.kind, right.kind)
    if is_decimal(kind) and operator != "%":  # each of its own scale, as Spark has it
        left, right = _decimal(left), _decimal(right)
    else:
        left, right = cast(left, operands), cast(right, operands)
    if operator == "%" and is_decimal(kind) and operands.precision > WORD_DIGITS:
        raise OutsideError
    kernel, checked = kernels.arithmetic(operator, kind)
    text = f"({left.text} {operator} {right.text})"
    own = operands if operator == "%" else kind
    later = operator in ("/", "%")  # Spark looks at the divisor first
    found = made(own, text, (left, right), kernel, checked=checked, right_first=later)
    return found if found.kind == kind else _narrowed(found, kind)


def _decimal(part: Node) -> Node:
    return cast(part, as_decimal(part.kind))


def _narrowed(part: Node, kind: pa.DataType) -> Node:
    """The remainder of decimals has no more digits than the smaller of the two."""
    return made(kind, f"({part.text}: {kind})", (part,), lambda values: pc.cast(values, kind))


def _cast(reader: Reader, tree: exp.Expr) -> Node:
    if tree.args.get("safe"):
        raise OutsideError
    only(tree, "this", "to")
    if isinstance(tree.this, exp.Literal) and tree.this.is_string:
        return literals.typed(tree.this.name, tree.args["to"])
    name = tree.args["to"].sql("spark")
    if "CHAR" in name.upper():
        raise OutsideError
    try:
        kind = arrow_type(name)
    except (ValueError, KeyError):
        raise OutsideError from None
    return written_cast(reader.node(tree.this), kind)


def _case(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "ifs", "default")
    given, default = tree.args.get("this"), tree.args.get("default")
    branches = []
    for branch in tree.args["ifs"]:
        if given is None:
            condition = reader.node(branch.this)
        else:
            condition = _compare("=", reader.operand(given), reader.operand(branch.this))
        branches.append((condition, reader.node(branch.args["true"])))
    return case(branches, None if default is None else reader.node(default))


def _if(reader: Reader, tree: exp.Expr) -> Node:
    if tree.args.get("false") is None:
        raise OutsideError
    condition, value, other = (reader.node(tree.args[n]) for n in ("this", "true", "false"))
    return case([(condition, value)], other)


def _coalesce(reader: Reader, tree: exp.Expr) -> Node:
    only(tree, "this", "expressions")
    return coalesce([reader.node(part) for part in (tree.this, *tree.expressions)])


def _of_string(word: str, kind: pa.DataType, kernel: kernels.Kernel, *, checked: bool) -> Form:
    def form(reader: Reader, tree: exp.Expr) -> Node:
        only(tree, "this")
        part = reader.node(tree.this)
        if part.kind != pa.string():
            raise OutsideError
        return made(kind, f"{word}({part.text})", (part,), kernel, checked=checked)

    return form


FORMS: Mapping[type[exp.Expr], Form] = {
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: lambda *_: literals.null(),
    exp.Paren: lambda reader, tree: reader.node(tree.this),
    exp.Column: lambda reader, tree: reader.named(tree),
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.And: _chain,
    exp.Or: _chain,
    exp.Not: _not,
    exp.Is: _is_null,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Lower: _of_string("LOWER", pa.string(), kernels.lower, checked=True),
    exp.Upper: _of_string("UPPER", pa.string(), kernels.upper, checked=True),
    exp.Length: _of_string("LENGTH", pa.int32(), pc.utf8_length, checked=False),
    exp.Trim: _of_string("TRIM", pa.string(), kernels.trim, checked=False),
    **dict.fromkeys(COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
}
