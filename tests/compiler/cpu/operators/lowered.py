"""Graph operations lowered for the CPU, against what they mean in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

import microtron.compiler.cpu.operators  # noqa: F401, registers them
from microtron.base.processor import host
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.cpu.registry import (
    LOWERINGS,
    NEST_LOWERINGS,
    BufferOperand,
    Operand,
    Scheduled,
)
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.tensor import Tensor
from microtron.compiler.graph.evaluate_graph import compute_node
from microtron.compiler.graph.graph import Constant, Graph, Node
from microtron.compiler.graph.operation import Operation, Value
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.nest.nest import Buffer
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.runtime.models.compiled_host import LoadedPart

from ....emulated import CHOICE, chosen, run_part

Array = np.ndarray[Any, Any]


def typed(array: Array, quantization: Quantization | None = None) -> Value:
    return Value(TensorType(array.shape, array.dtype.name, quantization), array)


def meaning(operation: Operation, result: TensorType, values: list[Value]) -> Array:
    """What the graph says."""
    operation.check(result, *(value.type for value in values))
    return compute_node(Node(operation, result), values)


def lowered(operation: Operation, result: TensorType, values: list[Value],
            constant: tuple[int, ...] = ()) -> Array:
    """What its expression, or its nest, says. Operands in some places are constants."""
    known = [value.array if place in constant else None for place, value in enumerate(values)]
    if type(operation) in NEST_LOWERINGS:
        return _interpret(operation, result, values, known)
    operands = [Operand(value.type, Tensor(f"x{place}", value.type.shape, value.type.dtype), array)
                for place, (value, array) in enumerate(zip(values, known, strict=True))]
    found = LOWERINGS[type(operation)](operation, result, *operands)
    tensor = found.tensor if isinstance(found, Scheduled) else found
    assert (tensor.shape, tensor.dtype) == (result.shape, result.dtype)
    return evaluate(tensor, {operand.tensor: value.array
                             for operand, value in zip(operands, values, strict=True)})


def _interpret(operation: Operation, result: TensorType, values: list[Value],
                 known: list[Array | None]) -> Array:
    operands = [BufferOperand(value.type, Buffer(f"x{place}", value.type.shape, value.type.dtype),
                              array)
                for place, (value, array) in enumerate(zip(values, known, strict=True))]
    target = Buffer("y", result.shape, result.dtype)
    nest = NEST_LOWERINGS[type(operation)](operation, result, target, *operands)
    verify_nest(nest)
    given = {operand.buffer: value.array for operand, value in zip(operands, values, strict=True)}
    return interpret(nest, {each: given[each] for each in nest.inputs})[target]


def compiled(operation: Operation, result: TensorType, values: list[Value],
             constant: tuple[int, ...] = ()) -> Array:
    """What the machine code of a graph of this one node computes, here or in an emulator."""
    names = operation.operands()
    assert len(names) == len(values)
    fresh = iter(f"x{place}" for place in range(len(values)))
    renamed = operation.rename_operands(lambda name: next(fresh))
    given = {f"x{place}": value for place, value in enumerate(values)}
    constants = {name: Constant(value.type, value.array) for place, (name, value) in enumerate(
        given.items()) if place in constant}
    inputs = {name: value.type for name, value in given.items() if name not in constants}
    graph = Graph(inputs, constants, {"y": Node(renamed, result)}, ("y",))
    arrays = {name: given[name].array for name in inputs}
    processor = chosen()
    if processor is not None:
        return run_part(compile_part(graph, processor.target), arrays, processor)["y"]
    return LoadedPart(compile_part(graph, host()), 1)(arrays)["y"]


def check(operation: Operation, *values: Value, result: TensorType | None = None,
          constant: tuple[int, ...] = (), relative: float = 2e-6,
          absolute: float | None = None) -> Array:
    """Integers are the same; real numbers are near, and special ones the same. Returns what the
    expression gives."""
    types = [value.type for value in values]
    result = operation.infer(*types) if result is None else result
    if not result.size:             # nothing is computed
        return np.zeros(result.shape, result.dtype)
    expected = meaning(operation, result, list(values))
    found = lowered(operation, result, list(values), constant)
    _compare(found, expected, result, relative, absolute)
    if CHOICE:              # takes minutes
        _compare(compiled(operation, result, list(values), constant), expected, result, relative,
                 absolute)
    return found


def _compare(found: Array, expected: Array, result: TensorType, relative: float,
             absolute: float | None) -> None:
    if result.is_float:
        precision = {"float16": 2e-3, "float32": relative, "float64": relative * 1e-7}
        scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=0).astype(np.float64)
        near = precision[result.dtype]
        np.testing.assert_allclose(
            found, expected, near, near * 0.1 * scale if absolute is None else absolute)
    else:
        np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
