"""Nodes that go step by step: recurrent layers, and bodies that run again and again."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from .nodes import Draw, Node, node

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@node("RNN GRU LSTM")
def recurrent(draw: Draw, op: str) -> Node:
    gates = GATES[op]
    steps, batch, inputs, hidden = (draw.number(1, 3) for _ in range(4))
    return Node([draw.real((steps, batch, inputs)),
                 draw.real((1, gates * hidden, inputs), odd=False),
                 draw.real((1, gates * hidden, hidden), odd=False),
                 draw.real((1, 2 * gates * hidden), odd=False) if draw.chance() else None],
                {"hidden_size": hidden}, outputs=2, rtol=1e-4, atol=1e-5)


def value(name: str, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def body(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", inputs, outputs)


@node("If")
def branches(draw: Draw, op: str) -> Node:
    shape = draw.shape()
    then, otherwise = (body([helper.make_node(op, ["x1"], [f"{op}.y"])], [], [
        value(f"{op}.y", shape)]) for op in ("Neg", "Abs"))
    return Node([np.array(draw.chance()), draw.real(shape)], nodes=(
        helper.make_node("If", ["x0"], ["y0"], then_branch=then, else_branch=otherwise),))


@node("Loop")
def repeated(draw: Draw, op: str) -> Node:
    """The reference gives what the steps gather another shape."""
    shape = draw.shape(0, 2)
    inside = body([helper.make_node("Add", ["state", "x2"], ["next"]),
                   helper.make_node("Identity", ["go"], ["more"]),
                   helper.make_node("Mul", ["next", "next"], ["square"])],
                  [value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL),
                   value("state", shape)],
                  [value("more", (), TensorProto.BOOL), value("next", shape),
                   value("square", shape)])
    return Node([np.array(draw.number(1, 3)), np.array(True), draw.real(shape), draw.real(shape)],
                outputs=2, runtime=True, opset=21, nodes=(
        helper.make_node("Loop", ["x0", "x1", "x3"], ["y0", "y1"], body=inside),))


@node("Scan")
def scanned(draw: Draw, op: str) -> Node:
    shape, steps = draw.shape(0, 2), draw.number(1, 3)
    inside = body([helper.make_node("Add", ["state", "each"], ["next"]),
                   helper.make_node("Identity", ["next"], ["out"])],
                  [value("state", shape), value("each", shape)],
                  [value("next", shape), value("out", shape)])
    return Node([draw.real(shape), draw.real((steps, *shape))], outputs=2, nodes=(
        helper.make_node("Scan", ["x0", "x1"], ["y0", "y1"], num_scan_inputs=1, body=inside),))
