"""Random models of one operator each: for every operator that is read, and every type of numbers
that it is read for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .tflite_files import Single, Tensor

CASES: dict[tuple[str, str], Callable] = {}
QUANTIZED = ("int8", "uint8")
ALL = (*QUANTIZED, "float32")


def case(*names, dtypes=ALL):
    """Declare a function that makes models: (rng, dtype, name) → a model and inputs."""
    def declare(function):
        for name in names:
            for dtype in dtypes:
                CASES[name, dtype] = function
        return function
    return declare


def numbers(rng, shape, dtype):
    if dtype == "float32":
        return rng.normal(0, 2, shape).astype(np.float32)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype)
    small = dtype in ("int32", "int64")
    return rng.integers(-99 if small else info.min, 99 if small else info.max, shape,
                        endpoint=True).astype(dtype)


def scale(rng):
    return float(np.float32(np.exp(rng.uniform(np.log(0.004), np.log(0.2)))))


def typed(rng, shape, dtype, like=None):
    """A tensor with some scale and zero point, or with those of another."""
    if dtype == "int16":
        return Tensor(shape, dtype, scale(rng) if like is None else like.scale, 0)
    if dtype not in QUANTIZED:
        return Tensor(shape, dtype)
    if like is not None:
        return Tensor(shape, dtype, like.scale, like.zero)
    info = np.iinfo(dtype)
    return Tensor(shape, dtype, scale(rng), int(rng.integers(info.min, info.max, endpoint=True)))


def side(rng, most=6):
    return int(rng.integers(1, most + 1))


def images(rng, dtype):
    x = typed(rng, (side(rng, 2), side(rng, 9), side(rng, 9), side(rng, 5)), dtype)
    return x, numbers(rng, x.shape, dtype)


def weights(rng, shape, dtype, axis, per_channel=True):
    """Weights and their scales: signed ones are symmetric, with a scale for each channel."""
    array = numbers(rng, shape, dtype)
    if dtype == "float32":
        return Tensor.constant(array, dtype)
    if dtype == "uint8":
        return Tensor.constant(array, dtype, scale=scale(rng), zero=int(rng.integers(0, 256)))
    scales = [scale(rng) for _ in range(shape[axis] if per_channel else 1)]
    return Tensor.constant(np.maximum(array, -127), dtype, scale=scales, axis=axis)


def bias(rng, outputs, x, w, least=0):
    """A bias, or none."""
    if not least and rng.random() < 0.2:
        return []
    if x.dtype == "float32":
        return [Tensor.constant(rng.normal(0, 2, outputs), "float32")]
    scales = np.float32(x.scale) * np.asarray(w.scale, np.float32)
    return [Tensor.constant(rng.integers(-4000, 4000, outputs), "int32", scale=scales)]


def window(rng, x, kernel):
    """Strides, dilations and a padding with which the kernel fits."""
    stride, dilation = rng.integers(1, 4, 2).tolist(), rng.integers(1, 3, 2).tolist()
    if max(stride) > 1:
        dilation = [1, 1]
    fits = all((taps - 1) * spread < size
               for taps, spread, size in zip(kernel, dilation, x.shape[1:3], strict=True))
    return {"StrideH": stride[0], "StrideW": stride[1], "DilationHFactor": dilation[0],
            "DilationWFactor": dilation[1], "Padding": int(fits and rng.random() < 0.5),
            "FusedActivationFunction": int(rng.integers(0, 4))}


@case("CONV_2D")
def conv_2d(rng, dtype, name):
    x, array = images(rng, dtype)
    kernel, outputs = (side(rng, 4), side(rng, 4)), side(rng)
    w = weights(rng, (outputs, *kernel, x.shape[3]), dtype, 0, rng.random() < 0.8)
    return Single(name, [x, w, *bias(rng, outputs, x, w, 1)], typed(rng, (1,), dtype),
                  "Conv2DOptions", **window(rng, x, kernel)), [array]


@case("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(rng, dtype, name):
    x, array = images(rng, dtype)
    kernel, multiplier = (side(rng, 4), side(rng, 4)), side(rng, 2)
    outputs = x.shape[3] * multiplier
    w = weights(rng, (1, *kernel, outputs), dtype, 3)
    options = window(rng, x, kernel)
    options["StrideW"] = options["StrideH"]
    return Single(name, [x, w, *bias(rng, outputs, x, w)], typed(rng, (1,), dtype),
                  "DepthwiseConv2DOptions", DepthMultiplier=multiplier, **options), [array]


@case("TRANSPOSE_CONV")
def transpose_conv(rng, dtype, name):
    x, array = images(rng, dtype)
    kernel, outputs, stride = (side(rng, 4), side(rng, 4)), side(rng), rng.integers(1, 4, 2)
    same = rng.random() < 0.5
    sides = [size * step if same else (size - 1) * step + taps
             for size, step, taps in zip(x.shape[1:3], stride, kernel, strict=True)]
    shape = (x.shape[0], *map(int, sides), outputs)
    w = weights(rng, (outputs, *kernel, x.shape[3]), dtype, 0)
    return Single(name, [Tensor.constant(shape), w, x], typed(rng, shape, dtype),
                  "TransposeConvOptions", StrideH=int(stride[0]), StrideW=int(stride[1]),
                  Padding=int(not same)), [array]


@case("FULLY_CONNECTED")
def fully_connected(rng, dtype, name):
    x = typed(rng, (side(rng), side(rng), side(rng, 40)), dtype)
    w = weights(rng, (side(rng, 9), x.shape[2]), dtype, 0, rng.random() < 0.5)
    return Single(name, [x, w, *(bias(rng, w.shape[0], x, w) or [None])], typed(rng, (1,), dtype),
                  "FullyConnectedOptions", FusedActivationFunction=int(rng.integers(0, 4)),
                  KeepNumDims=bool(rng.integers(2))), [numbers(rng, x.shape, dtype)]


@case("BATCH_MATMUL", dtypes=("int8", "float32"))
def batch_matmul(rng, dtype, name):
    batch, rows, depth, columns = side(rng, 3), side(rng), side(rng, 30), side(rng)
    adjoint = [bool(rng.integers(2)) for _ in range(2)]
    shapes = [(batch, 2, *((b, a) if flip else (a, b)))
              for (a, b), flip in zip(((rows, depth), (depth, columns)), adjoint, strict=True)]
    sides = [typed(rng, shape, dtype) for shape in shapes]
    return Single(name, sides, typed(rng, (1,), dtype), "BatchMatMulOptions", AdjX=adjoint[0],
                  AdjY=adjoint[1]), [numbers(rng, shape, dtype) for shape in shapes]


@case("AVERAGE_POOL_2D", "MAX_POOL_2D", dtypes=(*ALL, "int16"))
def pool_2d(rng, dtype, name):
    x, array = images(rng, dtype)
    kernel = (side(rng, 4), side(rng, 4))
    options = window(rng, x, kernel)
    fits = all(taps <= size for taps, size in zip(kernel, x.shape[1:3], strict=True))
    return Single(name, [x], typed(rng, x.shape, dtype, x), "Pool2DOptions",
                  FilterHeight=kernel[0], FilterWidth=kernel[1], StrideH=options["StrideH"],
                  StrideW=options["StrideW"], Padding=options["Padding"] if fits else 0,
                  FusedActivationFunction=options["FusedActivationFunction"]), [array]


def pair(rng, dtype, like=False):
    """Two tensors that are repeated to meet, or not."""
    shape = tuple(side(rng, 5) for _ in range(4))
    other = tuple(1 if rng.random() < 0.3 else size for size in shape)[int(rng.integers(0, 3)):]
    left = typed(rng, shape, dtype)
    right = typed(rng, other, dtype, left if like else None)
    pairs = [left, right] if rng.random() < 0.7 else [right, left]
    return pairs, [numbers(rng, each.shape, dtype) for each in pairs]


@case("ADD", "SUB", "MUL", dtypes=(*ALL, "int32"))
def arithmetic(rng, dtype, name):
    sides, arrays = pair(rng, dtype)
    return Single(name, sides, typed(rng, (1,), dtype), f"{name.capitalize()}Options",
                  FusedActivationFunction=int(rng.integers(0, 4))), arrays


@case("ADD_N", dtypes=("float32", "int32"))
def add_n(rng, dtype, name):
    parts = [Tensor((side(rng), 3), dtype)] * int(rng.integers(2, 5))
    return Single(name, parts, parts[0], "AddNOptions"), [
        numbers(rng, each.shape, dtype) for each in parts]


@case("DIV", "FLOOR_DIV", "FLOOR_MOD", "POW", dtypes=("float32",))
def quotient(rng, dtype, name):
    sides, arrays = pair(rng, dtype)
    kind = {"DIV": "DivOptions", "FLOOR_DIV": "FloorDivOptions", "FLOOR_MOD": "FloorModOptions",
            "POW": "PowOptions"}[name]
    return Single(name, sides, Tensor((1,), dtype), kind), [np.abs(each) + 0.1 for each in arrays]


@case("FLOOR_DIV", "FLOOR_MOD", dtypes=("int32",))
def whole_quotient(rng, dtype, name):
    sides, (left, right) = pair(rng, dtype)
    left.flat[0], right.flat[0] = rng.choice((1 - (1 << 31), (1 << 31) - 1), 2)     # not −2³¹ / −1
    kind = {"FLOOR_DIV": "FloorDivOptions", "FLOOR_MOD": "FloorModOptions"}[name]
    return Single(name, sides, Tensor((1,), dtype), kind), [left, np.where(right == 0, -7, right)]


@case("SQUARED_DIFFERENCE", dtypes=("int8", "float32"))
def squared_difference(rng, dtype, name):
    sides, arrays = pair(rng, dtype)
    return Single(name, sides, typed(rng, (1,), dtype), "SquaredDifferenceOptions"), arrays


@case("MINIMUM", "MAXIMUM", dtypes=(*ALL, "int32"))
def extreme(rng, dtype, name):
    sides, arrays = pair(rng, dtype, like=True)
    return Single(name, sides, typed(rng, (1,), dtype, sides[0]),
                  "MaximumMinimumOptions"), arrays


@case("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL",
      dtypes=(*ALL, "int32"))
def compare(rng, dtype, name):
    sides, arrays = pair(rng, dtype, like=True)
    if dtype in ("float32", "int32"):
        arrays = [np.rint(each / 50).astype(dtype) for each in arrays]
    return Single(name, sides, Tensor((1,), "bool")), arrays


@case("LOGICAL_AND", "LOGICAL_OR", dtypes=("bool",))
def logical(rng, dtype, name):
    sides, arrays = pair(rng, dtype)
    return Single(name, sides, Tensor((1,), "bool")), arrays


@case("LOGICAL_NOT", dtypes=("bool",))
def logical_not(rng, dtype, name):
    x = Tensor((side(rng), side(rng)), "bool")
    return Single(name, [x], Tensor(x.shape, "bool")), [numbers(rng, x.shape, "bool")]


@case("SELECT", "SELECT_V2")
def select(rng, dtype, name):
    shape = (side(rng), side(rng), side(rng))
    x = typed(rng, shape, dtype)
    condition = shape[:1] if name == "SELECT" and rng.random() < 0.5 else shape
    return Single(name, [Tensor(condition, "bool"), x, x], x), [
        numbers(rng, condition, "bool"), *(numbers(rng, shape, dtype) for _ in range(2))]


def every(rng, dtype):
    """All numbers of a type, or some."""
    x = typed(rng, (1, 16, 16, 1), dtype)
    if dtype in ("float32", "int16"):
        return x, numbers(rng, x.shape, dtype) * np.dtype(dtype).type(3)
    info = np.iinfo(dtype)
    return x, np.arange(info.min, info.max + 1).astype(dtype).reshape(x.shape)


@case("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
def relu(rng, dtype, name):
    x, array = every(rng, dtype)
    return Single(name, [x], typed(rng, x.shape, dtype, x if rng.random() < 0.3 else None)), [array]


@case("LOGISTIC", "TANH")
def sigmoid(rng, dtype, name):
    x, array = every(rng, dtype)
    low = 0 if dtype == "float32" else np.iinfo(dtype).min
    steps, zero = (256, low) if name == "LOGISTIC" else (128, low + 128)
    y = Tensor(x.shape) if dtype == "float32" else Tensor(x.shape, dtype, 1 / steps, zero)
    return Single(name, [x], y), [array]


@case("HARD_SWISH")
def hard_swish(rng, dtype, name):
    x, array = every(rng, dtype)
    return Single(name, [x], typed(rng, x.shape, dtype), "HardSwishOptions"), [array]


@case("LEAKY_RELU")
def leaky_relu(rng, dtype, name):
    x, array = every(rng, dtype)
    return Single(name, [x], typed(rng, x.shape, dtype), "LeakyReluOptions",
                  Alpha=float(rng.uniform(0.01, 1.3))), [array]


@case("PRELU")
def prelu(rng, dtype, name):
    x, array = images(rng, dtype)
    slopes = typed(rng, (1, 1, x.shape[3]), dtype)
    slopes.data = numbers(rng, slopes.shape, dtype)
    return Single(name, [x, slopes], typed(rng, x.shape, dtype)), [array]


@case("GELU")
def gelu(rng, dtype, name):
    x, array = every(rng, dtype)
    return Single(name, [x], typed(rng, x.shape, dtype), "GeluOptions",
                  Approximate=bool(rng.integers(2))), [array]


@case("ELU", "EXP", "ABS", dtypes=("int8", "float32"))
@case("NEG", "SQUARE", "SIGN", "SIN", "COS", "FLOOR", "CEIL", "ROUND", dtypes=("float32",))
def function(rng, dtype, name):
    x, array = every(rng, dtype)
    return Single(name, [x], typed(rng, x.shape, dtype)), [array]


@case("LOG", "RSQRT", dtypes=("int8", "float32"))
@case("SQRT", dtypes=("float32",))
def positive_function(rng, dtype, name):
    x, array = every(rng, dtype)
    if dtype == "float32":
        return Single(name, [x], Tensor(x.shape)), [np.abs(array) + 0.01]
    x.zero = -128
    return Single(name, [x], typed(rng, x.shape, dtype)), [array]


@case("QUANTIZE", dtypes=(*ALL, "int16"))
def quantize(rng, dtype, name):
    x, array = every(rng, dtype)
    y = typed(rng, x.shape, str(rng.choice(["int8"] if dtype == "int16" else QUANTIZED)))
    return Single(name, [x], y, "QuantizeOptions"), [array]


@case("DEQUANTIZE", dtypes=(*QUANTIZED, "int16"))
def dequantize(rng, dtype, name):
    x, array = every(rng, dtype)
    return Single(name, [x], Tensor(x.shape), "DequantizeOptions"), [array]


@case("CAST", dtypes=("float32", "int32", "bool"))
def cast(rng, dtype, name):
    x = Tensor((4, 5), dtype)
    after = {"float32": "int32", "int32": "float32", "bool": "float32"}[dtype]
    return Single(name, [x], Tensor(x.shape, after)), [numbers(rng, x.shape, dtype)]


@case("SOFTMAX")
def softmax(rng, dtype, name):
    x = typed(rng, (side(rng), side(rng, 40)), dtype)
    y = Tensor(x.shape, dtype, 1 / 256, np.iinfo(dtype).min) if dtype in QUANTIZED else (
        Tensor(x.shape))
    return Single(name, [x], y, "SoftmaxOptions", Beta=float(rng.uniform(0.3, 2))), [
        numbers(rng, x.shape, dtype)]


@case("LOG_SOFTMAX", "LOCAL_RESPONSE_NORMALIZATION", "L2_NORMALIZATION", dtypes=("float32",))
def norm(rng, dtype, name):
    x, array = images(rng, dtype)
    if name == "L2_NORMALIZATION":
        return Single(name, [x], Tensor(x.shape), "L2NormOptions"), [array]
    if name == "LOG_SOFTMAX":
        return Single(name, [x], Tensor(x.shape), "LogSoftmaxOptions"), [array]
    return Single(name, [x], Tensor(x.shape), "LocalResponseNormalizationOptions",
                  Radius=side(rng, 3), Alpha=0.3, Beta=0.7, Bias=1.1), [array]


@case("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN")
@case("REDUCE_PROD", dtypes=("float32",))
@case("REDUCE_ANY", "REDUCE_ALL", dtypes=("bool",))
def reduction(rng, dtype, name):
    x = typed(rng, (side(rng, 3), side(rng, 9), side(rng, 9), side(rng, 5)), dtype)
    axes = rng.permutation(4)[:side(rng, 4)] - 4 * int(rng.integers(2))
    same = x if name.startswith("REDUCE") else None
    y = typed(rng, (1,), dtype, same)
    if name == "SUM" and dtype in QUANTIZED:
        y.scale *= 30
    return Single(name, [x, Tensor.constant(axes)], y, "ReducerOptions",
                  KeepDims=bool(rng.integers(2))), [numbers(rng, x.shape, dtype)]


@case("ARG_MAX", "ARG_MIN")
def arg(rng, dtype, name):
    x, array = images(rng, dtype)
    wide = bool(rng.integers(2))
    kind = "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions"
    return Single(name, [x, Tensor.constant(int(rng.integers(-4, 4)))],
                  Tensor((1,), "int64" if wide else "int32"), kind,
                  OutputType=4 if wide else 2), [array]


@case("GATHER", "GATHER_ND", "EMBEDDING_LOOKUP")
def gather(rng, dtype, name):
    x, array = images(rng, dtype)
    if name == "GATHER_ND":
        places = np.stack([rng.integers(0, size, (3, 2)) for size in x.shape[:2]], -1)
        return Single(name, [x, Tensor(places.shape, "int32")], typed(rng, (1,), dtype, x),
                      "GatherNdOptions"), [array, places.astype(np.int32)]
    axis = int(rng.integers(0, 4)) if name == "GATHER" else 0
    places = rng.integers(0, x.shape[axis], (side(rng),)).astype(np.int32)
    index = Tensor(places.shape, "int32")
    if name == "GATHER":
        return Single(name, [x, index], typed(rng, (1,), dtype, x), "GatherOptions",
                      Axis=axis), [array, places]
    return Single(name, [index, x], typed(rng, (1,), dtype, x)), [places, array]


@case("ONE_HOT", dtypes=("float32", "int32"))
def one_hot(rng, dtype, name):
    values = [Tensor.constant(each, dtype) for each in (5, -2)]
    x = numbers(rng, (3, 4), "int32") % 7
    return Single(name, [Tensor(x.shape, "int32"), Tensor.constant(6), *values],
                  Tensor((1,), dtype), "OneHotOptions", Axis=int(rng.integers(-1, 3))), [x]
