"""Reads the `fire` and `rearm` of a window: `avg(celsius) > 80 and count(*) >= 3`.

As a rule's `where` (`predicate_parser`), with aggregates in place of columns: `count(*)`, and
count, sum, avg, min and max of a column of the rows, or of `old.column`.
"""

from __future__ import annotations

from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.predicate_parser import PredicateParser, Token

AGGREGATES = ("count", "sum", "avg", "min", "max")
_CLOSED = (
    "it has count(*), count, sum, avg, min, max of columns, literals, + - *, abs, comparisons, "
    "is null, and, or, not"
)

_OF_SOME_ROWS = (
    "give these rows an event type with a column that others lack, columns: [k, status as bad], "
    "and write count(bad)"
)


def parse_aggregates(text: str) -> p.Predicate:
    """The tree of a text. Raises `PredicateError`."""
    return _Parser(text).whole()


class _Parser(PredicateParser):
    closed = _CLOSED

    def called(self, token: Token) -> p.Predicate:
        function = token.word
        if function not in AGGREGATES:
            hint = _OF_SOME_ROWS if function in ("count_if", "if", "case") else _CLOSED
            self.refuse(f"{token.text}(..) is no aggregate of the list", hint, token.span)
        self.expect("(")
        old, column = self._argument(function)
        self.expect(")")
        return p.Aggregate(function, column, old, span=self.span_from(token.start))

    def _argument(self, function: str) -> tuple[bool, str]:
        """What is aggregated: whether of the pre-image, and the column."""
        if self.next.text == "*":
            if function != "count":
                self.refuse(
                    f"{function}(*) has no column", f"write {function}(column), or count(*)"
                )
            self.take()
            return False, p.EVERY_ROW
        if self.next.kind != "name":
            hint = "write count(*)" if function == "count" else f"write {function}(column)"
            self.refuse("an aggregate is of one column", hint)
        first = self.take()
        if self.next.kind == "name" and first.word == "distinct":
            hint = "write {window: .., every: ..}, and count distinct values in the rule's `if`"
            self.refuse("distinct is not in the list", hint, first.span)
        if first.word == "old" and self.took("."):
            if self.next.kind != "name":
                self.refuse("a column's name is missing", f"write {function}(old.column)")
            return True, self.take().text.strip("`")
        if self.next.text != ")":
            hint = f"write {function}(column), and calculate with what it gives"
            self.refuse("an aggregate is of one column", hint)
        return False, first.text.strip("`")

    def column(self, token: Token) -> p.Predicate:
        hint = f"write avg({token.text}), or another of count, sum, min, max"
        return self.refuse(f"{token.text} has a value in each row of the window", hint, token.span)
