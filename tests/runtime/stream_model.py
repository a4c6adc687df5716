"""A small network that remembers: rows of the past, a sum, and what the last frame was."""

from __future__ import annotations

import numpy as np

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.graph import Graph, State
from microtron.compiler.graph.operations.data_movement.shape import Concat, Reshape, Slice
from microtron.compiler.graph.operations.layers.window import Conv
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.isa.instructions import Rounding

SCALE = Quantization((0.5,), (3,))
ROWS, PAST, CHANNELS = 1, 3, 5


def stream_graph() -> Graph:
    """A convolution over the past, its sum over all frames, and the frame before."""
    rng = np.random.default_rng(1)
    builder = Builder("stream")
    builder.input("frame", TensorType((1, ROWS, 1, CHANNELS), "int8", SCALE))
    builder.input("past", TensorType((1, PAST, 1, CHANNELS), "int8", SCALE))
    builder.input("last", TensorType((1, ROWS, 1, CHANNELS), "int8", SCALE))
    builder.input("sum", TensorType((2,), "int32"))
    builder.add("whole", Concat(parts=("past", "frame"), axis=1))
    builder.add("shifted", Slice(x="whole", starts=(0, ROWS, 0, 0), steps=(1, 1, 1, 1),
                                 stops=(1, ROWS + PAST, 1, CHANNELS)))
    kernel = builder.constant("kernel", rng.integers(-9, 9, (4, CHANNELS, PAST + ROWS, 1)).astype(
        np.int8), Quantization((0.1,)))
    builder.add("conv", Conv(x="whole", weights=kernel, channel_axis=3, scales=(0.05,),
                             rounding=Rounding.TWICE), dtype="int8", quantization=SCALE)
    one = builder.constant("one", np.array([1, -3], np.int32))
    builder.add("more", Binary(kind=BinaryKind.ADD, left="sum", right=one))
    builder.add("kept", Reshape(x="frame", shape=(1, ROWS, 1, CHANNELS)))
    builder.add("before", Reshape(x="last", shape=(CHANNELS,)))
    builder.add("count", Reshape(x="more", shape=(1, 2)))
    first = rng.integers(-128, 128, (1, PAST, 1, CHANNELS)).astype(np.int8)
    builder.states |= {
        "past": State("shifted", first), "sum": State("more", np.array([7, 7], np.int32)),
        "last": State("kept", np.full((1, ROWS, 1, CHANNELS), 3, np.int8))}
    return builder.graph(("conv", "count", "before"))


def frames(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-128, 128, (1, ROWS, 1, CHANNELS)).astype(np.int8) for _ in range(count)]


def right(given: list[np.ndarray]) -> list[dict[str, np.ndarray]]:
    """What the graph means for frames one after the other, with the states after each."""
    graph = stream_graph()
    state = {name: each.initial for name, each in graph.states.items()}
    found = []
    for frame in given:
        values = evaluate(graph, {"frame": frame, **state})
        state = {name: values[each.result] for name, each in graph.states.items()}
        found.append({**{name: values[name] for name in graph.user_outputs}, **state})
    return found
