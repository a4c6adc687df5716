"""More random models of one operator each: those that move numbers."""

from __future__ import annotations

import numpy as np

from .tflite_cases import ALL, case, images, numbers, side, typed
from .tflite_files import Single, Tensor


@case("RESHAPE", "SQUEEZE", "EXPAND_DIMS", dtypes=(*ALL, "int16"))
def reshape(rng, dtype, name):
    shape = (side(rng), 1, 2 * side(rng), 1)
    x = typed(rng, shape, dtype)
    y, array = typed(rng, (1,), dtype, x), numbers(rng, shape, dtype)
    if name == "SQUEEZE":
        return Single(name, [x], y, "SqueezeOptions",
                      SqueezeDims=[[1], [], [-1, 1]][int(rng.integers(3))]), [array]
    if name == "EXPAND_DIMS":
        return Single(name, [x, Tensor.constant(int(rng.integers(-5, 5)))], y,
                      "ExpandDimsOptions"), [array]
    wanted = [2, -1] if rng.random() < 0.5 else [shape[0], shape[2]]
    if rng.random() < 0.3:
        return Single(name, [x], y, "ReshapeOptions", NewShape=wanted), [array]
    return Single(name, [x, Tensor.constant(wanted)], y, "ReshapeOptions"), [array]


@case("TRANSPOSE", "TILE", "BROADCAST_TO", "REVERSE_V2")
def rearrange(rng, dtype, name):
    shape = tuple(1 if name == "BROADCAST_TO" and axis % 2 else side(rng) for axis in range(3))
    wanted = {"TRANSPOSE": rng.permutation(3), "TILE": rng.integers(1, 4, 3),
              "BROADCAST_TO": [2, shape[0], 3, shape[2]], "REVERSE_V2": [int(rng.integers(-3, 3))],
              }[name]
    x = typed(rng, shape, dtype)
    kind = {"TRANSPOSE": "TransposeOptions", "TILE": "TileOptions",
            "BROADCAST_TO": "BroadcastToOptions", "REVERSE_V2": "ReverseV2Options"}[name]
    return Single(name, [x, Tensor.constant(wanted)], typed(rng, (1,), dtype, x),
                  *([] if name == "BROADCAST_TO" else [kind])), [numbers(rng, shape, dtype)]


@case("FILL", dtypes=("float32", "int32"))
def fill(rng, dtype, name):
    value = Tensor((), dtype)
    return Single(name, [Tensor.constant([side(rng), side(rng)]), value], Tensor((1,), dtype),
                  "FillOptions"), [numbers(rng, (), dtype)]


@case("SHAPE", "RANK", dtypes=("float32",))
def shape(rng, dtype, name):
    x, array = images(rng, dtype)
    if name == "RANK":
        return Single(name, [x], Tensor((), "int32"), "RankOptions"), [array]
    return Single(name, [x], Tensor((4,), "int32"), "ShapeOptions", OutType=2), [array]


@case("CONCATENATION", dtypes=(*ALL, "int16"))
def concatenation(rng, dtype, name):
    """Unsigned parts may have scales of their own."""
    x, array = images(rng, dtype)
    axis = int(rng.integers(-4, 4))
    other = list(x.shape)
    other[axis] = side(rng)
    y = typed(rng, tuple(other), dtype, None if dtype == "uint8" else x)
    result = typed(rng, (1,), dtype, None if dtype == "uint8" else x)
    return Single(name, [x, y, x], result, "ConcatenationOptions", Axis=axis), [
        array, numbers(rng, other, dtype), numbers(rng, x.shape, dtype)]


@case("PACK", dtypes=(*ALL, "int16"))
def pack(rng, dtype, name):
    x = typed(rng, (side(rng), side(rng)), dtype)
    return Single(name, [x, x], typed(rng, (1,), dtype, x), "PackOptions", ValuesCount=2,
                  Axis=int(rng.integers(-3, 3))), [numbers(rng, x.shape, dtype) for _ in range(2)]


@case("PAD", "PADV2", "MIRROR_PAD")
def pad(rng, dtype, name):
    x, array = images(rng, dtype)
    widths = rng.integers(0, 4, (4, 2))
    y = typed(rng, (1,), dtype, x)
    if name == "MIRROR_PAD":
        mode = int(rng.integers(2))
        widths = np.minimum(widths, np.array(x.shape)[:, None] - (1 - mode))
        return Single(name, [x, Tensor.constant(widths)], y, "MirrorPadOptions",
                      Mode=mode), [array]
    if name == "PAD":
        return Single(name, [x, Tensor.constant(widths)], y, "PadOptions"), [array]
    value = typed(rng, (1,), dtype, x)
    value.data = numbers(rng, (1,), dtype)
    return Single(name, [x, Tensor.constant(widths), value], y, "PadV2Options"), [array]


