"""Loop nests and graphs on this processor."""

from __future__ import annotations

from ctypes import c_int32, c_int64, c_void_p
from dataclasses import replace

import numpy as np

from microtron.compiler.cpu.code.kernel import Kernel, Module
from microtron.compiler.expression.evaluate import numpy_type
from microtron.compiler.nest.run import undefined
from microtron.native.machine_code import Library, object_file
from microtron.native.target import host
from microtron.runtime.compiled_host import CompiledBackend


def compiled(nest, target=None):
    """The module of a nest, as one kernel, and the places of buffers in its table."""
    kernel = Kernel("kernel", nest.body, nest.inputs, nest.outputs)
    places = {buffer: number for number, buffer in enumerate(kernel.buffers)}
    module = Module(target or host())
    module.add(kernel, places)
    return kernel, places, module.text()


def run(nest, given, pieces=((0, None),)):
    """The status and the outputs of a nest, whose iterations come in pieces."""
    kernel, places, text = compiled(nest)
    function = Library(object_file(text)).function("kernel", c_int32, c_void_p, c_int64, c_int64)
    arrays = {buffer: np.array(given[buffer], numpy_type(buffer.dtype), order="C")
              if buffer in given else undefined(buffer) for buffer in places}
    table = (c_void_p * len(arrays))(*(each.ctypes.data for each in arrays.values()))
    status = 0
    for first, last in pieces:
        status |= function(table, first, kernel.iterations if last is None else last)
    return status, {buffer: arrays[buffer] for buffer in nest.outputs}


def computed(graph, inputs):
    """The outputs of a graph, all of which the CPU computes."""
    known = {name: graph.array(name) if name in graph.constants else inputs[name]
             for name in graph.outputs if name not in graph.nodes}
    part = replace(graph, outputs=tuple(name for name in graph.outputs if name not in known))
    if part.outputs:
        known |= CompiledBackend(1).nodes(part)({name: inputs[name] for name in part.inputs})
    return [known[name] for name in graph.outputs]
