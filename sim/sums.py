"""Sums of tile products in vector registers, as a value that compiled kernels carry in a variable.

A `Sums` value belongs to one row and a few columns of an accumulator tile. `nothing` begins one,
`plus` adds the products of a row of an activation tile with rows of a weight tile, `settle` adds
up what each column holds and writes it. Until then a column is spread over several lanes:

    lanes≥16:  a vector for each column, four numbers that belong to it
    lanes=8:   two columns in a vector
    lanes=4:   four columns in a vector, one number each

Sums wrap at 32 bits, so that their order does not matter. All this is written in LLVM's vectors,
which exist for every processor, because loops in plain numba reach an eighth of the speed: here
the vectors stay in registers from slot to slot, and sdot or pmaddwd multiplies. Nothing is
checked. Importing this module imports numba.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding
import numba.core.cgutils
import numba.extending
from llvmlite import ir
from numba import types

# Half of numba has types, and they do not help.
Decorator = Callable[[Callable[..., Any]], Any]
extending: Any = numba.extending
cgutils: Any = numba.core.cgutils
intrinsic: Decorator = extending.intrinsic
intrinsic_of_constants: Decorator = extending.intrinsic(prefer_literal=True)

NO_TILE = -1                # `settle` from nothing
REGISTER = 16               # bytes of the vectors
FOUR = 4                    # 32-bit lanes of such a vector
I8, I32, I64 = (ir.IntType(bits) for bits in (8, 32, 64))
BYTES, NUMBERS = ir.VectorType(I8, REGISTER), ir.VectorType(I32, FOUR)
PRODUCTS = ir.VectorType(I32, REGISTER)

# How LLVM writes a sum that Arm's dot product of bytes can do: from version 20 on, under two names.
# Elsewhere sums of neighbours are best: x86's pmaddwd is made for them.
LLVM = llvmlite.binding.llvm_version_info[0]
ON_ARM = llvmlite.binding.get_default_triple().startswith(("aarch64", "arm64"))
PARTIAL_SUM = "" if not ON_ARM or LLVM < 20 else (
    f"llvm{'.experimental' if LLVM < 22 else ''}.vector.partial.reduce.add.v4i32.v16i32")


class Sums(types.Type):
    """For activation tiles with so many lanes; so many columns of an accumulator tile."""

    def __init__(self, lanes: int, columns: int):
        self.lanes, self.columns = lanes, columns
        super().__init__(name=f"Sums({lanes}, {columns})")

    @property
    def vectors(self) -> int:
        return self.columns * min(self.lanes, REGISTER) // REGISTER


def _model(manager: Any, sums: Sums) -> Any:
    """In LLVM an array of vectors, which the optimizer takes apart into registers."""
    return extending.models.PrimitiveModel(manager, sums, ir.ArrayType(NUMBERS, sums.vectors))


extending.register_model(Sums)(_model)


@intrinsic_of_constants
def nothing(context: Any, lanes: Any, columns: Any) -> Any:
    """Sums without products. Both parameters are constants."""
    kind = Sums(lanes.literal_value, columns.literal_value)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return ir.Constant(context.get_value_type(kind), None)
    return kind(lanes, columns), generate


@intrinsic
def plus(context: Any, sums: Any, inp: Any, activations: Any, wgt: Any, weights: Any) -> Any:
    """The sums and the products of a row of an activation tile with rows of a weight tile, which
    begin so many bytes into their arrays."""
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        totals, inp_array, inp_place, wgt_array, wgt_place = values
        activations = builder.gep(_place(context, builder, inp, inp_array), [inp_place])
        weights = builder.gep(_place(context, builder, wgt, wgt_array), [wgt_place])
        for first in range(0, sums.lanes, REGISTER):
            left = _repeated(builder, _moved(builder, activations, first),
                             min(sums.lanes, REGISTER))
            for number in range(sums.vectors):
                offset = number * max(sums.lanes, REGISTER) + first
                right = _load(builder, _moved(builder, weights, offset), BYTES, 1)
                total = _dotted(builder, builder.extract_value(totals, number), left, right,
                                sums.lanes)
                totals = builder.insert_value(totals, total, number)
        return totals
    return sums(sums, inp, types.int64, wgt, types.int64), generate


@intrinsic
def settle(context: Any, sums: Any, acc: Any, dst: Any, row: Any, column: Any,
           origin: Any) -> Any:
    """Make acc[dst, row, column …] the sums plus acc[origin, row, column …], or the sums alone
    if `origin` is NO_TILE."""
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        sums_value, acc_array, dst, row, column, origin = values
        vectors = [builder.extract_value(sums_value, each) for each in range(sums.vectors)]
        while len(vectors) * FOUR > sums.columns:
            vectors = [_pairs(builder, left, right, 2 * FOUR)
                       for left, right in zip(vectors[::2], vectors[1::2], strict=True)]
        alone = builder.icmp_signed("==", origin, I64(NO_TILE))
        readable = builder.select(alone, dst, origin)
        source = _place(context, builder, acc, acc_array, (readable, row, column))
        target = _place(context, builder, acc, acc_array, (dst, row, column))
        nothing = ir.Constant(NUMBERS, None)
        for number, vector in enumerate(vectors):
            at = number * REGISTER
            start = _load(builder, _moved(builder, source, at), NUMBERS, FOUR)
            total = builder.add(vector, builder.select(alone, nothing, start))
            builder.store(total, builder.bitcast(_moved(builder, target, at),
                                                 NUMBERS.as_pointer()), align=FOUR)
        return context.get_dummy_value()
    return types.void(sums, acc, *[types.int64] * 4), generate


def _place(context: Any, builder: Any, kind: Any, value: Any,
           indices: Sequence[Any] = ()) -> Any:
    """The address of an array's element; of the axes without an index, the first."""
    assert kind.layout == "C", "lanes of a tile must follow one another"
    array = context.make_array(kind)(context, builder, value)
    place = builder.bitcast(array.data, I8.as_pointer())
    for index, stride in zip(indices, cgutils.unpack_tuple(builder, array.strides), strict=False):
        place = builder.gep(place, [builder.mul(index, stride)])
    return place


