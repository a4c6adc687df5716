"""A node as an operator computes it, and checks of what it reads: types, constants, weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from ...base.classes.dataclass import dataclass
from ...isa.arithmetic import quantize_scales
from ...isa.config import Config
from ..errors import CompileError
from ..graph.graph import Graph, Node
from ..graph.operations.data_movement.shape import Reshape
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.window import Conv, TransposedConv
from ..graph.operations.pointwise.binary import Binary
from ..graph.operations.pointwise.quantize import Dequantize
from ..graph.operations.scaled import SUMS, Clamped, Scaled
from ..graph.types import Array, Shape, TensorType
from ..operators.description import Description
from .axis_views import AxisView


class RefusalError(CompileError):
    """Why the accelerator does not take a node, in words that a user can act on."""


@dataclass(frozen=True)
class Task:
    """An operator with its operands: activations and constants. `axes` says in which order tensors
    have the operator's axes. Tensors are named as computed, before any reshape, and `shapes` are
    those after it."""

    spec: Description
    reads: Mapping[str, str]                        # operand → tensor
    constants: Mapping[str, Array] = field(default_factory=dict)
    axes: tuple[int, ...] | None = None             # of (image, channel, row, column)
    shapes: Mapping[str, Shape] = field(default_factory=dict)       # by operand
    views: Mapping[str, AxisView] = field(default_factory=dict)     # operands seen through moves


Settings: TypeAlias = dict[str, Any]        # fields of a description


def root(graph: Graph, tensor: str) -> str:
    """The tensor whose numbers, in the same order, another one has in a different shape."""
    while tensor in graph.nodes and isinstance(graph.nodes[tensor].operation, Reshape):
        tensor, = graph.nodes[tensor].operation.operands()
    return tensor


def activation_type(graph: Graph, tensor: str, which: str) -> TensorType:
    """The type of an activation that a node reads, `which` in messages. Raises RefusalError if it
    is none that the accelerator can read, or a constant."""
    type_ = graph.type_of(tensor)
    check_activation(type_, which)
    if tensor in graph.constants:
        raise RefusalError(f"the {which} is constant")
    return type_


def check_activation(type_: TensorType, which: str) -> None:
    """Refuse what is not int8 with one scale."""
    if type_.is_float:
        raise RefusalError("real numbers; quantize the model")
    if type_.dtype != "int8":
        raise RefusalError(f"the {which} is {type_.dtype}, but activations have int8")
    if type_.quantization is None or len(type_.quantization.scales) != 1:
        raise RefusalError(f"the {which} has not one scale and zero point")
    if not type_.size:
        raise RefusalError(f"the {which} is empty")


def check_constants(graph: Graph, node: Node) -> None:
    """Refuse real arithmetic on a quantized tensor that constants keep real: passes round none."""
    operation, reads = node.operation, [graph.nodes.get(each) for each in node.operation.operands()]
    if not node.type.is_float or not any(
            each is not None and isinstance(each.operation, Dequantize) for each in reads):
        return
    if isinstance(operation, Binary) and {operation.left, operation.right} & set(graph.constants):
        raise RefusalError("one side is a real constant, which keeps its precision")
    if isinstance(operation, Conv | TransposedConv | MatMul) and operation.bias in graph.constants:
        raise RefusalError("its weights are real, or its bias is too fine for the scale of its "
                           "products")


def epilogue_of(node: Node) -> Settings:
    """Zero point, bounds and rounding of a node's result, as an `Epilogue` has them; or that it is
    wide."""
    operation = node.operation
    assert isinstance(operation, Scaled), "others do not scale their results"
    if not is_wide(node):
        return {"zero_point_out": node.type.require_quantization().zero_point,
                "rounding": operation.rounding, **bounds_of(operation, node.type)}
    if operation.low is not None or operation.high is not None:
        raise RefusalError("bounds of results that are not scaled back to 8 bits")
    return {"wide": True}


def is_wide(node: Node) -> bool:
    """Whether a node returns its sums of products in 32 bits, without requantization."""
    return isinstance(node.operation, Conv | MatMul) and not node.operation.scales and (
        node.type.dtype == SUMS)


def bounds_of(operation: Clamped, result: TensorType) -> Settings:
    """The smallest and the largest value of a result, as descriptions have them."""
    low, high = operation.bounds(result)
    return {"low": int(low), "high": int(high)}     # type: ignore[arg-type]  # integers have bounds


def constant_of(graph: Graph, tensor: str, which: str) -> Array:
    """The numbers of a constant. Raises RefusalError if they are computed, `which` in messages."""
    array = graph.array(tensor)
    if array is None:
        raise RefusalError(f"{which} that are computed at run time")
    return array


def parameters_of(graph: Graph, bias: str | None, scales: tuple[float, ...],
                  channels: int) -> dict[str, Array]:
    """Bias, multiplier and shift of each channel. Wide results are not scaled."""
    values = (np.zeros(channels, np.int32) if bias is None
              else constant_of(graph, bias, "biases"))
    if values.dtype.kind != "i" or np.abs(values.astype(np.int64)).max(initial=0) >= 1 << 31:
        raise RefusalError(f"the bias is {values.dtype}, but must fit 32 bits")
    multipliers, shifts = quantize_scales(scales) if scales else ([1], [0])
    return {"bias": values.astype(np.int32),
            "multiplier": np.broadcast_to(multipliers, channels).astype(np.int64),
            "shift": np.broadcast_to(shifts, channels).astype(np.int64)}


def weights_of(graph: Graph, tensor: str, config: Config, most_planes: int = 1) -> Array:
    """Constant weights without their zero points. They may need a bit more than `wgt_bits` if the
    operator can add up several planes."""
    type_, array = graph.type_of(tensor), constant_of(graph, tensor, "weights")
    if type_.dtype not in ("int8", "uint8"):
        raise RefusalError(f"{type_.dtype} weights")
    values = array.astype(np.int32)
    if type_.quantization is not None:
        values = values - type_.quantization.along(type_.quantization.zero_points, array.ndim)
    if planes_of(values, config) > most_planes:
        advice = "; quantize them to 4 bits, or take wgt_bits = 8" if config.wgt_bits == 4 else ""
        raise RefusalError(f"weights from {values.min()} to {values.max()} without their zero "
                           f"point, but weights of this configuration have {config.wgt_bits} bits"
                           f"{advice}")
    return values.astype(np.int32 if most_planes > 1 else np.int8)


def planes_of(weights: Array, config: Config) -> int:
    """How many numbers of `wgt_bits` must be added to make every weight."""
    limit = 1 << config.wgt_bits - 1
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    return max(1, -(low // limit), -(-high // (limit - 1)))
