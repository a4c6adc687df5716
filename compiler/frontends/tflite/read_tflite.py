"""A TFLite file read into a graph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....base.checked_values import list_names, show_name
from ...graph.builder import Builder
from ...graph.graph import Graph
from ...graph.types import GraphError, Shape, TensorType
from ..given_inputs import GivenInputs, check_shape, sizes_text, value_array
from ..proposals import OpenInput, options_text, working_proposal
from .operator_node import NOT_IN_GRAPHS, RULES, Reading
from .rules import (
    translate_convolution,
    translate_elementwise,
    translate_images,
    translate_matmul,
    translate_pool,
    translate_reduction,
    translate_sequential,
    translate_shape,
    translate_slices,
    translate_softmax,
    translate_unary,
    translate_variables,
)
from .tflite_file import DTYPES, OPEN, Model, decode_model

# Importing them declares their rules.
READERS = (translate_convolution, translate_elementwise, translate_images, translate_matmul,
           translate_pool, translate_reduction, translate_sequential, translate_shape,
           translate_slices, translate_softmax, translate_unary, translate_variables)


def read_tflite(data: bytes, name: str, shapes: Mapping[str, Shape] | None = None,
                values: Mapping[str, object] | None = None) -> Graph:
    """The graph of a TFLite file's network. `name` is what errors call the file, `shapes` are those
    of inputs that it leaves open, `values` take the place of inputs."""
    try:
        model = decode_model(data)
        check_operators(model)
        with np.errstate(all="ignore"):         # tiny scales make infinities, which are refused
            return _read_or_propose(model, name, GivenInputs(shapes or {}, values or {}))
    except GraphError as error:
        raise GraphError(f"{show_name(name)}: {error}") from None


def _read_or_propose(model: Model, name: str, given: GivenInputs) -> Graph:
    """The graph. If there is none but inputs are open, the error proposes shapes for them."""
    def read(given: GivenInputs) -> GivenInputs:
        _Reader(Reading(model, Builder(name)), given).graph()
        return given

    try:
        return _Reader(Reading(model, Builder(name)), given).graph()
    except GraphError as error:
        tensors = {each.name: each for each in (model.tensors[index] for index in model.inputs)
                   if each.name not in given.values}
        inputs = [OpenInput(each.name, given.shapes.get(each.name, each.sizes),
                            [""] * len(each.sizes), each.dtype.startswith("float"))
                  for each in tensors.values()]
        waiting = [each for each in inputs if None in (each.sizes or ())]
        if not waiting:
            raise
        found = working_proposal(inputs, given, read)
        places = list_names([f"{show_name(each.name)} ({sizes_text(each.sizes or ())})"
                             for each in waiting])
        hint = f"give them, as in {options_text(found)}" if found else "--shape gives others"
        raise GraphError(f"{error}; sizes of {places} are open: {hint}") from None


def check_operators(model: Model) -> None:
    """Refuse a model with all of the operators that are not supported."""
    unknown: dict[str, int] = {}
    for subgraph in translate_variables.subgraphs_of(model):
        for operator in subgraph.operators:
            if operator.name not in RULES:
                unknown.setdefault(operator.name, operator.number)
    if unknown:
        places = [f"{show_name(each)} (operator {number})" for each, number in unknown.items()]
        raise GraphError(f"{list_names(places)}: not supported; docs/models.md lists the operators "
                         f"that are")


class _Reader:
    def __init__(self, reading: Reading, given: GivenInputs):
        self.reading = reading
        self.model = reading.model
        self.given = given

    def graph(self) -> Graph:
        if not self.model.outputs:
            raise GraphError("it has no output")
        self.given.check_names(self.model.tensors[index].name for index in self.model.inputs)
        for index in self.model.inputs:
            self._input(index)
        translate_variables.find_handles(self.reading)
        self.reading.read_operators()
        outputs = tuple(self.reading.name_of(index) for index in self.model.outputs)
        self.reading.variables.finish(self.reading.builder, outputs)
        return self.reading.builder.graph(outputs)

    def _input(self, index: int) -> None:
        tensor = self.model.tensors[index]
        if tensor.dtype not in DTYPES.values() or tensor.dtype in NOT_IN_GRAPHS:
            raise GraphError(f"the input {tensor.title} is {tensor.dtype}, which is not "
                             f"supported")
        if index in self.reading.names:
            raise GraphError(f"{tensor.title} is named twice among the inputs")
        name, builder = tensor.name, self.reading.builder
        shape = self.given.shapes.get(name)
        if shape is not None:
            check_shape(name, shape, tensor.sizes)
        if name in self.given.values:
            array = value_array(name, self.given.values[name], shape or tensor.sizes, tensor.dtype)
            self.reading.names[index] = builder.constant(name, array, tensor.quantization)
            return
        if shape is None and OPEN in tensor.shape:
            raise GraphError(f"the input {tensor.title} has no fixed shape")
        type_ = TensorType(shape or tensor.shape, tensor.dtype, tensor.quantization)
        self.reading.names[index] = builder.input(name, type_)
