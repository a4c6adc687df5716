"""The quantized graph: Quantize and Dequantize at every point, integers for weights and biases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..compiler.graph.graph import Graph
from ..compiler.graph.operation import Operation
from ..compiler.graph.operations.layers.matmul import MatMul
from ..compiler.graph.operations.pointwise.quantize import Dequantize, Quantize
from ..compiler.graph.types import Quantization, TensorType
from ..compiler.graph.verify_graph import verify_graph
from ..compiler.passes.graph_edit import Edit
from ..compiler.passes.remove_dead import remove_dead
from .parameters import Parameters, Scale
from .prepare import PRODUCTS
from .selection import Selection, data_of

LARGEST_SUM = 2.0 ** 30         # of a stored bias, with room for the products


def insert(selection: Selection, parameters: Parameters) -> Graph:
    """The graph in QDQ form. Outputs keep their names and stay float."""
    found = remove_dead(_Insertion(selection, parameters).graph())
    verify_graph(found)
    return found


@dataclass
class _Insertion:
    selection: Selection
    parameters: Parameters
    edit: Edit = field(init=False)
    real: dict[str, str] = field(default_factory=dict)      # point → its numbers after storing
    made: dict[str, str] = field(default_factory=dict)      # output → its numbers before storing

    def __post_init__(self) -> None:
        self.edit = Edit(self.selection.graph)

    def graph(self) -> Graph:
        selection, graph = self.selection, self.selection.graph
        for point in selection.groups:
            if point not in graph.nodes:
                self._store(point)
        for name, node in graph.nodes.items():
            operation = node.operation.rename_operands(
                lambda each, name=name: self._operand_for(name, each))  # type: ignore[misc]
            if name in self.parameters.weights:
                operation = self._quantize_weights(name, operation)
            target = name
            if name in selection.groups and name in graph.outputs and name in selection.nodes:
                target = self.made[name] = self.edit.fresh(f"{name}.real")
            self.edit.put(target, operation, node.type, node.origin)
            if name in selection.groups:
                self._store(name)
        return self.edit.finish()

    def _operand_for(self, reader: str, tensor: str) -> str:
        """What a node reads: stored numbers, unless both it and the tensor's maker are float."""
        stored = tensor in self.real and (
            reader in self.selection.nodes or self.selection.is_made_of_integers(tensor))
        return self.real[tensor] if stored else self.made.get(tensor, tensor)

    def _store(self, point: str) -> None:
        scale = self.parameters.scales[self.selection.groups[point]]
        type_ = self.selection.graph.type_of(point)
        stored = replace(type_, dtype="int8", quantization=scale.quantization)
        constant = self.selection.graph.array(point)
        if constant is not None:
            integers = np.clip(np.rint(constant / np.float32(scale.scale)) + scale.zero, -128, 127)
            quantized = self.edit.constant(f"{point}.quantized", integers.astype(np.int8),
                                           scale.quantization)
        else:
            quantized = self.edit.fresh(f"{point}.quantized")
            self.edit.put(quantized, Quantize(x=self.made.get(point, point)), stored)
        dequantized = point if point in self.made else self.edit.fresh(f"{point}.dequantized")
        self.edit.put(dequantized, Dequantize(x=quantized), replace(type_, dtype="float32"))
        self.real[point] = dequantized

    def _quantize_weights(self, name: str, operation: Operation) -> Operation:
        assert isinstance(operation, PRODUCTS)
        weights = self.parameters.weights[name]
        assert weights.stored is not None
        known = Quantization(tuple(weights.scales.tolist()), (0,), weights.axis)
        matrix = self._dequantize(f"{name}.weights", weights.stored, known)
        original = self.selection.graph.nodes[name].operation
        assert isinstance(original, PRODUCTS)
        data = self.parameters.scales[self.selection.groups[data_of(original)]]
        bias = self._bias(name, data)
        if isinstance(operation, MatMul):
            return replace(operation, right=matrix, bias=bias)
        return replace(operation, weights=matrix, bias=bias)

    def _bias(self, name: str, data: Scale) -> str | None:
        weights = self.parameters.weights[name]
        if not weights.bias.any():
            return None
        units = np.float32(data.scale) * weights.scales
        sums = np.clip(np.rint(weights.bias.astype(np.float64) / units), -LARGEST_SUM, LARGEST_SUM)
        return self._dequantize(f"{name}.bias", sums.astype(np.int32),
                                Quantization(tuple(units.tolist()), (0,), 0))

    def _dequantize(self, name: str, stored: np.ndarray[tuple[int, ...], np.dtype[np.integer]],
                    known: Quantization) -> str:
        constant = self.edit.constant(f"{name}.quantized", stored, known)
        target = self.edit.fresh(name)
        self.edit.put(target, Dequantize(x=constant), TensorType(stored.shape, "float32"))
        return target
