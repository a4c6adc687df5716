"""Operators that give what is known: constants, shapes and ranges; and some that do nothing."""

from __future__ import annotations

from math import ceil, isfinite

import numpy as np

from ....graph.operations.data_movement.indexing import Expand
from ....graph.types import GraphError
from ..call import Call
from ..operator_table import operator
from ..reader import LARGEST_FOLDED


@operator("Constant", "value value_float value_floats value_int value_ints")
def constant(call: Call) -> None:
    array = call.tensor_attribute("value")
    reals, integers = call.reals("value_floats"), call.list("value_ints")
    if array is None and reals is not None:
        array = np.array(reals, np.float32)
    if array is None and integers is not None:
        array = np.array(integers, np.int64)
    if array is None and "value_float" in call.attributes:
        array = np.array(call.real("value_float", 0), np.float32)
    if array is None and "value_int" in call.attributes:
        array = np.array(call.integer("value_int", 0), np.int64)
    if array is None:
        raise GraphError("there is no value")
    name = call.result
    if name in call.reader.names or name in call.reader.arrays:
        raise GraphError(f"{name} is computed twice")
    call.reader.arrays[name] = array


@operator("ConstantOfShape", "value")
def constant_of_shape(call: Call) -> None:
    value = call.tensor_attribute("value")
    value = np.zeros(1, np.float32) if value is None else value
    if value.size != 1:
        raise GraphError(f"value has {value.size} numbers, but must be a single one")
    shape = call.integers(0, "the shape")
    call.give(Expand(x=call.constant(value.reshape(())), shape=shape))


@operator("Shape", "start end")
def shape(call: Call) -> None:
    sizes = call.type(0).shape
    start, end = call.integer("start", 0), call.integer("end", len(sizes))
    call.give_existing(call.constant(np.array(sizes[start:end], np.int64)))


@operator("Size")
def size(call: Call) -> None:
    call.give_existing(call.scalar(call.type(0).size, "int64"))


@operator("Range")
def range_(call: Call) -> None:
    start, limit, step = (call.number(each, what) for each, what
                          in enumerate(("start", "limit", "delta")))
    if not all(map(isfinite, (start, limit, step))) or step == 0:
        raise GraphError(f"a range from {start} to {limit} in steps of {step} has no end")
    count = (limit - start) / step
    if count > LARGEST_FOLDED:
        raise GraphError(f"a range of {count:.0f} numbers has more than {LARGEST_FOLDED}")
    dtype = call.type(0).dtype
    call.give_existing(call.constant((start + step * np.arange(max(ceil(count), 0))).astype(dtype)))


@operator("Identity")
def identity(call: Call) -> None:
    call.give_existing(call.tensor(0))


@operator("Dropout", "ratio seed is_test")
def dropout(call: Call) -> None:
    ratio = call.number(1, "ratio") if call.has(1) else 0.5
    if call.has(2) and call.number(2, "training_mode") and ratio:
        raise GraphError("training_mode is set, but only inference is supported")
    call.give_existing(call.tensor(0))
    if any(call.node.output[1:]):
        call.give(Expand(x=call.scalar(True, "bool"), shape=call.type(0).shape), 1)
