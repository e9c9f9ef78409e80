"""Keys: the occurrences of one, and others that were probably meant.

Example: asked is account "7", a text, and `account_id` is a bigint. No occurrence has that key; key
7 is near.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from difflib import SequenceMatcher
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.text.json_text import key_text, value
from tidegate.engine.core.text.times import of_argument, python_values
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.core.values import Batch
from tidegate.rules.errors import InputError, Problem, word_place

_COMPARED_MAX = 10_000
_NEAR_MAX = 3
_ALIKE = 0.6  # as of `rules.errors.nearest`
_NEIGHBOURS = 0.9
_NUMBERS = (int, float, Decimal)


def rows_of(batch: Batch, columns: Sequence[str], key: Mapping[str, Any]) -> Batch:
    """The occurrences of a batch that have this key, in these columns."""
    left = np.arange(len(batch))
    for column, wanted in zip(columns, key.values(), strict=True):
        values = batch.table[column].take(pa.array(batch.row[left]))
        left = left[_equal(values, wanted)]
    return batch.take(left)


def _equal(values: pa.ChunkedArray, wanted: Any) -> npt.NDArray[np.bool_]:
    if wanted is None:
        return np.asarray(values.is_null().to_numpy(), np.bool_)
    kind = values.type
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if textual != isinstance(wanted, str) or pa.types.is_boolean(kind) != isinstance(wanted, bool):
        return np.zeros(len(values), np.bool_)
    try:
        whole = Decimal(wanted) if pa.types.is_decimal(kind) else wanted
        equal = pc.equal(values, pa.scalar(whole, kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return np.zeros(len(values), np.bool_)
    return np.asarray(equal.fill_null(False).to_numpy(), np.bool_)


def typed_key(key: Mapping[str, Any], types: pa.Schema, zone: str) -> dict[str, Any]:
    """A key in the types of its columns. Texts are read as commands take them: `7`, `2.50`, `true`,
    `2026-03-02`, a time without an offset in `zone`, `null` for other columns than strings. Columns
    without a type stay as they are. Raises InputError.

    Example: `{"card": "7"}` is `{"card": 7}` where `card` is a bigint."""
    found = dict(key)
    for field in types:
        if field.name in key:
            try:
                found[field.name] = _typed(key[field.name], field.type, zone)
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                text = f"{field.name}={key_text(key[field.name])}"
                message = f"{text}: the values of {field.name} are {spark_type(field.type)}"
                hint = "write 2026-03-02T09:00:00Z" if pa.types.is_timestamp(field.type) else ""
                problem = Problem("key-type", message, word_place("--key"), hint)
                raise InputError([problem]) from None
    return found


def _typed(given: Any, kind: pa.DataType, zone: str) -> Any:
    if given is None:
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return key_text(given)
    if not isinstance(given, str):
        return pa.scalar(given).cast(kind).as_py()
    if given == "null":
        return None
    if pa.types.is_timestamp(kind):
        instant = of_argument(given, zone if kind.tz else "UTC")
        return pa.scalar(instant, pa.timestamp("us", kind.tz)).cast(kind).as_py()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64decode(given, validate=True)
    return pa.scalar(given).cast(kind).as_py()


def same_key(row: Mapping[str, Any], columns: Sequence[str], key: Mapping[str, Any]) -> bool:
    """Whether a row has this key. Its values may have been through JSON."""
    return all(
        column in row and key_text(value(row[column])) == key_text(value(wanted))
        for column, wanted in zip(columns, key.values(), strict=True)
    )


def near_keys(
    batch: Batch, columns: Sequence[str], key: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], int, int]]:
    """Up to three other keys of a batch that look like this one: the most similar first, of equally
    similar ones the last that occurred. Of each the key, how often, when last.

    Example: `(7, 3 times, ..)` for the text "7"; 6, 8, 70 and 77 for 7, but not 4, nor null."""
    tail = np.arange(max(0, len(batch) - _COMPARED_MAX), len(batch))
    rows = pa.array(batch.row[tail])
    values = [python_values(batch.table[column].take(rows)) for column in columns]
    each = list(zip(*values, strict=True))
    counts = Counter(map(repr, each))
    last = {repr(one): (one, int(batch.time[n])) for one, n in zip(each, tail, strict=True)}
    wanted = [*key.values()]
    likeness = {
        name: fmean(map(_likeness, wanted, one)) for name, (one, _) in last.items() if wanted
    }
    similar = (name for name, found in likeness.items() if found >= _ALIKE)
    ranked = sorted(similar, key=lambda name: (-likeness[name], -last[name][1]))
    return [
        (dict(zip(key, last[name][0], strict=True)), counts[name], last[name][1])
        for name in ranked[:_NEAR_MAX]
    ]


def _likeness(one: Any, other: Any) -> float:
    """How alike two values of a key column are, from 0 to 1, which is: written the same. Numbers
    are alike that are 1 apart or have the same digits in another order, times of the same day or of
    the next to it; else it is by the letters or digits that are the same."""
    if one is None or other is None:
        return float(one is other)
    texts = key_text(one).lower(), key_text(other).lower()
    if texts[0] == texts[1]:
        return 1.0
    if isinstance(one, bool) or isinstance(other, bool):
        return 0.0
    if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS):
        apart = abs(Decimal(one) - Decimal(other))
        if apart in (0, 1) or sorted(texts[0]) == sorted(texts[1]):
            return _NEIGHBOURS if apart else 1.0
    elif isinstance(one, date) and isinstance(other, date):
        return _NEIGHBOURS if abs(one.toordinal() - other.toordinal()) <= 1 else 0.0
    return SequenceMatcher(None, *texts).ratio()


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two keys are written the same: 7 and "7"."""
    return [*map(key_text, one.values())] == [*map(key_text, other.values())]
