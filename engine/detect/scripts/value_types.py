"""The values of a script: what each type is in Python and in Arrow.

    boolean long double string    bool int float str
    time                          int: microseconds since the epoch
    duration                      int: microseconds
    object                        an Arrow scalar, exact and opaque
    structure                     a tuple, in the order of the fields
    array                         a list, which has one owner: it is copied where it is stored

None is null, of any type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.engine.core.text.times import micros_text
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

SMALLEST, LARGEST = -(2**63), 2**63 - 1
_MODULUS = 2**64
_INSTANT = pa.timestamp("us", "UTC")
_ARROW: dict[Type, pa.DataType] = {
    Basic.BOOLEAN: pa.bool_(),
    Basic.LONG: pa.int64(),
    Basic.DOUBLE: pa.float64(),
    Basic.STRING: pa.string(),
    Basic.TIME: _INSTANT,
    Basic.DURATION: pa.int64(),
    Basic.OBJECT: pa.binary(),  # the value as an Arrow stream of one row
}
TIMELESS: Mapping[Type, pa.DataType] = {**_ARROW, Basic.TIME: pa.int64()}
"""Instants as integers, which reach further than Python's dates."""
_PLAIN = _ARROW.keys() - {Basic.OBJECT}
_DEFAULTS: dict[Type, Any] = {
    Basic.BOOLEAN: False,
    Basic.LONG: 0,
    Basic.DOUBLE: 0.0,
    Basic.STRING: "",
    Basic.TIME: 0,
    Basic.DURATION: 0,
    Basic.OBJECT: None,
}
_WORD = 8  # bytes that any value takes at least


def wrapped(value: int) -> int:
    """An integer as a `long`, which has 64 bits."""
    if SMALLEST <= value <= LARGEST:
        return value
    return (value - SMALLEST) % _MODULUS + SMALLEST


def default(type_: Type) -> Any:
    """What a variable is before it is assigned."""
    if isinstance(type_, Array):
        return []
    if isinstance(type_, Structure):
        return tuple(default(kind) for _, kind in type_.fields)
    return _DEFAULTS[type_]


def holds_arrays(type_: Type) -> bool:
    """Whether a value of the type is, or has in it, an array."""
    if isinstance(type_, Structure):
        return any(holds_arrays(kind) for _, kind in type_.fields)
    return isinstance(type_, Array)


def grows(type_: Type) -> bool:
    """Whether values of the type differ in size."""
    if isinstance(type_, Structure):
        return any(grows(kind) for _, kind in type_.fields)
    return isinstance(type_, Array) or type_ in (Basic.STRING, Basic.OBJECT)


def copied(value: Any) -> Any:
    """A value whose arrays are its own."""
    if isinstance(value, list):
        if value and isinstance(value[0], list | tuple):
            return [copied(element) for element in value]
        return value.copy()
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    return value


def size(value: Any) -> int:
    """The bytes that a value takes, about."""
    if isinstance(value, str):
        return _WORD + len(value)
    if isinstance(value, list):
        if value and isinstance(value[0], list | tuple | str | pa.Scalar):
            return _WORD + sum(map(size, value))
        return _WORD * (1 + len(value))
    if isinstance(value, tuple):
        return sum(map(size, value))
    if isinstance(value, pa.Scalar):
        return _WORD + int(pa.array([value]).nbytes)
    return _WORD


# Arrow ----------------------------------------------------------------------------------------


def arrow_type(type_: Type, basic: Mapping[Type, pa.DataType] = _ARROW) -> pa.DataType:
    """The type of a column that carries such values. `basic`: the types of basic ones."""
    if isinstance(type_, Array):
        return pa.list_(arrow_type(type_.of, basic))
    if isinstance(type_, Structure):
        return pa.struct([(name, arrow_type(kind, basic)) for name, kind in type_.fields])
    return basic[type_]


def column_of(values: Sequence[Any], type_: Type) -> pa.Array:
    """Values as a column of `arrow_type`."""
    return pa.array(values if _is_plain(type_) else [*map(_outward, values)], arrow_type(type_))


def values_of(column: pa.Array | pa.ChunkedArray, type_: Type) -> list[Any]:
    """The values of a column of `arrow_type`."""
    found: list[Any] = column.cast(arrow_type(type_, TIMELESS)).to_pylist()
    return found if _is_plain(type_) else [*map(_inward, found)]


def _is_plain(type_: Type) -> bool:
    """Whether Arrow has and takes the values of a type as they are."""
    return _is_plain(type_.of) if isinstance(type_, Array) else type_ in _PLAIN


def _outward(value: Any) -> Any:
    """A value of the script as one that Arrow takes."""
    if isinstance(value, pa.Scalar):
        return _bytes_of(value)
    if isinstance(value, tuple):
        return tuple(map(_outward, value))
    return [*map(_outward, value)] if isinstance(value, list) else value


def _inward(value: Any) -> Any:
    """The other way."""
    if isinstance(value, bytes):
        return _scalar_of(value)
    if isinstance(value, dict):
        return tuple(map(_inward, value.values()))
    return [*map(_inward, value)] if isinstance(value, list) else value


class ObjectScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """An object that a column has."""

    def as_py(self, **options: Any) -> Any:
        """In Python; an instant as text, for it may lie where Python has no dates."""
        if self.value is None:
            return None
        found = _scalar_of(self.value.as_py())
        if pa.types.is_timestamp(found.type) and found.is_valid:
            return micros_text(found.cast(_INSTANT).cast(pa.int64()).as_py()) + "Z"
        return found.as_py(**options)


class ObjectType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of objects, each of which has a type of its own."""

    def __init__(self) -> None:
        super().__init__(_ARROW[Basic.OBJECT], "tidegate.object")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, *_: Any) -> ObjectType:
        return cls()

    def __arrow_ext_scalar_class__(self) -> type:
        return ObjectScalar


OBJECTS = ObjectType()


def output_column(values: Sequence[Any], type_: Type) -> pa.Array:
    """Values that are emitted as a column; objects as `OBJECTS`."""
    return column_of(values, type_).cast(arrow_type(type_, {**_ARROW, Basic.OBJECT: OBJECTS}))


def object_text(value: Any) -> str | None:
    """The text of an object, in Python, where a string is wanted."""
    if value is None or isinstance(value, str):
        return value
    plain = isinstance(value, bool | list | dict)
    return json.dumps(value, ensure_ascii=False, default=str) if plain else str(value)


def _bytes_of(scalar: pa.Scalar) -> bytes:
    table = pa.table({"": pa.array([scalar], scalar.type)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _scalar_of(data: bytes) -> pa.Scalar:
    return pa.ipc.open_stream(data).read_all().column(0)[0]