def _moved(builder: Any, place: Any, offset: int) -> Any:
    return builder.gep(place, [I64(offset)])


def _load(builder: Any, place: Any, kind: Any, alignment: int) -> Any:
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=alignment)


def _repeated(builder: Any, place: Any, lanes: int) -> Any:
    """So many bytes, as often as they fit in a register."""
    number, copies = ir.IntType(8 * lanes), REGISTER // lanes
    vector = ir.VectorType(number, copies)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined),
                                   _load(builder, place, number, 1), I32(0))
    every = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(I32, copies), None))
    return builder.bitcast(every, BYTES)


def _dotted(builder: Any, total: Any, left: Any, right: Any, lanes: int) -> Any:
    """Add products of bytes to 32-bit lanes, four of the same column to each."""
    products = builder.mul(builder.sext(left, PRODUCTS), builder.sext(right, PRODUCTS))
    if lanes >= REGISTER and PARTIAL_SUM:       # LLVM may choose which four: all are of one column
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(NUMBERS, [NUMBERS, PRODUCTS]), PARTIAL_SUM)
        return builder.call(function, [total, products])
    pairs = _pairs(builder, products, products, REGISTER)
    if lanes >= REGISTER:
        low, high = (ir.Constant(NUMBERS, list(range(first, first + FOUR))) for first in (0, FOUR))
        fours = builder.add(builder.shuffle_vector(pairs, pairs, low),
                            builder.shuffle_vector(pairs, pairs, high))
    else:
        fours = _pairs(builder, pairs, pairs, 2 * FOUR)
    return builder.add(total, fours)


def _pairs(builder: Any, left: Any, right: Any, lanes: int) -> Any:
    """The sums of neighbours among so many lanes of `left` and then `right`."""
    kind = ir.VectorType(I32, lanes // 2)
    even, odd = (ir.Constant(kind, list(range(first, lanes, 2))) for first in range(2))
    return builder.add(builder.shuffle_vector(left, right, even),
                       builder.shuffle_vector(left, right, odd))
