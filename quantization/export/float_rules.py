"""How functions of numbers, reductions and normalizations are written as ONNX."""

from __future__ import annotations

from math import isfinite

import numpy as np

from ...base.errors import MicrotronError
from ...compiler.graph.operations.layers.normalization import (
    BatchNorm,
    InstanceNorm,
    LayerNorm,
    LocalResponseNorm,
    LogSoftmax,
    Softmax,
)
from ...compiler.graph.operations.layers.recurrent import Activation, Gru, Lstm, Recurrent
from ...compiler.graph.operations.layers.reduction import Arg, Reduce, ReduceKind
from ...compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from ...compiler.graph.operations.pointwise.logic import (
    Compare,
    CompareKind,
    Logical,
    LogicKind,
    Not,
    Where,
)
from ...compiler.graph.operations.pointwise.quantize import Clamp
from ...compiler.graph.operations.pointwise.unary import Cast, Unary, UnaryKind
from .writer import Attributes, Writer, rule

BINARY = {BinaryKind.ADD: "Add", BinaryKind.SUB: "Sub", BinaryKind.MUL: "Mul",
          BinaryKind.DIV: "Div", BinaryKind.MIN: "Min", BinaryKind.MAX: "Max",
          BinaryKind.POW: "Pow"}
UNARY = {kind: kind.value.title().replace("_", "") for kind in (
    UnaryKind.ABS, UnaryKind.NEG, UnaryKind.SIGN, UnaryKind.EXP, UnaryKind.LOG, UnaryKind.SQRT,
    UnaryKind.RECIPROCAL, UnaryKind.SIN, UnaryKind.COS, UnaryKind.TAN, UnaryKind.ASIN,
    UnaryKind.ACOS, UnaryKind.ATAN, UnaryKind.SINH, UnaryKind.COSH, UnaryKind.ASINH,
    UnaryKind.ACOSH, UnaryKind.ATANH, UnaryKind.TANH, UnaryKind.ERF, UnaryKind.SIGMOID,
    UnaryKind.SOFTPLUS, UnaryKind.SOFTSIGN, UnaryKind.FLOOR, UnaryKind.CEIL, UnaryKind.ROUND,
    UnaryKind.HARD_SWISH, UnaryKind.MISH)}
WITH_ALPHA = {UnaryKind.ELU: "Elu", UnaryKind.CELU: "Celu", UnaryKind.LEAKY_RELU: "LeakyRelu",
              UnaryKind.THRESHOLDED_RELU: "ThresholdedRelu"}
COMPARE = {CompareKind.EQUAL: "Equal", CompareKind.LESS: "Less", CompareKind.GREATER: "Greater",
           CompareKind.LESS_EQUAL: "LessOrEqual", CompareKind.GREATER_EQUAL: "GreaterOrEqual"}
LOGIC = {LogicKind.AND: "And", LogicKind.OR: "Or", LogicKind.XOR: "Xor"}
REDUCE = {ReduceKind.SUM: "ReduceSum", ReduceKind.MEAN: "ReduceMean", ReduceKind.MAX: "ReduceMax",
          ReduceKind.MIN: "ReduceMin", ReduceKind.PROD: "ReduceProd"}
ACTIVATIONS = {Activation.SIGMOID: "Sigmoid", Activation.TANH: "Tanh", Activation.RELU: "Relu"}


def clip(writer: Writer, name: str, x: str, low: float | None, high: float | None) -> None:
    """Bounds as a Relu, a Clip or nothing."""
    given = [each if each is not None and isfinite(each) else None for each in (low, high)]
    if given == [None, None]:
        writer.node("Identity", [x], name)
    elif given == [0, None]:
        writer.node("Relu", [x], name)
    else:
        bounds = ["" if each is None else writer.constant(each, writer.type_of(name).dtype)
                  for each in given]
        writer.node("Clip", [x, *(bounds if bounds[1] else bounds[:1])], name)


@rule(Clamp)
def clamp(writer: Writer, name: str, operation: Clamp) -> None:
    clip(writer, name, operation.x, operation.low, operation.high)


