"""A numba type for sums of tile products in vector registers.

A `Sums` value belongs to a few columns of several accumulator tiles, in vector registers: `nothing`
creates one, `plus` adds the products of rows of as many activation tiles with the same rows of a
weight tile, so that each is read once; `settle` reduces each column and writes it. Until then a
column may occupy several lanes:

    lanes≥16:   a vector for each column, all of whose numbers belong to it
    lanes=16:   with AVX-512, two columns in a vector, one in each half; with its products of
                bytes (VNNI), four, and further vectors of all tiles hold what to subtract
    lanes=8:    two columns in a vector
    lanes=4:    four columns in a vector, one number each
    depthwise:  four columns in a vector, one number each

Sums wrap at 32 bits, so that their order does not matter. LLVM's portable vectors are used because
loops in plain numba reach a tenth of the speed: here sdot, pmaddwd or vpdpbusd multiplies. Nothing
is checked. Importing this module imports numba.
"""

from __future__ import annotations

import llvmlite.binding
from llvmlite import ir
from numba import types

from ..compiled.numba_types import (
    Builder,
    Context,
    Intrinsic,
    Kind,
    LlvmType,
    Signature,
    Word,
    Words,
)
from ..compiled.vectors import (
    I8,
    I32,
    I64,
    NUMBER,
    ON_ARM,
    broadcast,
    cgutils,
    extending,
    intrinsic,
    intrinsic_of_constants,
    load,
    offset_address,
    store,
    vector,
)
from .gemm_plan import ELEMENT, LEFT, STARTS, TO

REGISTER = 16               # bytes of the vectors
FOUR = 4                    # 32-bit lanes of such a vector
BYTES, PRODUCTS = vector(I8, REGISTER), vector(I32, REGISTER)
NUMBERS, LONG, LONGEST = (vector(I32, FOUR << each) for each in range(3))

# The LLVM intrinsic for partial sums that Arm's dot product of bytes implements; since version 20
# it has had two names. Elsewhere sums of neighbours are best: they map to x86's pmaddwd.
LLVM = llvmlite.binding.llvm_version_info[0]
PARTIAL_SUM = "" if not ON_ARM or LLVM < 20 else (
    f"llvm{'.experimental' if LLVM < 22 else ''}.vector.partial.reduce.add.v4i32.v16i32")
FEATURES = {} if ON_ARM else llvmlite.binding.get_host_cpu_features()
AVX_512 = bool(FEATURES.get("avx512bw"))
# Four products of bytes added to each number at once. The first factors are unsigned: 128 is added
# to them, and 128 times the second ones are subtracted in the end.
VNNI = AVX_512 and bool(FEATURES.get("avx512vnni"))
BYTE_SUM, TO_UNSIGNED = "llvm.x86.avx512.vpdpbusd.512", 128
# The size of a Sums value: x86 has half as many registers without AVX-512.
VECTORS, MOST_COLUMNS, MOST_TILES = ((24, 8, 4) if PARTIAL_SUM else
                                     (16, 8, 4) if AVX_512 else (8, 4, 4))


def adds_bytes(lanes: int, depthwise: bool) -> bool:
    return VNNI and lanes == REGISTER and not depthwise


def most_columns(lanes: int, depthwise: bool) -> int:
    return 2 * MOST_COLUMNS if adds_bytes(lanes, depthwise) else MOST_COLUMNS


class Sums(types.Type):
    """For activation tiles with `lanes` lanes: `columns` columns of `tiles` accumulator tiles."""

    def __init__(self, lanes: int, columns: int, tiles: int, depthwise: bool):
        self.lanes, self.columns, self.tiles, self.depthwise = lanes, columns, tiles, depthwise
        super().__init__(name=f"Sums({lanes}, {columns}, {tiles}, {depthwise})")

    @property
    def adds_bytes(self) -> bool:
        """Whether VNNI adds the products, with four columns in a vector."""
        return adds_bytes(self.lanes, self.depthwise)

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return (self.tiles + self.adds_bytes) * self.vectors

    @property
    def kind(self) -> LlvmType:
        """The type of its vectors. If neighbours are added, longer vectors halve the number of
        sums."""
        if self.lanes < REGISTER or self.depthwise or PARTIAL_SUM:
            return NUMBERS
        return LONGEST if AVX_512 and self.lanes == REGISTER else LONG

    @property
    def vectors(self) -> int:
        """How many each tile has."""
        if self.depthwise or self.adds_bytes:
            return self.columns // FOUR
        return self.columns * min(self.lanes, REGISTER) // (
            2 * REGISTER if self.kind == LONGEST else REGISTER)


