"""Streaming networks as TFLite files, made in code: layers whose windows reach into the past."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tflite

from .tflite_files import Operator, Subgraph, Tensor, file_of_subgraphs

SCALE, ZERO = 0.05, -3


@dataclass
class Stream:
    """A file while it is being put together: the network, and what its variables hold first."""

    main: list[Tensor] = field(default_factory=list)
    steps: list[Operator] = field(default_factory=list)
    first: list[Tensor] = field(default_factory=list)
    first_steps: list[Operator] = field(default_factory=list)

    def tensor(self, *shape: int, **settings: Any) -> int:
        self.main.append(Tensor(shape, settings.pop("dtype", "int8"), SCALE, ZERO, **settings))
        return len(self.main) - 1

    def constant(self, values: Any, dtype: str = "int32", **settings: Any) -> int:
        self.main.append(Tensor.constant(values, dtype, **settings))
        return len(self.main) - 1

    def operator(self, name: str, inputs: list[int], outputs: list[int], kind: str = "",
                 **options: Any) -> None:
        self.steps.append(Operator(name, inputs, outputs, kind, options))

    def call_once(self) -> None:
        self.operator("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=1)

    def handle(self, name: str) -> int:
        self.main.append(Tensor((), "resource", name=name))
        handle = len(self.main) - 1
        self.operator("VAR_HANDLE", [], [handle], "VarHandleOptions", SharedName=name)
        return handle

    def begin(self, name: str, values: np.ndarray) -> None:
        """What a variable holds before the first frame."""
        quantized = {"scale": SCALE, "zero": ZERO} if values.dtype == np.int8 else {}
        self.first += [Tensor((), "resource"),
                       Tensor.constant(values, str(values.dtype), **quantized)]
        here = len(self.first) - 2
        self.first_steps += [
            Operator("VAR_HANDLE", [], [here], "VarHandleOptions", {"SharedName": name}),
            Operator("ASSIGN_VARIABLE", [here, here + 1], [], "AssignVariableOptions")]

    def read(self, handle: int, *shape: int, **settings: Any) -> int:
        value = self.tensor(*shape, **settings)
        self.operator("READ_VARIABLE", [handle], [value], "ReadVariableOptions")
        return value

    def assign(self, handle: int, value: int) -> None:
        self.operator("ASSIGN_VARIABLE", [handle, value], [], "AssignVariableOptions")

    def data(self, inputs: list[int], outputs: list[int]) -> bytes:
        return file_of_subgraphs([Subgraph(self.main, self.steps, inputs, outputs),
                                  Subgraph(self.first, self.first_steps)])


def layer(stream: Stream, x: int, name: str, rng: np.random.Generator, *, rows: int, past: int,
          outputs: int, depthwise: bool) -> int:
    """A convolution over the rows that come in and as many before them as its window needs."""
    channels = stream.main[x].shape[-1]
    stream.begin(name, rng.integers(-128, 128, (1, past, 1, channels)).astype(np.int8))
    handle = stream.handle(name)
    before = stream.read(handle, 1, past, 1, channels)
    whole = stream.tensor(1, past + rows, 1, channels)
    stream.operator("CONCATENATION", [before, x], [whole], "ConcatenationOptions", Axis=1)
    after = stream.tensor(1, past, 1, channels)
    stream.operator("SLICE", [whole, stream.constant([0, rows, 0, 0]),
                              stream.constant([1, past, 1, channels])], [after], "SliceOptions")
    stream.assign(handle, after)
    if depthwise:
        outputs = channels
    shape = (1, past + 1, 1, channels) if depthwise else (outputs, past + 1, 1, channels)
    weights = stream.constant(rng.integers(-127, 128, shape), "int8", scale=0.004)
    bias = stream.constant(rng.integers(-500, 500, outputs), "int32", scale=0.004 * SCALE)
    result = stream.tensor(1, rows, 1, outputs)
    settings = {"Padding": tflite.Padding.VALID, "StrideH": 1, "StrideW": 1}
    if depthwise:
        stream.operator("DEPTHWISE_CONV_2D", [whole, weights, bias], [result],
                        "DepthwiseConv2DOptions", DepthMultiplier=1, **settings)
    else:
        stream.operator("CONV_2D", [whole, weights, bias], [result], "Conv2DOptions", **settings)
    return result


def streaming_network(seed: int) -> tuple[bytes, list[list[np.ndarray]]]:
    """A file of a few such layers, and frames for it."""
    rng = np.random.default_rng(seed)
    rows, channels = int(rng.integers(1, 4)), int(rng.integers(3, 20))
    stream = Stream()
    stream.call_once()
    x = first = stream.tensor(1, rows, 1, channels)
    for number in range(int(rng.integers(1, 4))):
        x = layer(stream, x, f"states/{number}", rng, rows=rows, past=int(rng.integers(1, 6)),
                  outputs=int(rng.integers(3, 36)), depthwise=bool(rng.integers(2)))
    frames = [[rng.integers(-128, 128, (1, rows, 1, channels)).astype(np.int8)]
              for _ in range(8)]
    return stream.data([first], [x]), frames
