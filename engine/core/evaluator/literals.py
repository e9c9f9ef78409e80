"""The literals of the list, as typed nodes: 1 is an int, 1.50 a decimal(3,2), 1e3 a double."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from tidegate.engine.core.evaluator.casts import literal_node
from tidegate.engine.core.evaluator.kinds import DIGITS_MAX, literal_decimal
from tidegate.engine.core.evaluator.nodes import Literal, Node, OutsideError

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
MOST = 2**63 - 1  # of a long
_INT, _LONG = range(-(2**31), 2**31), range(-MOST - 1, MOST + 1)


def number(text: str) -> Node:
    """`-12`, `1.5` or `1e3`: an integer of the first type that holds it, a decimal, a double."""
    if "e" in text.lower():
        double = float(text)
        if math.isinf(double):
            raise OutsideError
        return literal_node(double, pa.float64())
    if sum(map(str.isdigit, text)) > DIGITS_MAX or text.endswith("."):
        raise OutsideError
    if "." in text:
        value = Decimal(text)
        return literal_node(value, literal_decimal(value))
    whole = int(text)
    if whole in _LONG:
        return literal_node(whole, pa.int32() if whole in _INT else pa.int64())
    return literal_node(whole, literal_decimal(whole))


def string(text: str) -> Node:
    return literal_node(text, pa.string())


def null() -> Node:
    return Node(pa.null(), "NULL", lambda _: pa.scalar(None))


def typed(text: str, kind: exp.DataType) -> Node:
    """`DATE '2026-03-01'`, `TIMESTAMP '2026-03-01 10:00:00Z'`, `TIMESTAMP_NTZ '..'`. A timestamp
    needs its Z: else the session's time zone would say what it means."""
    for name, (arrow, read) in _TYPED.items():
        if kind.is_type(name):
            try:
                return literal_node(read(text), arrow)
            except ValueError:
                raise OutsideError from None
    raise OutsideError


def _matched(form: re.Pattern[str], text: str) -> str:
    if not form.fullmatch(text):
        raise OutsideError
    return text


def _date(text: str) -> Literal:
    return date.fromisoformat(_matched(_DATE, text))


def _local(text: str) -> Literal:
    return datetime.fromisoformat(_matched(_TIME, text))


def _instant(text: str) -> Literal:
    if not text.endswith("Z"):
        raise OutsideError
    return datetime.fromisoformat(_matched(_TIME, text[:-1])).replace(tzinfo=UTC)


_TYPED: Mapping[str, tuple[pa.DataType, Callable[[str], Literal]]] = {
    "date": (pa.date32(), _date),
    "timestamp_ntz": (pa.timestamp("us"), _local),
    "timestamptz": (pa.timestamp("us", "UTC"), _instant),
}
