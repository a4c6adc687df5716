"""Softmax and other norms."""

from __future__ import annotations

from ....graph.operations.fixed_point import FixedPointSoftmax
from ....graph.operations.normalization import LocalResponseNorm, LogSoftmax, Softmax
from ..reading import Node, reads


@reads("SOFTMAX", options="SoftmaxOptions")
def softmax(node: Node) -> None:
    """Along the last axis. Of 8-bit numbers, in the reference kernels' fixed-point arithmetic."""
    beta = float(node.option("Beta"))
    kind = FixedPointSoftmax if node.type(0).is_quantized else Softmax
    node.add(kind(x=node.input(0), beta=beta))


@reads("LOG_SOFTMAX")
def log_softmax(node: Node) -> None:
    node.add(LogSoftmax(x=node.input(0)))


@reads("LOCAL_RESPONSE_NORMALIZATION", options="LocalResponseNormalizationOptions")
def local_response_normalization(node: Node) -> None:
    radius = node.option("Radius")
    node.add(LocalResponseNorm(
        x=node.input(0), before=radius, after=radius, alpha=float(node.option("Alpha")),
        beta=float(node.option("Beta")), bias=float(node.option("Bias"))))