@rule(Binary)
def binary(writer: Writer, name: str, operation: Binary) -> None:
    operands = [operation.left, operation.right]
    real = writer.type_of(name).is_float
    if operation.kind in BINARY:
        writer.node(BINARY[operation.kind], operands, name)
    elif operation.kind == BinaryKind.FMOD or not real:
        writer.node("Mod", operands, name, fmod=int(operation.kind == BinaryKind.FMOD))
    else:
        whole = writer.node("Floor", [writer.node("Div", operands)])
        writer.node("Sub", [operation.left, writer.node("Mul", [whole, operation.right])], name)


@rule(Unary)
def unary(writer: Writer, name: str, operation: Unary) -> None:
    x, kind = operation.x, operation.kind
    if kind in UNARY:
        writer.node(UNARY[kind], [x], name)
    elif kind in WITH_ALPHA:
        writer.node(WITH_ALPHA[kind], [x], name, alpha=operation.alpha)
    elif kind == UnaryKind.SQUARE:
        writer.node("Mul", [x, x], name)
    elif kind == UnaryKind.RSQRT:
        writer.node("Reciprocal", [writer.node("Sqrt", [x])], name)
    elif kind == UnaryKind.HARD_SIGMOID:
        writer.node("HardSigmoid", [x], name, alpha=operation.alpha, beta=operation.beta)
    elif kind == UnaryKind.SELU:
        writer.node("Selu", [x], name, alpha=operation.alpha, gamma=operation.beta)
    elif kind in (UnaryKind.GELU, UnaryKind.GELU_TANH):
        writer.node("Gelu", [x], name,
                    approximate="tanh" if kind == UnaryKind.GELU_TANH else "none")
    else:
        assert kind == UnaryKind.SWISH, kind
        inner = x if operation.alpha == 1 else writer.node(
            "Mul", [x, writer.scalar_like(operation.alpha, x)])
        writer.node("Mul", [x, writer.node("Sigmoid", [inner])], name)


@rule(Cast)
def cast(writer: Writer, name: str, operation: Cast) -> None:
    from onnx import helper

    writer.node("Cast", [operation.x], name,
                to=helper.np_dtype_to_tensor_dtype(np.dtype(operation.dtype)))


@rule(Compare)
def compare(writer: Writer, name: str, operation: Compare) -> None:
    operands = [operation.left, operation.right]
    if operation.kind == CompareKind.NOT_EQUAL:
        writer.node("Not", [writer.node("Equal", operands)], name)
    else:
        writer.node(COMPARE[operation.kind], operands, name)


@rule(Logical)
def logical(writer: Writer, name: str, operation: Logical) -> None:
    writer.node(LOGIC[operation.kind], [operation.left, operation.right], name)


@rule(Not)
def negation(writer: Writer, name: str, operation: Not) -> None:
    writer.node("Not", [operation.x], name)


@rule(Where)
def where(writer: Writer, name: str, operation: Where) -> None:
    writer.node("Where", [operation.condition, operation.left, operation.right], name)


@rule(Reduce)
def reduce(writer: Writer, name: str, operation: Reduce) -> None:
    writer.node(REDUCE[operation.kind], [operation.x, writer.integers(list(operation.axes))], name,
                keepdims=int(operation.keep))


@rule(Arg)
def arg(writer: Writer, name: str, operation: Arg) -> None:
    kind = "ArgMax" if operation.kind == ReduceKind.MAX else "ArgMin"
    places = writer.node(kind, [operation.x], axis=operation.axis, keepdims=int(operation.keep),
                         select_last_index=int(operation.last))
    as_integers(writer, name, places)


def as_integers(writer: Writer, name: str, places: str) -> None:
    """Indices, which ONNX has with 64 bits, in the type of a result."""
    from onnx import helper

    writer.node("Cast", [places], name, to=helper.np_dtype_to_tensor_dtype(
        np.dtype(writer.type_of(name).dtype)))


