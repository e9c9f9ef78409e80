"""Arrow columns as words, and the other way; values of the interpreter likewise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences.comparison import whole
from tidegate.engine.detect.scripts.compiled.layout import Word
from tidegate.engine.detect.scripts.value_types import arrow_type
from tidegate.rules.eventscript.types import Basic, Structure, Type

Column = npt.NDArray[Any]


class InterpretedError(Exception):
    """A bucket has something that the kernel does not take: many nulls, longer arrays."""


class Texts:
    """The strings of one bucket by code; those of the script have the first codes."""

    def __init__(self, known: Sequence[str]) -> None:
        self.listed = [*known]
        self._codes = {text: n for n, text in enumerate(known)}
        self._column: pa.Array | None = None

    def code(self, text: str) -> int:
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.listed)
            self.listed.append(text)
        return found

    def note(self, value: Any) -> None:
        """Give codes to the strings in a value."""
        if isinstance(value, str):
            self.code(value)
        elif isinstance(value, tuple | list):
            for each in value:
                self.note(each)

    def codes(self, column: pa.Array) -> Int64:
        """The codes of a column."""
        encoded = column.dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        own = np.array([self.code(text) for text in encoded.dictionary.to_pylist()], np.int64)
        return own[encoded.indices.to_numpy()] if len(own) else np.zeros(0, np.int64)

    def column(self, codes: Int64) -> pa.Array:
        if self._column is None or len(self._column) != len(self.listed):
            self._column = pa.array(self.listed, pa.string())
        return self._column.take(pa.array(codes))

    @property
    def longest(self) -> int:
        return max(map(len, self.listed))


def leaves(column: pa.Array | pa.ChunkedArray, type_: Type) -> Iterator[pa.Array]:
    """The columns of the words of a column of `arrow_type`. Raises `InterpretedError` at nulls."""
    column = whole(column)
    if column.null_count:
        raise InterpretedError
    if isinstance(type_, Structure):
        for part, (_, kind) in zip(column.flatten(), type_.fields, strict=True):
            yield from leaves(part, kind)
    else:
        yield column


def has_null(value: Any) -> bool:
    """Whether a value of the interpreter is null, or has a null in it."""
    return value is None or (isinstance(value, tuple | list) and any(map(has_null, value)))


def null_rows(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Which rows of a column have a null in them."""
    column = whole(column)
    found: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(column.type):
        for part in column.flatten():
            found |= null_rows(part)
    elif pa.types.is_list(column.type):
        inner = null_rows(column.flatten())
        found[pc.list_parent_indices(column).to_numpy()[inner]] = True
    return found


def replaced(column: pa.Array, rows: Int64, by: pa.Array) -> pa.Array:
    """A column with other values in some rows."""
    place = np.arange(len(column))
    place[rows] = len(column) + np.arange(len(by))
    return pa.concat_arrays([column, by]).take(pa.array(place))


def words(column: pa.Array, kind: Basic, texts: Texts) -> Column:
    """A column without nulls as integers or doubles."""
    if kind == Basic.STRING:
        return texts.codes(column)
    if kind == Basic.BOOLEAN:
        column = pc.cast(column, pa.int8()).cast(pa.int64())
    elif kind == Basic.TIME:
        column = column.cast(pa.int64())
    found: Column = column.to_numpy()
    return found


def file(words: Int64, word: Word) -> Column:
    """Words as what one of them is, integers or doubles."""
    return words.view(np.float64) if word.double else words


def column(own: Sequence[Column], type_: Type, texts: Texts, count: int) -> pa.Array:
    """Words as a column of `arrow_type`, of `count` rows."""
    return _column(iter(own), type_, texts, count)


def _column(own: Iterator[Column], type_: Type, texts: Texts, count: int) -> pa.Array:
    if isinstance(type_, Structure):
        parts = [_column(own, kind, texts, count) for _, kind in type_.fields]
        return pa.Array.from_buffers(arrow_type(type_), count, [None], children=parts)
    found = np.ascontiguousarray(next(own))
    if type_ == Basic.STRING:
        return texts.column(found)
    if type_ == Basic.BOOLEAN:
        return pa.array(found.astype(np.bool_))
    if type_ == Basic.TIME:
        buffers = [None, pa.py_buffer(found)]
        return pa.Array.from_buffers(arrow_type(type_), count, buffers)
    return pa.array(found)


def to_words(value: Any, type_: Type, texts: Texts) -> Iterator[float]:
    """A value of the interpreter as words, in order."""
    if isinstance(type_, Structure):
        for part, (_, kind) in zip(value, type_.fields, strict=True):
            yield from to_words(part, kind, texts)
    else:
        yield texts.code(value) if type_ == Basic.STRING else value


def of_words(own: Iterator[Any], type_: Type, texts: Texts) -> Any:
    """Words as a value of the interpreter."""
    if isinstance(type_, Structure):
        return tuple([of_words(own, kind, texts) for _, kind in type_.fields])
    value = next(own)
    if type_ == Basic.DOUBLE:
        return float(value)
    if type_ == Basic.STRING:
        return texts.listed[int(value)]
    return bool(value) if type_ == Basic.BOOLEAN else int(value)


def fixed(array: Column) -> Column:
    """An array as the kernel knows it, whether it may be written or not: one type, one kernel."""
    found = np.ascontiguousarray(array).view()
    found.flags.writeable = False
    return found
