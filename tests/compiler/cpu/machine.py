"""Loop nests and graphs on this processor, or on the one that `emulated.chosen` names."""

from __future__ import annotations

from ctypes import c_int32, c_int64, c_void_p
from dataclasses import replace

import numpy as np

from microtron.base.machine_code import Library, object_file
from microtron.base.processor import host
from microtron.compiler.cpu.code.emit_kernel import Kernel, Module
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.expression.evaluate import numpy_type
from microtron.compiler.nest.run import uninitialized_array
from microtron.runtime.models.compiled_host import CompiledBackend

from ...emulated import chosen, given, run_part, unknown, worker


def compiled(nest, target=None):
    """The module of a nest, as one kernel, and the places of buffers in its table."""
    kernel = Kernel("kernel", nest.body, nest.inputs, nest.outputs)
    places = {buffer: number for number, buffer in enumerate(kernel.buffers)}
    module = Module(target or host())
    module.add(kernel, places)
    return kernel, places, module.text()


def run(nest, values, pieces=((0, None),)):
    """The status and the outputs of a nest, whose iterations come in pieces."""
    processor = chosen()
    if processor is not None:
        return _emulate(nest, values, pieces, processor)
    kernel, places, text = compiled(nest)
    function = Library(object_file(text)).function("kernel", c_int32, c_void_p, c_int64, c_int64)
    arrays = {buffer: np.array(values[buffer], numpy_type(buffer.dtype), order="C")
              if buffer in values else uninitialized_array(buffer) for buffer in places}
    table = (c_void_p * len(arrays))(*(each.ctypes.data for each in arrays.values()))
    status = 0
    for first, last in pieces:
        status |= function(table, first, kernel.iterations if last is None else last)
    return status, {buffer: arrays[buffer] for buffer in nest.outputs}


def _emulate(nest, values, pieces, processor):
    kernel, places, text = compiled(nest, processor.target)
    buffers = [unknown(str(numpy_type(each.dtype)), each.shape) if each not in values else given(
        np.array(values[each], numpy_type(each.dtype), order="C")) for each in places]
    status, found = worker(processor).call(text, "kernel", buffers, 0, [
        (first, kernel.iterations if last is None else last) for first, last in pieces])
    written = [each for each in places if each not in values]
    arrays = {each: np.frombuffer(content, numpy_type(each.dtype)).reshape(each.shape)
              for each, content in zip(written, found, strict=True)}
    return status, {each: arrays[each] for each in nest.outputs}


def compute(graph, inputs):
    """The outputs of a graph, all of which the CPU computes."""
    known = {name: graph.array(name) if name in graph.constants else inputs[name]
             for name in graph.outputs if name not in graph.nodes}
    part = replace(graph, outputs=tuple(name for name in graph.outputs if name not in known))
    if part.outputs:
        known |= _nodes(part, {name: inputs[name] for name in part.inputs})
    return [known[name] for name in graph.outputs]


def _nodes(part, inputs):
    processor = chosen()
    if processor is None:
        return CompiledBackend(1).nodes(part)(inputs)
    types = {name: part.type_of(name) for name in part.outputs}
    found = run_part(compile_part(part, processor.target), inputs, processor)
    return found | {name: np.empty(type_.shape, type_.dtype) for name, type_ in types.items()
                    if type_.size == 0}