@rule(Softmax, LogSoftmax)
def softmax(writer: Writer, name: str, operation: Softmax | LogSoftmax) -> None:
    x = operation.x
    if isinstance(operation, Softmax) and operation.beta != 1:
        x = writer.node("Mul", [x, writer.scalar_like(operation.beta, x)])
    writer.node(type(operation).__name__, [x], name, axis=operation.axis)


@rule(LayerNorm)
def layer_norm(writer: Writer, name: str, operation: LayerNorm) -> None:
    type_ = writer.type_of(name)
    shape = type_.shape[operation.axis % len(type_.shape):]
    scale = operation.scale or writer.constant(np.ones(shape, type_.dtype))
    writer.node("LayerNormalization", [operation.x, scale, *filter(None, [operation.bias])], name,
                axis=operation.axis, epsilon=operation.epsilon)


@rule(BatchNorm, InstanceNorm)
def channel_norm(writer: Writer, name: str, operation: BatchNorm | InstanceNorm) -> None:
    axes = len(writer.type_of(name).shape)
    if operation.channel_axis % axes != 1:
        raise MicrotronError(f"{name}: a normalization whose channels are on axis "
                             f"{operation.channel_axis} cannot be written as ONNX")
    kind = "BatchNormalization" if isinstance(operation, BatchNorm) else "InstanceNormalization"
    writer.node(kind, list(operation.operands()), name, epsilon=operation.epsilon)


@rule(LocalResponseNorm)
def response_norm(writer: Writer, name: str, operation: LocalResponseNorm) -> None:
    size = operation.before + operation.after + 1
    if operation.before != (size - 1) // 2 or operation.channel_axis != 1:
        raise MicrotronError(f"{name}: a response normalization over {operation.before} channels "
                             f"before and {operation.after} after cannot be written as ONNX")
    writer.node("LRN", [operation.x], name, size=size, alpha=operation.alpha * size,
                beta=operation.beta, bias=operation.bias)


@rule(Recurrent, Gru, Lstm)
def recurrent(writer: Writer, name: str, operation: Recurrent | Gru | Lstm) -> None:
    """The input's part is computed before, so that ONNX's weights for it are the identity."""
    steps, batch, gates = writer.type_of(operation.x).shape
    hidden = writer.type_of(operation.weights).shape[1]
    dtype = writer.type_of(operation.x).dtype
    front = writer.integers([0])

    def leading(tensor: str) -> str:
        return writer.node("Unsqueeze", [tensor, front])

    bias = ""
    if isinstance(operation, Gru) and operation.bias is not None:
        zeros = writer.constant(np.zeros(gates + 2 * hidden, dtype))
        bias = leading(writer.node("Concat", [zeros, operation.bias], axis=0))
    from onnx import TensorProto
    lengths = writer.node("Cast", [operation.lengths], to=TensorProto.INT32)
    operands = [operation.x, writer.constant(np.eye(gates, dtype=dtype)[None]),
                leading(operation.weights), bias, lengths, leading(operation.state)]
    names = (operation.activation,) if isinstance(operation, Recurrent) else operation.activations
    attributes: Attributes = {
        "hidden_size": hidden, "activations": [ACTIVATIONS[each] for each in names],
        "direction": "reverse" if operation.reverse else "forward"}
    if operation.clip is not None:
        attributes["clip"] = operation.clip
    if not isinstance(operation, Lstm):
        if isinstance(operation, Gru):
            attributes["linear_before_reset"] = int(operation.reset_after)
        states = writer.node("GRU" if isinstance(operation, Gru) else "RNN", operands,
                             **attributes)
        writer.node("Squeeze", [states, writer.integers([1])], name)
        return
    operands += [leading(operation.memory), *([leading(operation.peepholes)]
                                              if operation.peepholes else [])]
    states, _, memory = writer.node_of_several(
        "LSTM", operands, [writer.fresh(word) for word in ("states", "state", "memory")],
        **attributes)
    # ONNX has the memory after the last step only, and nothing else of it is ever read.
    shape = writer.integers([1, steps, batch, hidden])
    writer.node("Concat", [writer.node("Reshape", [states, shape]),
                           writer.node("Expand", [leading(memory), shape])], name, axis=0)
