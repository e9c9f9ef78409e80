"""Two operations that Numba lacks: the call of a function at an address, and the prefetch of memory
that will be read soon."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_FOR_WRITING, _KEPT_LONG, _DATA = 1, 3, 1


@intrinsic
def transition(_typing, address, rows, context, row, now, place, cause, records) -> Any:
    """Call the function of a program (`native`) for a row of `rows`: what it returns."""

    def generate(target, builder, signature, arguments):
        of, instances, words, row, now, place, cause, records = arguments
        number = ir.IntType(64)
        word = number.as_pointer()
        kind = ir.FunctionType(number, [word, word, *[number] * 5])
        function = builder.inttoptr(of, kind.as_pointer())
        first = _row(target, builder, signature.args[1], instances, row)
        known = target.make_array(signature.args[2])(target, builder, words).data
        return builder.call(function, [first, known, now, place, row, cause, records])

    numbers = row, now, place, cause, records  # int64, all
    return types.int64(address, rows, context, *numbers), generate


@intrinsic
def fetch_ahead(_typing, rows, row) -> Any:
    """Prefetches both ends of a row of a C-contiguous array of two dimensions, by LLVM's
    `llvm.prefetch`: a short row may lie in two of the cache's lines. A row outside the array has no
    effect."""

    def generate(target, builder, signature, arguments):
        rows, row = arguments
        first = _row(target, builder, signature.args[0], rows, row)
        after = _row(target, builder, signature.args[0], rows, builder.add(row, row.type(1)))
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        how = [number(each) for each in (_FOR_WRITING, _KEPT_LONG, _DATA)]
        for place in (first, builder.gep(after, [row.type(-1)])):
            builder.call(function, [builder.bitcast(place, byte), *how])
        return target.get_dummy_value()

    return types.void(rows, row), generate


def _row(target, builder, kind, rows, row):
    """The address of a row."""
    array = target.make_array(kind)(target, builder, rows)
    width = cgutils.unpack_tuple(builder, array.shape)[1]
    return builder.gep(array.data, [builder.mul(row, width)])
