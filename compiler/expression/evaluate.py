"""What tensor expressions mean, in NumPy: slow, literal, and the judge of everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base import arrays
from ...base.arrays import Dtype
from ..errors import CompileError
from .expression import (
    ARITHMETIC,
    BOOL,
    COMPARISONS,
    FLOATS,
    INDEX,
    LOGIC,
    Axis,
    Binary,
    Call,
    Cast,
    Constant,
    Element,
    Expression,
    Reduction,
    Select,
)
from .scalars import saturate
from .tensor import Tensor, topological_order

Array = arrays.Array
Values = dict[Tensor, Array]
COMBINERS = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}
OPERATORS = {**ARITHMETIC, **COMPARISONS, **LOGIC}


def evaluate(output: Tensor, inputs: Mapping[Tensor, npt.ArrayLike]) -> Array:
    """The values of a tensor, given those of its placeholders."""
    values: Values = {}
    for tensor in topological_order(output):
        if tensor.values is not None:
            values[tensor] = tensor.values
        elif tensor.body is None:
            values[tensor] = _input_array(tensor, inputs)
        else:
            values[tensor] = evaluate_body(tensor, values)
    return values[output]


def _input_array(tensor: Tensor, inputs: Mapping[Tensor, npt.ArrayLike]) -> Array:
    if tensor not in inputs:
        raise CompileError(f"{tensor.name} is not given")
    array = np.asarray(inputs[tensor])
    if array.shape != tensor.shape or array.dtype != numpy_type(tensor.dtype):
        raise CompileError(f"{tensor.name} is {tensor.dtype} of shape {tensor.shape}, but "
                           f"{array.dtype} of shape {array.shape} is given")
    return array


def numpy_type(dtype: str) -> Dtype:
    return np.dtype(np.int64 if dtype == INDEX else np.bool_ if dtype == BOOL else dtype)


def evaluate_body(tensor: Tensor, values: Values) -> Array:
    """The values of a computed tensor, given those of the tensors it reads."""
    assert tensor.body is not None
    everything = (*tensor.axes, *tensor.reduce_axes)
    # Every axis is a dimension of its own; expressions broadcast over those they do not have.
    grid = {axis: np.arange(axis.extent).reshape(
        [-1 if number == place else 1 for place in range(len(everything))])
        for number, axis in enumerate(everything)}
    body = tensor.body
    inner = body.value if isinstance(body, Reduction) else body
    with np.errstate(all="ignore"):     # integers wrap; a select may drop anything
        result = np.broadcast_to(_Values(grid, values).of(inner),
                                 [axis.extent for axis in everything])
        if isinstance(body, Reduction):
            over = tuple(range(len(tensor.axes), len(everything)))
            result = COMBINERS[body.combiner].reduce(result, axis=over, dtype=result.dtype)
    return np.array(result, numpy_type(tensor.dtype), order="C")


class _Values:
    """What the nodes of an expression are at all places of a grid, each computed once."""

    def __init__(self, grid: Mapping[Axis, Array], values: Values):
        self.grid = grid
        self.values = values
        self.known: dict[int, Array] = {}       # by the identity of nodes

    def of(self, node: Expression) -> Array:
        if id(node) not in self.known:
            self.known[id(node)] = self._value(node)
        return self.known[id(node)]

    def _value(self, node: Expression) -> Array:
        match node:
            case Constant():
                return np.asarray(node.value, numpy_type(node.dtype))
            case Axis():
                return self.grid[node]
        operands = [self.of(each) for each in node.operands()]
        match node:
            case Binary():
                return np.asarray(OPERATORS[node.operator](*operands))
            case Cast():
                return np.asarray(as_type(operands[0], node.dtype))
            case Select():
                return np.where(*operands)
            case Call():
                return np.asarray(node.function.evaluate(*operands), numpy_type(node.dtype))
            case Element():
                return _read(self.values[node.tensor], operands)
        raise AssertionError(f"no meaning for {node}")


def as_type(value: Any, dtype: str) -> Any:
    """An array or NumPy scalar as another type. Floats become integers of 64 bits, and high bits
    are dropped: fractions are cut off, what is too large is the last number there is, and NaN is 0.
    NumPy leaves the last two to the processor."""
    if value.dtype.kind == "f" and dtype not in (*FLOATS, BOOL):
        value = saturate(value, np.dtype(np.uint64 if dtype == "uint64" else np.int64))
    return value.astype(numpy_type(dtype))


def _read(array: Array, indices: list[Array]) -> Array:
    """Elements of an array. Only values that a select does not choose have an index outside it."""
    clipped = [np.clip(index, 0, extent - 1)
               for index, extent in zip(indices, array.shape, strict=True)]
    result: Array = array[tuple(clipped)]
    return result
