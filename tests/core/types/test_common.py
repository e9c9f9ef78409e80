"""The common type of columns of one name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.engine.core.types.common import common_type, outer_union


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


INSTANT = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.int32(), pa.decimal128(12, 2), pa.decimal128(12, 2)),
        (pa.int64(), pa.decimal128(12, 2), pa.decimal128(22, 2)),
        (pa.decimal128(10, 4), pa.decimal128(12, 2), pa.decimal128(14, 4)),
        (pa.decimal128(38, 0), pa.decimal128(10, 5), None),
        (pa.date32(), INSTANT, INSTANT),
        (pa.string(), pa.int32(), None),
        (pa.bool_(), pa.int32(), None),
        (pa.null(), pa.string(), pa.string()),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (
            pa.struct([("a", pa.int32())]),
            pa.struct([("a", pa.int64())]),
            pa.struct([("a", pa.int64())]),
        ),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())]), None),
    ],
)
def test_common_types_both_ways(a: pa.DataType, b: pa.DataType, both: pa.DataType | None) -> None:
    assert common_type(a, b) == both
    assert common_type(b, a) == both


def test_pre_images_of_two_tables_have_the_fields_of_both() -> None:
    a = pa.struct([("id", pa.int32()), ("Owner", pa.string())])
    b = pa.struct([("id", pa.int64()), ("owner", pa.string()), ("open", pa.bool_())])
    union = pa.struct([("id", pa.int64()), ("Owner", pa.string()), ("open", pa.bool_())])
    assert outer_union(a, b) == union
    assert outer_union(a, pa.struct([("Owner", pa.int32())])) is None
