"""Asking the processor for a place in memory before it is needed."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1


@intrinsic
def prefetch(_, array, index):
    """Asks the processor to fetch array[index] into its cache. `index` is unsigned."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        held = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(
            context, builder, kind, held, [arguments[1]], wraparound=False
        )
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        ask = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0i8",
        )
        how = [ir.Constant(number, n) for n in (_READ, _KEEP, _DATA)]
        builder.call(ask, [builder.bitcast(place, byte), *how])
        return context.get_dummy_value()

    return types.void(array, index), generate
