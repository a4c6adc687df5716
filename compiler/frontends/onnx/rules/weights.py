"""Weights, rearranged once and for all while a model is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ....graph.operation import Operation
from ....graph.operations.pointwise.quantize import Dequantize
from ....graph.types import Array, Quantization
from ..call import Call


def rearrange(call: Call, tensor: str, change: Callable[[Array], Array], axes: Mapping[int, int],
              otherwise: Operation) -> str:
    """Weights in another order. Constants, and real numbers that constants stand for, are changed
    at once, so that scales of each channel stay with them: `axes` says where each axis goes. What
    is computed goes through an operation instead."""
    builder = call.reader.builder
    if tensor in builder.constants:
        known = builder.constants[tensor]
        quantization = known.type.quantization
        return call.reader.builder.constant(tensor, change(known.array), _along(
            quantization, axes, len(known.type.shape)))
    node = builder.nodes.get(tensor)
    if node is not None and isinstance(node.operation, Dequantize) and (
            node.operation.x in builder.constants):
        stored = rearrange(call, node.operation.x, change, axes, otherwise)
        return call.add(Dequantize(x=stored))
    return call.move(otherwise, tensor)


def _along(quantization: Quantization | None, axes: Mapping[int, int],
           rank: int) -> Quantization | None:
    """Scales on the axis to which theirs went."""
    if quantization is None or quantization.axis is None:
        return quantization
    return replace(quantization, axis=axes[quantization.axis % rank])
