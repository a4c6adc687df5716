"""Options for an ONNX model whose inputs are open: shapes, and values where it decides on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onnx import GraphProto, TensorProto

from ..given_inputs import GivenInputs
from ..proposals import OpenInput, options_text, proposals, working_proposal
from .inputs import open_inputs, resolve_symbols, sizes_of
from .onnx_file import DTYPES, array_of
from .reader import NotConstantError

REAL = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
SAME_NUMBER = ("Cast", "Gather", "Identity", "Reshape", "Squeeze", "Unsqueeze")     # of one number


def propose_options(graph: GraphProto, given: GivenInputs,
                    read: Callable[[GivenInputs], object]) -> str:
    """Options of the command line with which `read` takes the model, if some are found."""
    def complete(proposal: GivenInputs) -> GivenInputs:
        try:
            read(proposal)
        except NotConstantError as error:
            values = {name: _likely_value(graph, name) for name in error.inputs
                      if name not in proposal.shapes}
            proposal = replace(proposal, values={**proposal.values, **values})
            read(proposal)
        return proposal

    symbols = resolve_symbols(open_inputs(graph), given)
    inputs = [OpenInput(each.name, given.shapes.get(each.name, sizes_of(each, symbols)),
                        [dim.dim_param for dim in each.type.tensor_type.shape.dim],
                        each.type.tensor_type.elem_type in REAL)
              for each in open_inputs(graph) if each.name not in given.values]
    found = working_proposal(inputs, given, complete)
    return options_text(found or next(proposals(inputs, given)))


def _likely_value(graph: GraphProto, name: str) -> int:
    """A number that an input is compared with, which is one that the model expects; or 1."""
    constants = {each.name: each for each in graph.initializer}
    constants |= {node.output[0]: each.t for node in graph.node if node.op_type == "Constant"
                  for each in node.attribute if node.output and each.name == "value"}
    same = {name}
    for node in graph.node:
        if same.isdisjoint(node.input):
            continue
        if node.op_type in SAME_NUMBER:
            same.update(node.output)
        for each in node.input if node.op_type == "Equal" else ():
            if each in constants and constants[each].data_type in DTYPES:
                array = array_of(constants[each])
                if array.size == 1 and array.dtype.kind in "iu":
                    return int(array.ravel()[0])
    return 1
