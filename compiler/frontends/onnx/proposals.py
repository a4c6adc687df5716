"""What to propose where a model leaves shapes of inputs open: options that have been tried."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto

from ...graph.types import GraphError, Shape
from ..given_inputs import GivenInputs
from .file import array_of
from .inputs import given_symbols, open_inputs, sizes_of
from .reader import NotConstantError

IMAGE_SIZES = (224, 320, 640, 64, 256, 32)      # for sizes that are open, in this order
SIGNAL_SIZES = (512, 128, 16, 1024, 32, 1)
TEXT_SIZES = (128, 512, 16, 1024, 32, 1)        # tokens
UNKNOWN_SHAPES = ((1, 3, 224, 224), (1, 128), (1, 80, 128), (128,))     # if axes are open too
SAME_NUMBER = ("Cast", "Gather", "Identity", "Reshape", "Squeeze", "Unsqueeze")     # of one number


def proposed_options(graph: GraphProto, given: GivenInputs,
                     read: Callable[[GivenInputs], object]) -> str:
    """Options of the command line with which `read` takes the model, if some are found."""
    found = list(_proposals(graph, given))
    working = next(filter(None, (_completed(graph, each, read) for each in found)), found[0])
    return " ".join([*(_option("--shape", name, shape) for name, shape in working.shapes.items()),
                     *(_option("--value", name, value) for name, value in working.values.items())])


def _option(option: str, name: str, numbers: object) -> str:
    text = ",".join(map(str, np.ravel(np.asarray(numbers)).tolist()))
    return f"{option} {shlex.quote(f'{name}={text}')}"


def _completed(graph: GraphProto, given: GivenInputs,
               read: Callable[[GivenInputs], object]) -> GivenInputs | None:
    """A proposal with which the model can be read, with values where they are decisive."""
    try:
        read(given)
        return given
    except NotConstantError as error:
        if not error.inputs or any(name in given.shapes for name in error.inputs):
            return None
        values = {name: _likely_value(graph, name) for name in error.inputs}
        given = replace(given, values={**given.values, **values})
    except GraphError:
        return None
    try:
        read(given)
    except GraphError:
        return None
    return given


def _proposals(graph: GraphProto, given: GivenInputs) -> Iterator[GivenInputs]:
    """Shapes that may fit the inputs that are left open, the most usual first."""
    inputs = [each for each in open_inputs(graph) if each.name not in given.values]
    symbols = given_symbols(open_inputs(graph), given)
    declared = {each.name: sizes_of(each, symbols) for each in inputs
                if each.name not in given.shapes}
    unknown = any(sizes is None for sizes in declared.values())
    if any(sizes is None or len(sizes) > 3 for sizes in declared.values()):
        usual = IMAGE_SIZES
    else:
        real = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
        usual = SIGNAL_SIZES if any(each.type.tensor_type.elem_type in real
                                    for each in inputs) else TEXT_SIZES
    for number, size in enumerate(usual):
        shapes = dict(given.shapes)
        for each in inputs:
            sizes = declared.get(each.name)
            if each.name in declared and sizes is None:
                shapes[each.name] = UNKNOWN_SHAPES[number % len(UNKNOWN_SHAPES)]
            elif sizes is not None and None in sizes:
                shapes[each.name] = _plausible(each, sizes, size)
        yield GivenInputs(shapes, given.values)
        if unknown and number + 1 == len(UNKNOWN_SHAPES):
            return


def _plausible(value: ValueInfoProto, sizes: tuple[int | None, ...], size: int) -> Shape:
    """A shape with open sizes filled in: batches of one, colours, and a size for the rest."""
    found: list[int] = []
    colours_last = len(sizes) == 4 and sizes[3] in (1, 3, 4)
    for axis, (extent, dim) in enumerate(zip(sizes, value.type.tensor_type.shape.dim, strict=True)):
        batch = len(sizes) > 1 and (axis == 0 or (axis == 1 and len(sizes) == 3
                                                  and sizes[0] is not None and found[0] > 1))
        guess = 1 if batch or "batch" in dim.dim_param.lower() else (
            3 if axis == 1 and len(sizes) == 4 and not colours_last else size)
        found.append(guess if extent is None else extent)
    return tuple(found)


def _likely_value(graph: GraphProto, name: str) -> int:
    """A number that an input is compared with, which is one that the model expects; or 1."""
    constants = {each.name: each for each in graph.initializer if len(each.dims) < 2}
    constants |= {node.output[0]: each.t for node in graph.node if node.op_type == "Constant"
                  for each in node.attribute if node.output and each.name == "value"}
    same = {name}
    for node in graph.node:
        if same.isdisjoint(node.input):
            continue
        if node.op_type in SAME_NUMBER:
            same.update(node.output)
        for each in node.input if node.op_type == "Equal" else ():
            if each in constants and (array := array_of(constants[each])).size == 1:
                return int(array.ravel()[0])
    return 1