def _model(manager: Context, sums: Sums) -> Context:
    """In LLVM, an array of vectors, which the optimizer splits into registers."""
    return extending.models.PrimitiveModel(manager, sums,
                                           ir.ArrayType(sums.kind, sums.size))


extending.register_model(Sums)(_model)


@intrinsic_of_constants
def nothing(context: Context, lanes: Kind, columns: Kind, tiles: Kind,
            depthwise: Kind) -> Intrinsic:
    """Sums without products. All parameters are constants."""
    kind = Sums(lanes.literal_value, columns.literal_value, tiles.literal_value,
                bool(depthwise.literal_value))

    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        return ir.Constant(context.get_value_type(kind), None)
    return kind(lanes, columns, tiles, depthwise), generate


@intrinsic
def lefts(context: Context, sums: Kind, positions: Kind, left: Kind) -> Intrinsic:
    """The addresses of the activations of each tile: its position plus `left`."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        places = [builder.add(_part(builder, values[1], number, LEFT), values[2])
                  for number in range(sums.tiles)]
        return context.make_tuple(builder, signature.return_type, places)
    several: Kind = types.UniTuple
    return several(types.int64, sums.tiles)(sums, types.int64, types.int64), generate


@intrinsic
def plus(context: Context, sums: Kind, lefts: Kind, left: Kind, right: Kind) -> Intrinsic:
    """Add the products of rows of activation tiles, `left` bytes after `lefts`, with rows of a
    weight tile at `right`."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        totals = [builder.extract_value(values[0], each) for each in range(sums.size)]
        places = [builder.add(each, values[2])
                  for each in cgutils.unpack_tuple(builder, values[1])]
        add = (_add_lanes if sums.depthwise else _add_bytes if sums.adds_bytes else _add_products)
        add(builder, sums, totals, places, values[3])
        result = ir.Constant(context.get_value_type(sums), ir.Undefined)
        for number, total in enumerate(totals):
            result = builder.insert_value(result, total, number)
        return result
    return sums(sums, lefts, types.int64, types.int64), generate


@intrinsic
def settle(context: Context, sums: Kind, positions: Kind, to: Kind, starts: Kind,
           origin: Kind) -> Intrinsic:
    """Write the sums of each tile to `to` plus the offset of its position. They are added to the
    value there or, if both the position and `starts` say that sums start, to the value at `origin`,
    if that is not 0."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        totals, positions, to, starts, origin = values
        for number in range(sums.tiles):
            target = builder.add(to, _part(builder, positions, number, TO))
            fresh = builder.and_(starts, _part(builder, positions, number, STARTS))
            fresh = builder.icmp_signed("!=", fresh, I64(0))
            alone = builder.and_(fresh, builder.icmp_signed("==", origin, I64(0)))
            source = builder.select(builder.xor(fresh, alone), origin, target)
            columns = _columns(builder, sums, _totals(builder, sums, totals, number))
            for place, total in enumerate(columns):
                before = load(builder, offset_address(builder, source, place * REGISTER), NUMBERS,
                              FOUR)
                before = builder.select(alone, ir.Constant(NUMBERS, None), before)
                store(builder, builder.add(total, before),
                      offset_address(builder, target, place * REGISTER), FOUR)
        return context.get_dummy_value()
    return types.void(sums, *[types.int64] * 4), generate


def _totals(builder: Builder, sums: Sums, totals: Word, tile: int) -> list[Word]:
    """The vectors of a tile."""
    first, excess = tile * sums.vectors, sums.tiles * sums.vectors
    mine = [builder.extract_value(totals, first + each) for each in range(sums.vectors)]
    if not sums.adds_bytes:
        return mine
    return [builder.sub(total, builder.extract_value(totals, excess + each))
            for each, total in enumerate(mine)]


def _part(builder: Builder, elements: Word, number: int, part: int) -> Word:
    """A number from an element of a plan's list."""
    return load(builder, offset_address(builder, elements, (number * ELEMENT + part) * NUMBER), I64,
                NUMBER)