@case("SLICE", dtypes=(*ALL, "int16"))
def slice_(rng, dtype, name):
    x, array = images(rng, dtype)
    starts = [int(rng.integers(0, size)) for size in x.shape]
    sizes = [-1 if rng.random() < 0.3 else int(rng.integers(1, size - start + 1))
             for size, start in zip(x.shape, starts, strict=True)]
    after = [size - start if count == -1 else count
             for size, start, count in zip(x.shape, starts, sizes, strict=True)]
    return Single(name, [x, Tensor.constant(starts), Tensor.constant(sizes)],
                  typed(rng, after, dtype, x), "SliceOptions"), [array]


@case("STRIDED_SLICE", dtypes=(*ALL, "int16"))
def strided_slice(rng, dtype, name):
    x, array = images(rng, dtype)
    count = int(rng.integers(1, 4))
    steps = rng.choice([1, 1, 2, -1, -2], count)
    starts, ends = (rng.integers(-4, 5, count) for _ in range(2))
    shrink = int(rng.integers(0, 1 << count)) & int(rng.integers(0, 1 << count))
    for axis in range(count):           # what is one index must be there
        if shrink >> axis & 1:
            starts[axis] = rng.integers(-x.shape[axis], x.shape[axis])
            steps[axis], ends[axis] = 1, starts[axis] + 1
    options = {"BeginMask": int(rng.integers(0, 1 << count)) & ~shrink,
               "EndMask": int(rng.integers(0, 1 << count)) & ~shrink, "ShrinkAxisMask": shrink}
    if shrink == 0 and rng.random() < 0.3:
        options["NewAxisMask"] = 1
    elif shrink == 0 and rng.random() < 0.3:
        options["EllipsisMask"] = 1 << int(rng.integers(0, count))
    return Single(name, [x, *map(Tensor.constant, (starts, ends, steps))],
                  typed(rng, (1,), dtype, x), "StridedSliceOptions", **options), [array]


@case("SPLIT", "SPLIT_V")
def split(rng, dtype, name):
    axis = int(rng.integers(-3, 3))
    shape = [side(rng), side(rng), side(rng)]
    shape[axis] = 6
    x = typed(rng, tuple(shape), dtype)
    results = [typed(rng, (1,), dtype, x) for _ in range(3)]
    array = numbers(rng, shape, dtype)
    if name == "SPLIT":
        return Single(name, [Tensor.constant(axis), x], results, "SplitOptions",
                      NumSplits=3), [array]
    return Single(name, [x, Tensor.constant([1, -1, 2]), Tensor.constant(axis)], results,
                  "SplitVOptions", NumSplits=3), [array]


@case("UNPACK", dtypes=(*ALL, "int16"))
def unpack(rng, dtype, name):
    axis = int(rng.integers(-3, 3))
    shape = [side(rng), side(rng), side(rng)]
    shape[axis] = 3
    x = typed(rng, tuple(shape), dtype)
    return Single(name, [x], [typed(rng, (1,), dtype, x) for _ in range(3)], "UnpackOptions",
                  Num=3, Axis=axis), [numbers(rng, shape, dtype)]


@case("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(rng, dtype, name):
    x, array = images(rng, dtype)
    kind = ("ResizeBilinearOptions" if name == "RESIZE_BILINEAR"
            else "ResizeNearestNeighborOptions")
    align, half = [(False, False), (True, False), (False, True)][int(rng.integers(3))]
    sides = [side(rng, int(rng.choice([3, 17]))) for _ in range(2)]
    return Single(name, [x, Tensor.constant(sides)],
                  typed(rng, (1,), dtype, x), kind, AlignCorners=align,
                  HalfPixelCenters=half), [array]


@case("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def depth(rng, dtype, name):
    shape = (2, 4, 6, 3) if name == "SPACE_TO_DEPTH" else (2, 3, 2, 8)
    kind = "SpaceToDepthOptions" if name == "SPACE_TO_DEPTH" else "DepthToSpaceOptions"
    x = typed(rng, shape, dtype)
    return Single(name, [x], typed(rng, (1,), dtype, x), kind, BlockSize=2), [
        numbers(rng, shape, dtype)]


@case("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def batch(rng, dtype, name):
    shape = (2, 4, 5, 3) if name == "SPACE_TO_BATCH_ND" else (12, 3, 2, 2)
    borders = [[1, 1], [0, 1]] if name == "SPACE_TO_BATCH_ND" else [[1, 0], [0, 2]]
    x = typed(rng, shape, dtype)
    kind = f"{'SpaceToBatchND' if name == 'SPACE_TO_BATCH_ND' else 'BatchToSpaceND'}Options"
    return Single(name, [x, Tensor.constant([2, 3]), Tensor.constant(borders)],
                  typed(rng, (1,), dtype, x), kind), [numbers(rng, shape, dtype)]
