"""Many numbers as one, and numbers picked by index."""

from __future__ import annotations

from math import prod

from .....base.errors import MicrotronError
from .....isa.arithmetic import quantize_scale
from ....graph.operation import normalize_axes
from ....graph.operations.data_movement.indexing import Gather, GatherNd, OneHot
from ....graph.operations.layers.reduction import Arg, Reduce, ReduceKind
from ....graph.operations.tflite.eight_bit import FixedPointReduce
from ....graph.operations.tflite.fixed_point import FRACTION_BITS
from ....graph.types import GraphError
from ..operator_node import Node, reads
from .translate_elementwise import eight_bits_of
from .translate_shape import few

REDUCTIONS = {"SUM": ReduceKind.SUM, "MEAN": ReduceKind.MEAN, "REDUCE_MAX": ReduceKind.MAX,
              "REDUCE_MIN": ReduceKind.MIN, "REDUCE_PROD": ReduceKind.PROD,
              "REDUCE_ANY": ReduceKind.MAX, "REDUCE_ALL": ReduceKind.MIN}


@reads(*REDUCTIONS, options="ReducerOptions", inputs=2)
def reduce(node: Node) -> None:
    kind, keep = REDUCTIONS[node.operator.name], bool(node.option("KeepDims"))
    if node.operator.name in ("REDUCE_ANY", "REDUCE_ALL") and node.type(0).dtype != "bool":
        raise GraphError(f"the input is {node.type(0)}, but must be bool")
    shape = node.type(0).shape
    axes = normalize_axes(tuple(dict.fromkeys(
        axis + len(shape) if axis < 0 else axis for axis in node.integers(1, "the axes"))),
        len(shape))
    if kind not in (ReduceKind.SUM, ReduceKind.MEAN) or not eight_bits_of(node, 0):
        node.add(Reduce(kind=kind, x=node.input(0), axes=axes, keep=keep))
        return
    multiplier, shift = scale_of(node, prod(shape[axis] for axis in axes)
                                 if kind == ReduceKind.MEAN else 1)
    node.add(FixedPointReduce(x=node.input(0), axes=axes, keep=keep, multiplier=multiplier,
                              shift=shift))


def scale_of(node: Node, count: int) -> tuple[int, int]:
    """Multiplier and shift of a sum. For a mean the kernels divide the multiplier, after shifting
    it left by as many bits as the number of elements has."""
    if count < 1:
        raise GraphError("there is nothing to take a mean of")
    try:
        multiplier, right = quantize_scale(
            node.type(0).require_quantization().scale / node.declared_quantization().scale)
    except MicrotronError as error:
        raise GraphError(str(error)) from None
    left = FRACTION_BITS - right
    more = min(count.bit_length() - 1, 32, FRACTION_BITS + left)
    return (multiplier << more) // count, FRACTION_BITS - (left - more)


@reads("ARG_MAX", options="ArgMaxOptions", inputs=2)
def arg_max(node: Node) -> None:
    arg(node, ReduceKind.MAX)


@reads("ARG_MIN", options="ArgMinOptions", inputs=2)
def arg_min(node: Node) -> None:
    arg(node, ReduceKind.MIN)


def arg(node: Node, kind: ReduceKind) -> None:
    (axis,) = few(node.integers(1, "the axis"), 1, "an axis")
    node.add(Arg(kind=kind, x=node.input(0), axis=axis))


@reads("GATHER", options="GatherOptions", inputs=2)
def gather(node: Node) -> None:
    batch = node.option("BatchDims")
    if batch < 0:
        batch += len(node.type(1).shape)
    node.add(Gather(x=node.input(0), indices=node.input(1), axis=node.option("Axis"), batch=batch))


@reads("GATHER_ND", inputs=2)
def gather_nd(node: Node) -> None:
    node.add(GatherNd(x=node.input(0), indices=node.input(1)))


@reads("EMBEDDING_LOOKUP", inputs=2)
def embedding_lookup(node: Node) -> None:
    """Rows of a table."""
    node.add(Gather(x=node.input(1), indices=node.input(0)))


@reads("ONE_HOT", options="OneHotOptions", inputs=4)
def one_hot(node: Node) -> None:
    (depth,) = few(node.integers(1, "the depth"), 1, "a depth")
    values = [node.array(position) for position in (2, 3)]
    if any(each is None or each.size != 1 for each in values):
        raise GraphError("both values must be one constant number each")
    on, off = (each.reshape(-1)[0].item() for each in values if each is not None)
    node.add(OneHot(indices=node.input(0), depth=depth, axis=node.option("Axis"), on=on, off=off))
