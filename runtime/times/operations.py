"""How many operations a node of the CPU takes: products, elements and functions.

An estimate, not a count of instructions. [The CPU's half](docs/cpu.md) states the rule.
"""

from __future__ import annotations

from math import log2, prod

from ...base.classes.dataclass import dataclass
from ...compiler.graph.graph import Graph, Node
from ...compiler.graph.operations.layers.normalization import (
    InstanceNorm,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    Softmax,
)
from ...compiler.graph.operations.layers.recurrent import Gru, Lstm, Recurrent
from ...compiler.graph.operations.layers.scan import TopK
from ...compiler.graph.operations.layers.window import Pool
from ...compiler.graph.operations.layers.window_places import MaxPlace
from ...compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from ...compiler.graph.operations.pointwise.quantize import Quantize
from ...compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from ...compiler.graph.operations.tflite.fixed_point import FixedPointSoftmax
from ...compiler.graph.operations.vision.suppression import NonMaxSuppression
from ..models.compiled_model import macs_of

PASSES = 4                  # over its input that a softmax or a normalization makes
CHEAP = (UnaryKind.ABS, UnaryKind.NEG, UnaryKind.SIGN, UnaryKind.SQUARE, UnaryKind.FLOOR,
         UnaryKind.CEIL, UnaryKind.ROUND, UnaryKind.HARD_SIGMOID, UnaryKind.HARD_SWISH,
         UnaryKind.LEAKY_RELU, UnaryKind.THRESHOLDED_RELU)      # simple arithmetic


@dataclass(frozen=True)
class Operations:
    """What a node takes. `is_real` tells floats, which are slow where there is no unit for them."""

    products: int = 0           # multiply-accumulates
    elements: int = 0           # loads, simple arithmetic and a store, for one element
    functions: int = 0          # exp, tanh, erf, a power, quantizing
    is_real: bool = False

    @property
    def total(self) -> int:
        return self.products + self.elements + self.functions


def operations_of(graph: Graph, node: Node) -> Operations:
    """The operations of one node."""
    operation = node.operation
    read = [graph.type_of(each) for each in operation.operands()]
    data = sum(graph.type_of(each).size for each in set(operation.operands())
               if each not in graph.constants)
    size = max(node.type.size, data)
    real = node.type.is_float or any(each.is_float for each in read)
    products, elements, functions = macs_of(graph, node), size, 0
    match operation:
        case Pool(kernel=kernel) | MaxPlace(kernel=kernel):
            elements = node.type.size * prod(kernel)
        case Softmax() | LogSoftmax() | FixedPointSoftmax():
            elements, functions = PASSES * size, size
        case LayerNorm() | InstanceNorm() | LocalResponseNorm():
            elements = PASSES * size
        case Unary(kind=kind) if kind not in CHEAP:
            elements, functions = 0, size
        case Binary(kind=BinaryKind.POW) | Quantize():      # quantizing divides and rounds
            elements, functions = 0, size
        case Recurrent(weights=weights) | Gru(weights=weights) | Lstm(weights=weights):
            x = read[0]
            products = x.size // max(1, x.shape[-1]) * graph.type_of(weights).size
            functions = x.size
        case TopK():
            elements = size * max(1, round(log2(size or 1)))
        case NonMaxSuppression():
            elements = prod(read[0].shape[:2]) * read[0].shape[1]
        case _ if products:
            elements = node.type.size
    return Operations(products, elements, functions, real)
