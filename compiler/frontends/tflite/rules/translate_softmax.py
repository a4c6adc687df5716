"""Softmax and other norms."""

from __future__ import annotations

import numpy as np

from ....graph.operations.layers.normalization import LocalResponseNorm, LogSoftmax, Softmax
from ....graph.operations.layers.reduction import Reduce, ReduceKind
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.operations.pointwise.unary import Unary, UnaryKind
from ....graph.operations.tflite.fixed_point import FixedPointSoftmax
from ..operator_node import Node, reads
from .rule_helpers import fused_bounds

SHORTEST = 1e-6                 # a length that nothing is divided by less than


@reads("SOFTMAX", options="SoftmaxOptions")
def softmax(node: Node) -> None:
    """Along the last axis. Of 8-bit numbers, in the reference kernels' fixed-point arithmetic."""
    beta = float(node.option("Beta"))
    kind = FixedPointSoftmax if node.type(0).is_quantized else Softmax
    node.add(kind(x=node.input(0), beta=beta))


@reads("LOG_SOFTMAX")
def log_softmax(node: Node) -> None:
    node.add(LogSoftmax(x=node.input(0)))


@reads("L2_NORMALIZATION", options="L2NormOptions")
def l2_normalization(node: Node) -> None:
    """Real numbers over the root of the sum of their squares along the last axis."""
    x, shape = node.input(0), node.type(0).shape
    squares = node.step("squares", Unary(kind=UnaryKind.SQUARE, x=x))
    sums = node.step("sums", Reduce(kind=ReduceKind.SUM, x=squares, axes=(len(shape) - 1,),
                                    keep=True))
    lengths = node.step("lengths", Unary(kind=UnaryKind.SQRT, x=sums))
    least = node.constant("least", np.full((1,) * len(shape), SHORTEST, node.type(0).dtype))
    divisors = node.step("divisors", Binary(kind=BinaryKind.MAX, left=lengths, right=least))
    node.add(Binary(kind=BinaryKind.DIV, left=x, right=divisors, **fused_bounds(node)))


@reads("LOCAL_RESPONSE_NORMALIZATION", options="LocalResponseNormalizationOptions")
def local_response_normalization(node: Node) -> None:
    radius = node.option("Radius")
    node.add(LocalResponseNorm(
        x=node.input(0), before=radius, after=radius, alpha=float(node.option("Alpha")),
        beta=float(node.option("Beta")), bias=float(node.option("Bias"))))
