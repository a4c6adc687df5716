"""Random models of operators that sort, sum as they go, write to places, and work on bits."""

from __future__ import annotations

import numpy as np

from .tflite_cases import QUANTIZED, case, images, numbers, side, typed
from .tflite_files import Single, Tensor


@case("TOPK_V2", dtypes=(*QUANTIZED, "float32", "int32", "int64"))
def top_k(rng, dtype, name):
    x = typed(rng, (side(rng), side(rng, 9)), dtype)
    count = Tensor.constant(int(rng.integers(1, x.shape[-1] + 1)))
    return Single(name, [x, count], [typed(rng, (1,), dtype, x), Tensor((1,), "int32")],
                  "TopKV2Options"), [numbers(rng, x.shape, dtype) % 7 if dtype in (
                      "int32", "int64") else numbers(rng, x.shape, dtype)]


@case("CUMSUM", dtypes=("float32", "int32", "int64"))
def cumulative_sum(rng, dtype, name):
    x, array = images(rng, dtype)
    return Single(name, [x, Tensor.constant(int(rng.integers(-4, 4)))], Tensor((1,), dtype),
                  "CumsumOptions", Exclusive=bool(rng.integers(2)),
                  Reverse=bool(rng.integers(2))), [array]


@case("SCATTER_ND", dtypes=("float32", "int32", "int64"))
def scatter_nd(rng, dtype, name):
    shape = [side(rng), side(rng), side(rng)]
    places = np.stack([rng.integers(0, size, 5) for size in shape[:2]], -1).astype(np.int32)
    updates = numbers(rng, (5, shape[2]), dtype)
    return Single(name, [Tensor(places.shape, "int32"), Tensor(updates.shape, dtype),
                         Tensor.constant(shape)], Tensor((1,), dtype),
                  "ScatterNdOptions"), [places, updates]


@case("BITWISE_XOR", "RIGHT_SHIFT", dtypes=("int8", "uint8", "int16", "int32"))
def bits(rng, dtype, name):
    left, right = numbers(rng, (3, 4), dtype), numbers(rng, (4,), dtype)
    if name == "RIGHT_SHIFT":
        right = np.abs(right.astype(int)) % (8 * right.dtype.itemsize)
    kind = "BitwiseXorOptions" if name == "BITWISE_XOR" else "RightShiftOptions"
    return Single(name, [Tensor(left.shape, dtype), Tensor(right.shape, dtype)],
                  Tensor((1,), dtype), kind), [left, right.astype(dtype)]


@case("REVERSE_SEQUENCE", dtypes=("uint8", "float32", "int32"))
def reverse_sequence(rng, dtype, name):
    x = Tensor((side(rng), side(rng), side(rng)), dtype)
    time, batch = (int(each) for each in rng.permutation(3)[:2])
    lengths = rng.integers(1, x.shape[time] + 1, x.shape[batch]).astype(np.int32)
    return Single(name, [x, Tensor(lengths.shape, "int32")], Tensor((1,), dtype),
                  "ReverseSequenceOptions", SeqDim=time, BatchDim=batch), [
                      numbers(rng, x.shape, dtype), lengths]


@case("NON_MAX_SUPPRESSION_V4", dtypes=("float32",))
def suppress(rng, dtype, name):
    count = int(rng.integers(4, 20))
    corners = np.sort(rng.uniform(0, 4, (count, 2, 2)), axis=1).reshape(count, 4)
    return Single(name, [Tensor((count, 4), dtype), Tensor((count,), dtype),
                         Tensor.constant(int(rng.integers(1, count + 1))),
                         Tensor.constant(0.3, dtype), Tensor.constant(0.2, dtype)],
                  [Tensor((1,), "int32"), Tensor((), "int32")], "NonMaxSuppressionV4Options"), [
                      corners.astype(dtype), rng.random(count).astype(dtype)]