def _add_products(builder: Builder, sums: Sums, totals: list[Word], places: list[Word],
                  right: Word) -> None:
    size = 2 * REGISTER if sums.kind == LONGEST else REGISTER
    for first in range(0, sums.lanes, REGISTER):
        rows = [_row(builder, offset_address(builder, place, first), min(sums.lanes, REGISTER),
                     size) for place in places]
        for each in range(sums.vectors):
            weights = load(builder, offset_address(builder, right,
                                                   each * max(sums.lanes, size) + first),
                           vector(I8, size))
            for number, row in enumerate(rows):
                at = number * sums.vectors + each
                totals[at] = _multiply_add(builder, totals[at], row, weights, sums.lanes)


def _add_bytes(builder: Builder, sums: Sums, totals: list[Word], places: list[Word],
               right: Word) -> None:
    size = FOUR * REGISTER
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(LONGEST, [LONGEST] * 3), BYTE_SUM)
    excess = ir.Constant(vector(I8, size), [TO_UNSIGNED] * size)
    rows = [builder.bitcast(builder.xor(_row(builder, place, REGISTER, size), excess), LONGEST)
            for place in places] + [builder.bitcast(excess, LONGEST)]
    for each in range(sums.vectors):
        weights = load(builder, offset_address(builder, right, each * size), LONGEST)
        for number, row in enumerate(rows):
            at = number * sums.vectors + each
            totals[at] = builder.call(function, [totals[at], row, weights])


def _add_lanes(builder: Builder, sums: Sums, totals: list[Word], places: list[Word],
               right: Word) -> None:
    lanes = vector(I8, sums.columns)
    wide = vector(I32, sums.columns)
    weights = builder.sext(load(builder, right, lanes), wide)
    for number, place in enumerate(places):
        products = builder.mul(builder.sext(load(builder, place, lanes), wide), weights)
        for each in range(sums.vectors):
            at, first = number * sums.vectors + each, each * FOUR
            four = ir.Constant(NUMBERS, list(range(first, first + FOUR)))
            totals[at] = builder.add(totals[at], builder.shuffle_vector(products, products, four))


def _columns(builder: Builder, sums: Sums, vectors: list[Word]) -> list[Word]:
    """One number for each column."""
    if sums.adds_bytes:
        return _narrow(builder, sums, [quarter for each in vectors for half in _halves(
            builder, each, 2 * FOUR) for quarter in _halves(builder, half, FOUR)])
    if sums.kind == LONGEST:
        vectors = [half for each in vectors for half in _halves(builder, each, 2 * FOUR)]
    if sums.kind != NUMBERS:
        vectors = [builder.add(*_halves(builder, each, FOUR)) for each in vectors]
    return _narrow(builder, sums, vectors)


def _narrow(builder: Builder, sums: Sums, vectors: list[Word]) -> list[Word]:
    """The same with a number for each column."""
    while len(vectors) * FOUR > sums.columns:
        vectors = [_pairs(builder, left, right, 2 * FOUR)
                   for left, right in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors


def _halves(builder: Builder, whole: Word, lanes: int) -> list[Word]:
    """The two halves of a vector, each of so many lanes."""
    kind = vector(I32, lanes)
    return [builder.shuffle_vector(whole, whole, ir.Constant(kind, list(range(first,
                                                                              first + lanes))))
            for first in (0, lanes)]


def _row(builder: Builder, place: Word, lanes: int, size: int) -> Word:
    """`lanes` bytes, repeated until there are `size`."""
    number = load(builder, place, ir.IntType(8 * lanes))
    return builder.bitcast(broadcast(builder, number, size // lanes), vector(I8, size))


def _multiply_add(builder: Builder, total: Word, left: Word, right: Word, lanes: int) -> Word:
    """Add products of bytes to 32-bit lanes, two or four of the same column per lane."""
    size = total.type.count * 2 if total.type == LONGEST else REGISTER
    products = builder.mul(*(builder.sext(each, vector(I32, size)) for each in (left, right)))
    if lanes >= REGISTER and PARTIAL_SUM:       # LLVM may pick any four: all are of one column
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(NUMBERS, [NUMBERS, PRODUCTS]), PARTIAL_SUM)
        return builder.call(function, [total, products])
    sums = _pairs(builder, products, products, size)
    return builder.add(total, _pairs(builder, sums, sums, 2 * FOUR) if total.type == NUMBERS
                       else sums)


def _pairs(builder: Builder, left: Word, right: Word, lanes: int) -> Word:
    """The sums of neighbouring lanes of `left`, then of `right`."""
    kind = vector(I32, lanes // 2)
    even, odd = (ir.Constant(kind, list(range(first, lanes, 2))) for first in range(2))
    return builder.add(builder.shuffle_vector(left, right, even),
                       builder.shuffle_vector(left, right, odd))
