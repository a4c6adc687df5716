"""Quantization simulated in float on the CPU half: one compiled graph, whose weights and scales are
inputs, so that every candidate runs without compiling anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..compiler.graph.graph import Graph
from ..compiler.graph.operations.layers.matmul import MatMul
from ..compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from ..compiler.graph.operations.pointwise.logic import Where
from ..compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from ..compiler.graph.types import TensorType
from ..compiler.passes.graph_edit import Edit
from .execution import GraphRunner
from .parameters import HIGH, LOW, Array, Parameters, Scale
from .prepare import PRODUCTS
from .selection import Selection

ONE = TensorType((1,), "float32")
FLAG = TensorType((1,), "bool")
ROUNDING = ("unit", "low", "high")          # inputs of a group, besides whether it is rounded
REMEMBERED = 256 << 20                      # bytes of the float model's results, of all samples


@dataclass
class Simulator:
    """Runs a selection with any parameters. `run` gives the float numbers of every point before
    they are rounded, and all outputs. Without parameters, it is the float model."""

    selection: Selection

    def __post_init__(self) -> None:
        self._part = GraphRunner(build_simulation(self.selection))
        self._last: tuple[Parameters | None, dict[str, Array]] | None = None
        self.float_arrays = {name: array for layer in self.selection.layers
                             for name, array in float_layer(self.selection, layer).items()}
        self._groups = tuple(dict.fromkeys(self.selection.groups.values()))

    @property
    def float_arrays(self) -> dict[str, Array]:
        """The weights and biases of the float model, by the names of the inputs for them."""
        return self._float_arrays

    @float_arrays.setter
    def float_arrays(self, arrays: dict[str, Array]) -> None:
        self._float_arrays = arrays
        self._known: dict[int, tuple[Mapping[str, Array], dict[str, Array]]] = {}
        self._room = REMEMBERED

    def run(self, sample: Mapping[str, Array],
            parameters: Parameters | None = None) -> dict[str, Array]:
        """The float model's results for a sample are remembered while there is room: calibration
        goes through the samples several times."""
        if parameters is not None:
            return self._run(sample, parameters)
        known = self._known.get(id(sample))
        if known is not None:
            return known[1]
        found = self._run(sample, None)
        size = sum(array.nbytes for array in (*found.values(), *sample.values()))
        if size <= self._room:
            self._room -= size
            self._known[id(sample)] = sample, found         # which keeps the id taken
        return found

    def _run(self, sample: Mapping[str, Array], parameters: Parameters | None) -> dict[str, Array]:
        if self._last is None or self._last[0] is not parameters:
            self._last = parameters, self._feeds(parameters)
        return self._part({**self.float_arrays, **self._last[1], **sample})

    def _feeds(self, parameters: Parameters | None) -> dict[str, Array]:
        """The inputs that say how to round, and the weights that are rounded. Many samples run with
        the same."""
        feeds: dict[str, Array] = {}
        scales = {} if parameters is None else parameters.scales
        for group in self._groups:
            feeds |= _rounding(group, scales.get(group))
        for layer, weights in ({} if parameters is None else parameters.weights).items():
            feeds[weights_input(layer)] = weights.dequantized
            feeds[bias_input(layer)] = weights.bias.astype(np.float32)
        return feeds


def weights_input(layer: str) -> str:
    return f"{layer} weights"


def bias_input(layer: str) -> str:
    return f"{layer} bias"


def _rounding(group: str, scale: Scale | None) -> dict[str, Array]:
    """What rounds the points of a group; without a scale, they stay as they are."""
    numbers = (1, LOW, HIGH) if scale is None else (
        scale.scale, LOW - scale.zero, HIGH - scale.zero)
    found: dict[str, Array] = {f"{group} {word}": np.full(1, each, np.float32)
                               for word, each in zip(ROUNDING, numbers, strict=True)}
    found[f"{group} rounds"] = np.full(1, scale is not None)
    return found


def float_layer(selection: Selection, layer: str) -> dict[str, Array]:
    """The float weights and bias of a layer, by the names of the inputs for them."""
    operation = selection.graph.nodes[layer].operation
    assert isinstance(operation, PRODUCTS)
    weights = selection.graph.array(selection.weights(layer))
    if weights is None:
        return {}
    channels = weights.shape[-1 if isinstance(operation, MatMul) else 0]
    bias = selection.graph.array(operation.bias)
    return {weights_input(layer): weights,
            bias_input(layer): np.zeros(channels, np.float32) if bias is None else bias}


def build_simulation(selection: Selection) -> Graph:
    """The float graph with a rounding after each point, and weights and scales as inputs."""
    graph = selection.graph
    edit = Edit(graph)
    inputs = dict(graph.inputs)
    for group in dict.fromkeys(selection.groups.values()):
        inputs |= {f"{group} {word}": ONE for word in ROUNDING}
        inputs[f"{group} rounds"] = FLAG
    rounded: dict[str, str] = {}
    for point in selection.groups:
        if point not in graph.nodes:                    # an input or a constant
            rounded[point] = _round(edit, selection, point)
    for name, node in graph.nodes.items():
        seen = {each: rounded[each] for each in node.operation.operands() if each in rounded and (
            name in selection.nodes or each in selection.nodes)}
        operation = node.operation.rename_operands(lambda each, seen=seen: seen.get(each, each))  # type: ignore[misc]
        if name in selection.layers and selection.weights(name) is not None:
            arrays = float_layer(selection, name)
            inputs |= {each: TensorType(array.shape, str(array.dtype))
                       for each, array in arrays.items()}
            weights, bias = arrays
            operation = (replace(operation, right=weights, bias=bias)
                         if isinstance(operation, MatMul)
                         else replace(operation, weights=weights, bias=bias))  # type: ignore[call-arg]
        edit.put(name, operation, node.type, node.origin)
        if name in selection.groups:
            rounded[name] = _round(edit, selection, name)
    outputs = tuple(dict.fromkeys(
        [*graph.outputs, *(each for each in selection.groups if each in graph.nodes),
         *selection.ends]))
    return replace(edit.finish(), inputs=inputs, outputs=outputs)


def _round(edit: Edit, selection: Selection, point: str) -> str:
    group, type_ = selection.groups[point], selection.graph.type_of(point)
    unit, low, high = (f"{group} {word}" for word in ROUNDING)

    def put(word: str, operation: Binary | Unary | Where) -> str:
        name = edit.fresh(f"{point} {word}")
        edit.put(name, operation, type_)
        return name

    steps = put("steps", Binary(kind=BinaryKind.DIV, left=point, right=unit))
    whole = put("whole", Unary(kind=UnaryKind.ROUND, x=steps))
    above = put("above", Binary(kind=BinaryKind.MAX, left=whole, right=low))
    inside = put("inside", Binary(kind=BinaryKind.MIN, left=above, right=high))
    stored = put("stored", Binary(kind=BinaryKind.MUL, left=inside, right=unit))
    return put("rounded", Where(condition=f"{group} rounds", left=stored, right=point))
