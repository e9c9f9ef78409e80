"""Hypothesis strategies for the conditions of crossings."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

NUMBERS = ["0", "1", "2", "0.5", "1.25", "1e0"]
FUNCTIONS = ("count", "sum", "avg", "min", "max")


def aggregates(columns: Sequence[str]) -> list[str]:
    return ["count(*)", *(f"{name}({column})" for column in columns for name in FUNCTIONS)]


def conditions(columns: Sequence[str]) -> st.SearchStrategy[str]:
    """Over aggregates of columns of numbers."""
    one, number = st.sampled_from(aggregates(columns)), st.sampled_from(NUMBERS)
    moved = st.builds("{} {} {}".format, one, st.sampled_from("+-*"), st.one_of(number, one))
    operand = st.one_of(one, one, one, moved, one.map("abs({})".format), one.map("- {}".format))
    signs = st.sampled_from([">", ">=", "<", "=", "<>", "<="])
    simple = st.one_of(
        st.builds("{} > {}".format, one, number),
        st.builds("{} {} {}".format, operand, signs, st.one_of(number, one)),
        st.builds("{} is {}".format, one, st.sampled_from(["null", "not null"])),
    )
    other = st.one_of(simple, simple, simple.map("not ({})".format))
    joined = st.builds("{} {} {}".format, other, st.sampled_from(["and", "or"]), other)
    return st.one_of(other, other, joined)
