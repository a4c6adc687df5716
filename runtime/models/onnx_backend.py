"""ONNX's own interface for backends, which its test suite and other tools written for it use.

    outputs = MicrotronBackend.run_model(model, [image])
    prepared = MicrotronBackend.prepare(model)          # for repeated runs
    outputs = prepared.run([image])

A model goes the way of any model: it is read into a graph, simplified, compiled, and run, on the
functional simulator and as machine code on the CPU.

Shapes are static here, and so is whatever an operation takes as a setting: the axes of a sum, the
borders of a pad, the scale of a quantized tensor. ONNX may compute them from inputs. Then a model
is specialized: it is compiled for the shapes of the inputs that it gets, and for the values of
those inputs that decide about a setting, and again when these change. The last few of what was
compiled are kept. A result whose size depends on numbers, which is that of non-max suppression, has
room for the largest; here what is not used of it is cut off.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict
from onnx.defs import onnx_opset_version

from ...base.checked_values import quote, show_name
from ...compiler.frontends.onnx.read_onnx import read_onnx
from ...compiler.frontends.onnx.reader import NotConstantError
from ...compiler.graph.graph import Graph
from ...compiler.graph.operations.vision.suppression import NonMaxSuppression
from ...compiler.graph.types import Array
from ...isa.config import Config
from .compilation import ModelOptions, compile_model
from .host import HostBackend
from .model import Model
from .session import Session
from .tensors import InputError, as_array

MOST_KEPT = 16              # specializations of one model
CONFIG = "small"            # the configuration, unless another is given
DEVICE = "functional"       # what runs programs, unless another does

Key = tuple[object, ...]


class Specialized(NamedTuple):
    """A model for inputs of some shapes and values."""

    session: Session
    roomy: frozenset[str]       # outputs whose rows end with those of −1


class PreparedModel(BackendRep):
    """A model that is compiled as soon as enough is known of its inputs."""

    def __init__(self, model: ModelProto, config: Config | str = CONFIG, device: str = DEVICE,
                 backend: HostBackend | None = None) -> None:
        """`backend` runs the CPU's nodes: compiled, unless given."""
        self.model = model
        self.config = config
        self.device = device
        self.backend = backend
        constants = {each.name for each in model.graph.initializer}
        self.inputs = [each.name for each in model.graph.input if each.name not in constants]
        self.outputs = [each.name for each in model.graph.output]
        self._decisive: list[str] = []      # inputs whose values a setting depends on
        self._kept: OrderedDict[Key, Specialized] = OrderedDict()

    def run(self, inputs: object, **kwargs: object) -> tuple[object, ...]:
        """The outputs, in order and by name. Inputs are a list in the order of the model's, a
        mapping by name, or the only one alone."""
        if kwargs:
            raise InputError(f"run has no option {quote(next(iter(kwargs)))}")
        arrays = self._by_name(inputs)
        key = self._key(arrays)
        special = self._kept.pop(key, None)
        if special is None:
            special = self._specialize(arrays)
            key = self._key(arrays)
        self._kept[key] = special
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        session = special.session
        result = session.run({name: arrays[name] for name in session.model.inputs})
        found = tuple(used_rows(result[name]) if name in special.roomy else result[name]
                      for name in self.outputs)
        return namedtupledict("Outputs", self.outputs)(*found)

    def _by_name(self, inputs: object) -> dict[str, Array]:
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif isinstance(inputs, list | tuple):
            given = dict(zip(self.inputs, inputs, strict=False))
            if len(inputs) != len(self.inputs):
                raise InputError(f"there are {len(inputs)} inputs, but the model has "
                                 f"{len(self.inputs)}: {', '.join(map(show_name, self.inputs))}")
        else:
            given = dict.fromkeys(self.inputs[:1], inputs)
        for name in (*given, *self.inputs):
            if name not in given or name not in self.inputs:
                raise InputError(f"inputs are {', '.join(map(show_name, given))}, but must be "
                                 f"{', '.join(map(show_name, self.inputs))}")
        return {name: as_array(f"input {show_name(name)}", each) for name, each in given.items()}

    def _key(self, arrays: Mapping[str, Array]) -> Key:
        """What is compiled for these inputs is for all that have the same."""
        values = tuple(arrays[name].tobytes() for name in self._decisive)
        return (*((arrays[name].shape, str(arrays[name].dtype)) for name in self.inputs), *values)

    def _specialize(self, arrays: Mapping[str, Array]) -> Specialized:
        """The model for inputs of these shapes, and these values where they are decisive."""
        graph = specialize(self.model, arrays, self._decisive)
        compiled = compile_model(graph, self.config, ModelOptions(), version="")
        return Specialized(Session(Model(**vars(compiled)), self.device, backend=self.backend,
                                   allow_nan=True),
                           roomy_outputs(graph))


def specialize(model: ModelProto, arrays: Mapping[str, Array], decisive: list[str]) -> Graph:
    """The graph of a model for inputs of these shapes, and these values of the decisive ones, to
    which those are added that turn out to be."""
    while True:
        fixed = ModelProto()
        fixed.CopyFrom(model)
        fixed.graph.initializer.extend(numpy_helper.from_array(arrays[name], name)
                                       for name in decisive)
        shapes = {name: each.shape for name, each in arrays.items() if name not in decisive}
        try:
            return read_onnx(fixed.SerializeToString(), model.graph.name, shapes)
        except NotConstantError as error:
            if not error.inputs:
                raise
            decisive += error.inputs


def roomy_outputs(graph: Graph) -> frozenset[str]:
    """Outputs that have room for the largest result."""
    return frozenset(name for name in graph.outputs if name in graph.nodes and isinstance(
        graph.nodes[name].operation, NonMaxSuppression))


def used_rows(array: Array) -> Array:
    """The rows before those of −1."""
    return array[array[:, 0] >= 0]


class MicrotronBackend(Backend):
    """What ONNX calls a backend. Its device is "CPU": the machine that simulates."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """`kwargs` are a configuration, the device for programs, and the backend for the CPU's
        nodes."""
        super().prepare(model, device)          # checks the model
        return PreparedModel(model, **kwargs)

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Sequence[object], device: str = "CPU",
                 outputs_info: object = None, **kwargs: Any) -> tuple[object, ...]:
        """The outputs of one node, of the newest opset unless `opset_version` says otherwise."""
        opset = kwargs.pop("opset_version", onnx_opset_version())
        names = list(dict.fromkeys(filter(None, node.input)))
        arrays = [np.asarray(each) for each in inputs]
        types = [helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)]
        graph = helper.make_graph([node], "node", types, [
            helper.make_empty_tensor_value_info(name) for name in filter(None, node.output)])
        imports = [helper.make_opsetid(node.domain, opset)]
        return PreparedModel(helper.make_model(graph, opset_imports=imports), **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"
