"""A numba type for a vector of four 32-bit lanes, and range checks of tile indices.

Nothing is checked. Importing this module imports numba.
"""

from __future__ import annotations

from numba import types

from ..compiled.numba_types import Builder, Context, Intrinsic, Kind, Signature, Word, Words
from ..compiled.vectors import (
    I8,
    I32,
    I64,
    broadcast,
    extending,
    helper,
    intrinsic,
    load,
    number_at,
    store,
    vector,
)

FOUR, NUMBER_BYTES, LOOPS = 4, 4, 3
LANES, WIDE_LANES, BYTE_LANES = (vector(kind, FOUR) for kind in (I32, I64, I8))


class Four(types.Type):
    """Four 32-bit numbers."""

    def __init__(self) -> None:
        super().__init__(name="Four")


FOUR_NUMBERS = Four()


def _model(manager: Context, four: Four) -> Context:
    return extending.models.PrimitiveModel(manager, four, LANES)


extending.register_model(Four)(_model)


@intrinsic
def four_at(context: Context, address: Kind) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        return load(builder, values[0], LANES, NUMBER_BYTES)
    return FOUR_NUMBERS(types.int64), generate


@intrinsic
def four_times(context: Context, number: Kind) -> Intrinsic:
    """The same number in every lane."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        return broadcast(builder, builder.trunc(values[0], I32), FOUR)
    return FOUR_NUMBERS(types.int64), generate


@intrinsic
def write_numbers(context: Context, value: Kind, address: Kind) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        store(builder, values[0], values[1], NUMBER_BYTES)
        return context.get_dummy_value()
    return types.void(FOUR_NUMBERS, types.int64), generate


@intrinsic
def write_bytes(context: Context, value: Kind, address: Kind) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        store(builder, builder.trunc(values[0], BYTE_LANES), values[1])
        return context.get_dummy_value()
    return types.void(FOUR_NUMBERS, types.int64), generate


@helper
def walk_stays_inside(base: int, loops: int, strides: int, limit: int) -> bool:
    """Whether `base + Σ counter × stride` stays between 0 and `limit` - 1 in all iterations of
    three loops. There is at least one."""
    low = high = base
    for loop in range(LOOPS):
        reach = (number_at(loops, loop) - 1) * number_at(strides, loop)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low >= 0 and high < limit
