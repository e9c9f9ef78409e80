"""A hint to the processor: memory that will be read soon."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_FOR_WRITING, _KEPT_LONG, _DATA = 1, 3, 1


@intrinsic
def fetch_ahead(_typing, rows, row):
    """Let a row of a C-contiguous array of two dimensions be fetched: LLVM's `llvm.prefetch`. Any
    row may be named; one that there is not does nothing."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = cgutils.unpack_tuple(builder, array.shape)[1]
        first = builder.gep(array.data, [builder.mul(arguments[1], width)])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        how = [number(each) for each in (_FOR_WRITING, _KEPT_LONG, _DATA)]
        builder.call(function, [builder.bitcast(first, byte), *how])
        return context.get_dummy_value()

    return types.void(rows, row), generate
