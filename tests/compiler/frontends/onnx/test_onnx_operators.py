"""Every ONNX operator that is read means what ONNX Runtime makes of it, on models of one node."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from microtron.compiler.frontends.onnx.operator_table import OPERATORS
from microtron.compiler.frontends.onnx.read_onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.types import GraphError
from microtron.compiler.passes.pipeline import run_passes

from .onnx_cases import MORE
from .onnx_models import Known, bytes_, known, node_model, real, runtime, truth, weights, whole

MICROSOFT = {"domain": "com.microsoft"}
IMAGE = real(2, 4, 9, 8)
SIGNAL = real(2, 4, 20)
CASES = [
    # Convolutions and pools.
    ("Conv", [IMAGE, known(real(6, 4, 3, 2)), known(real(6))], {"pads": [1, 0, 2, 1]}),
    ("Conv", [IMAGE, real(6, 2, 3, 3)], {"group": 2, "strides": [2, 1], "dilations": [1, 2]}),
    ("Conv", [IMAGE, known(real(4, 1, 3, 3))], {"group": 4, "auto_pad": "SAME_UPPER",
                                               "strides": [2, 3]}),
    ("Conv", [IMAGE, known(real(3, 4, 2, 2))], {"auto_pad": "SAME_LOWER"}),
    ("Conv", [IMAGE, known(real(3, 4, 2, 2))], {"auto_pad": "VALID", "kernel_shape": [2, 2]}),
    ("Conv", [SIGNAL, known(real(6, 2, 3)), known(real(6))], {"pads": [2, 1], "strides": [2],
                                                              "group": 2}),
    ("ConvTranspose", [IMAGE, known(real(4, 3, 3, 2)), known(real(3))],
     {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]}),
    ("ConvTranspose", [IMAGE, known(real(4, 3, 3, 2))], {"group": 2, "dilations": [2, 1]}),
    ("ConvTranspose", [IMAGE, real(4, 3, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", [IMAGE, known(real(4, 3, 3, 3))], {"strides": [2, 2],
                                                         "output_shape": [18, 17]}),
    ("ConvTranspose", [SIGNAL, known(real(4, 3, 3))], {"strides": [2], "pads": [1, 0]}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "dilations": [2, 2]}),
    ("MaxPool", [SIGNAL], {"kernel_shape": [3], "strides": [3], "ceil_mode": 1}),
    ("MaxPool", [bytes_(1, 3, 6, 6)], {"kernel_shape": [2, 2]}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1],
                              "count_include_pad": 1}),
    ("AveragePool", [IMAGE], {"kernel_shape": [4, 4], "strides": [3, 3], "ceil_mode": 1},
     {"opset": 19}),
    ("AveragePool", [IMAGE], {"kernel_shape": [4, 4], "strides": [3, 3], "ceil_mode": 1,
                              "count_include_pad": 1, "pads": [1, 1, 1, 1]}, {"opset": 19}),
    ("AveragePool", [SIGNAL], {"kernel_shape": [4], "auto_pad": "SAME_UPPER"}),
    ("GlobalAveragePool", [IMAGE]), ("GlobalMaxPool", [IMAGE]), ("GlobalAveragePool", [SIGNAL]),
    ("GlobalAveragePool", [real(1, 2, 3, 4, 5)]),
    # Matrices.
    ("Gemm", [real(3, 5), known(real(5, 4)), known(real(4))]),
    ("Gemm", [real(5, 3), known(real(4, 5)), real(3, 1)], {"transA": 1, "transB": 1, "alpha": 0.5,
                                                           "beta": 2.0}),
    ("Gemm", [real(3, 5), real(4, 5), known(real(1, 4))], {"transB": 1}),
    ("Gemm", [real(3, 5), real(5, 4)], {"alpha": 0.25}),
    ("MatMul", [real(2, 3, 5), real(5, 4)]), ("MatMul", [real(5), real(5, 4)]),
    ("MatMul", [real(2, 3, 5), real(5)]), ("MatMul", [real(5), real(5)]),
    ("MatMul", [real(2, 1, 3, 5), known(real(3, 5, 4))]),
    ("FusedMatMul", [real(2, 5, 3), real(2, 4, 5)], {"transA": 1, "transB": 1, "alpha": 0.5},
     MICROSOFT),
    # Arithmetic.
    *[(each, [real(2, 3), real(3, low=0.5)]) for each in ("Add", "Sub", "Mul", "Div")],
    ("Div", [whole(4, dtype="int32"), known([3, -3, 2, -7], "int32")]),
    ("Pow", [real(3, low=0.1), known(2.0, "float32")]), ("Pow", [real(3, low=0.1), real(3)]),
    ("Pow", [real(3, low=0.1), known(0.5, "float32")]), ("Pow", [real(3), known(3, "int64")]),
    *[(each, [real(3), real(2, 3), real(2, 1)]) for each in ("Sum", "Max", "Min", "Mean")],
    ("Max", [real(3)]), ("Mean", [real(3), real(3)]),
    ("Mod", [whole(9, dtype="int64"), known([3, -5, 7], "int64").array.repeat(3)]),
    *[(each, [real(2, 3)]) for each in (
        "Abs", "Neg", "Sign", "Exp", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Tanh",
        "Erf", "Sigmoid", "Softplus", "Softsign", "Floor", "Ceil", "Round", "HardSwish", "Relu",
        "Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Selu", "HardSigmoid", "Identity")],
    *[(each, [real(2, 3, low=0.1, high=0.9)]) for each in (
        "Log", "Sqrt", "Reciprocal", "Asin", "Acos", "Atanh")],
    ("Acosh", [real(4, low=1.1)]), ("Neg", [whole(4, dtype="int64")]),
    ("Mish", [real(4)], {}, {"opset": 18}), ("Swish", [real(4)], {"alpha": 0.5}, {"opset": 24}),
    ("LeakyRelu", [real(4)], {"alpha": 0.3}), ("Elu", [real(4)], {"alpha": 0.3}),
    ("Gelu", [real(4)], {}, {"opset": 20}),
    ("Gelu", [real(4)], {"approximate": "tanh"}, {"opset": 20}),
    ("Gelu", [real(4)], {}, MICROSOFT), ("QuickGelu", [real(4)], {}, MICROSOFT),
    ("FastGelu", [real(2, 4), real(4)], {}, MICROSOFT), ("BiasGelu", [real(2, 4), real(4)], {},
                                                       MICROSOFT),
    ("Clip", [real(9), known(-0.5, "float32"), known(1, "float32")]),
    ("Clip", [real(9), None, known(1, "float32")]), ("Clip", [real(9), real(), None]),
    ("Clip", [real(9)], {"min": -1.0, "max": 0.5}, {"opset": 6}),
    ("Clip", [real(9), known(1, "float32"), known(-1, "float32")]),
    ("PRelu", [real(2, 3, 4), known(real(3, 1))]),
    *[(each, [whole(9, dtype="int32", low=0, high=3), whole(9, dtype="int32", low=0, high=3)])
      for each in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")],
    *[(each, [truth(9), truth(9)]) for each in ("And", "Or", "Xor")], ("Not", [truth(5)]),
    ("IsNaN", [np.array([1, np.nan], np.float32)]),
    ("Where", [truth(3, 1), real(3, 4), real(4)]),
    ("Cast", [real(5, low=-9, high=9)], {"to": 6}), ("Cast", [truth(5)], {"to": 1}),
    ("Cast", [whole(5, dtype="int64", low=-9, high=9)], {"to": 3}),
    ("CastLike", [real(5), whole(1, dtype="int64")], {}, {"opset": 19}),
    # Reductions.
    *[(f"Reduce{each}", [real(2, 3, 4, low=0.1)], {"axes": [-1, 0], "keepdims": keep})
      for each in ("Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
      for keep in (0, 1)],
    ("ReduceSum", [real(2, 3, 4), known([1], "int64")]), ("ReduceSum", [real(2, 3, 4)]),
    ("ReduceSum", [real(2, 3, 4)], {"noop_with_empty_axes": 1}),
    ("ReduceMean", [real(2, 3, 4), known([1, -1], "int64")], {}, {"opset": 18}),
    ("ArgMax", [real(3, 4)], {"axis": -1}),
    ("ArgMin", [whole(3, 4, low=0, high=3, dtype="int32")], {"select_last_index": 1,
                                                             "keepdims": 0}),
    # Moves.
    ("Reshape", [real(2, 3, 4), known([0, -1, 2], "int64")]),
    ("Flatten", [real(2, 3, 4)]), ("Flatten", [real(2, 3, 4)], {"axis": -1}),
    ("Squeeze", [real(2, 1, 1), known([-1], "int64")]), ("Squeeze", [real(2, 1, 1)]),
    ("Squeeze", [real(2, 1, 1)], {"axes": [1]}, {"opset": 11}),
    ("Unsqueeze", [real(2, 3), known([-1, 0], "int64")]),
    ("Unsqueeze", [real(2, 3)], {"axes": [1]}, {"opset": 11}),
    ("Transpose", [real(2, 3, 4)], {"perm": [2, 0, 1]}), ("Transpose", [bytes_(2, 3)]),
    ("Concat", [real(2, 3), known(real(2, 1))], {"axis": -1}),
    ("Slice", [real(5, 6), known([1, -1], "int64"), known([4, -9], "int64"), known([0, 1], "int64"),
               known([2, -2], "int64")]),
    ("Slice", [real(5, 6), known([-3], "int32"), known([1 << 30], "int32"), known([1], "int32")]),
    ("Slice", [real(5, 6)], {"starts": [1], "ends": [-1], "axes": [1]}, {"opset": 9}),
    ("Pad", [real(2, 3), known([1, 0, 0, 2], "int64"), known(7, "float32")]),
    ("Pad", [real(4, 5), known([1, 0, -1, 2], "int64")]),
    ("Pad", [real(4, 5), known([1, 2, 3, 1], "int64")], {"mode": "reflect"}),
    ("Pad", [real(4, 5), known([1, 2, 3, 1], "int64")], {"mode": "edge"}),
    ("Pad", [real(4, 5), known([2, 3], "int64"), None, known([-1], "int64")], {}, {"opset": 18}),
    ("Pad", [real(4, 5)], {"pads": [0, 1, 0, 0], "value": 2.0}, {"opset": 9}),
    ("Expand", [real(3, 1), known([2, 1, 4], "int64")]), ("Tile", [real(2, 3),
                                                                  known([2, 1], "int64")]),
    ("Gather", [real(4, 3), known([[0, -1]], "int64")], {"axis": 1}),
    ("Gather", [real(4, 3), known(-2, "int64")]), ("Gather", [real(4, 3), whole(
        2, low=0, high=4, dtype="int64")]),
    ("GatherND", [real(2, 3, 4), known([[[1], [0]], [[2], [1]]], "int64")], {"batch_dims": 1}),
    ("DepthToSpace", [real(1, 8, 2, 3)], {"blocksize": 2}),
    ("DepthToSpace", [real(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}),
    ("SpaceToDepth", [real(1, 2, 4, 6)], {"blocksize": 2}),
    ("OneHot", [whole(3, low=-4, high=4, dtype="int64"), known(4, "int64"),
                known([2, 5], "float32")], {"axis": 0}),
    ("Dropout", [real(3)]), ("Range", [known(1, "int64"), known(9, "int64"), known(3, "int64")]),
    ("Range", [known(1, "float32"), known(-1, "float32"), known(-0.5, "float32")]),
    ("Shape", [real(2, 3, 4)], {"start": 1}), ("Size", [real(2, 3)]),
    ("ConstantOfShape", [known([2, 3], "int64")]),
    # Resizes.
    *[("Resize", [real(1, 2, 4, 5), None, known([1, 1, 2, 2.5], "float32")],
       {"mode": mode, "coordinate_transformation_mode": where})
      for mode in ("nearest", "linear", "cubic")
      for where in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")],
    *[("Resize", [real(1, 2, 4, 6), None, None, known([1, 2, 7, 3], "int64")],
       {"mode": "nearest", "nearest_mode": how})
      for how in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")],
    ("Resize", [real(1, 2, 4, 6), None, None, known([3, 9], "int64")],
     {"mode": "linear", "axes": [2, 3]}, {"opset": 18}),
    ("Resize", [real(1, 2, 4, 6), known([1, 1, 2, 2], "float32")], {}, {"opset": 10}),
    ("Upsample", [real(1, 2, 4, 6), known([1, 1, 2, 2], "float32")], {}, {"opset": 9}),
    # Norms.
    ("Softmax", [real(2, 3, 4)]), ("Softmax", [real(2, 3, 4)], {"axis": 1}, {"opset": 11}),
    ("LogSoftmax", [real(2, 3, 4)], {"axis": 0}),
    ("BatchNormalization", [IMAGE, *[known(real(4, low=0.5)) for _ in range(4)]],
     {"epsilon": 0.01}),
    ("InstanceNormalization", [IMAGE, known(real(4)), known(real(4))]),
    ("LayerNormalization", [real(2, 3, 4), known(real(4)), known(real(4))]),
    ("LayerNormalization", [real(2, 3, 4), known(real(3, 4))], {"axis": 1}),
    ("GroupNormalization", [IMAGE, known(real(4)), known(real(4))], {"num_groups": 2},
     {"opset": 21}),
    ("LRN", [IMAGE], {"size": 3, "alpha": 0.01}),
    *MORE,
]


def both(op, operands, attributes=None, settings=None, *, outputs=1):
    """What we and ONNX Runtime make of a node; our passes change nothing of it."""
    model = node_model(op, operands, attributes, outputs=outputs, **settings or {})
    data = model.SerializeToString()
    inputs = {f"x{number}": each for number, each in enumerate(operands)
              if each is not None and not isinstance(each, Known)}
    right = runtime(data).run(None, inputs)
    graph = read_onnx(data, "model")
    inputs = {name: inputs[name] for name in graph.inputs}
    found, after = evaluate(graph, inputs), evaluate(run_passes(graph), inputs)
    for name in graph.outputs:
        np.testing.assert_allclose(after[name], found[name], rtol=1e-6, atol=1e-6)
    return [found[name] for name in graph.outputs], right


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda each: f"{CASES[each][0]}-{each}")
def test_a_node_of_real_numbers_is_that_of_onnx_runtime(number):
    op, operands, attributes, settings = (*CASES[number], {}, {})[:4]
    outputs = settings.get("outputs", 1)
    settings = {name: each for name, each in settings.items() if name != "outputs"}
    for found, right in zip(*both(op, operands, attributes, settings, outputs=outputs),
                            strict=True):
        assert (found.shape, found.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)


def scale(*shape, low=0.01, high=0.1):
    return known(real(*shape, low=low, high=high))


def zero(value, dtype="uint8"):
    return known(value, dtype)


QUANTIZED = [
    ("QuantizeLinear", [real(5, 6), scale(), zero(130)]),
    ("QuantizeLinear", [real(5, 6), scale(), zero(-3, "int8")]),
    ("QuantizeLinear", [real(5, 6), scale(6), zero([1, 2, 3, 4, 5, 6])], {"axis": 1}),
    ("QuantizeLinear", [real(5, 6), scale()]),
    ("QuantizeLinear", [real(5), scale()], {"output_dtype": 3}, {"opset": 21}),
    ("QuantizeLinear", [real(5, 6), scale(), zero(130)], {}, MICROSOFT),
    ("DequantizeLinear", [bytes_(5, 6), scale(), zero(130)], {}, MICROSOFT),
    ("DequantizeLinear", [bytes_(5, 6), scale(), zero(130)]),
    ("DequantizeLinear", [known(whole(5, 6)), scale(5)], {"axis": 0}),
    ("QLinearConv", [bytes_(1, 4, 6, 6), scale(), zero(120), known(weights(5, 4, 3, 3)), scale(5),
                     zero([0] * 5, "int8"), scale(low=0.5, high=2), zero(99),
                     known(whole(5, low=-900, high=900, dtype="int32"))], {"pads": [1, 1, 0, 0]}),
    ("QLinearConv", [whole(1, 4, 6, 6), scale(), zero(-7, "int8"), known(weights(4, 1, 3, 3)),
                     scale(), zero(0, "int8"), scale(low=0.2, high=2), zero(9, "int8")],
     {"group": 4, "strides": [2, 2]}),
    ("QLinearConv", [bytes_(1, 4, 9), scale(), zero(120), known(bytes_(5, 4, 3)), scale(),
                     zero(77), scale(low=0.5, high=2), zero(99)], {"pads": [1, 1]}),
    ("QLinearMatMul", [bytes_(3, 8), scale(), zero(120), known(weights(8, 5)), scale(5),
                       zero([0] * 5, "int8"), scale(low=0.5, high=2), zero(99)]),
    ("QLinearMatMul", [bytes_(2, 3, 8), scale(), zero(120), bytes_(2, 8, 5), scale(), zero(9),
                       scale(low=0.5, high=2), zero(99)]),
    ("QGemm", [whole(3, 8), scale(), zero(5, "int8"), known(weights(5, 8)), scale(5),
               zero([0] * 5, "int8"), known(whole(5, dtype="int32")), scale(low=0.5, high=2),
               zero(9, "int8")], {"transB": 1, "alpha": 0.5}, MICROSOFT),
    ("QLinearAdd", [bytes_(3, 8), scale(), zero(120), bytes_(8), scale(), zero(3), scale(),
                    zero(100)], {}, MICROSOFT),
    ("QLinearMul", [bytes_(3, 8), scale(), zero(120), known(bytes_(8)), scale(), zero(3),
                    scale(low=0.1), zero(100)], {}, MICROSOFT),
    ("QLinearSigmoid", [bytes_(40), scale(), zero(120), known(1 / 256, "float32"), zero(0)], {},
     MICROSOFT),
    ("QLinearLeakyRelu", [whole(40), scale(), zero(12, "int8"), scale(), zero(0, "int8")],
     {"alpha": 0.2}, MICROSOFT),
    ("QLinearSoftmax", [bytes_(3, 4, 5), scale(), zero(120), known(1 / 256, "float32"), zero(0)],
     {"axis": 1, "opset": 12}, MICROSOFT),
    ("QLinearConcat", [scale(), zero(100), bytes_(2, 3), scale(), zero(120), bytes_(2, 4), scale(),
                       zero(7)], {"axis": 1}, MICROSOFT),
    ("QLinearAveragePool", [bytes_(1, 3, 7, 7), scale(), zero(120), scale(), zero(100)],
     {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}, MICROSOFT),
    ("QLinearGlobalAveragePool", [bytes_(1, 3, 7, 7), scale(), zero(120), scale(), zero(100)], {},
     MICROSOFT),
]


@pytest.mark.parametrize("number", range(len(QUANTIZED)),
                         ids=lambda each: f"{QUANTIZED[each][0]}-{each}")
def test_a_node_of_integers_is_within_a_step_of_that_of_onnx_runtime(number):
    for found, right in zip(*both(*QUANTIZED[number]), strict=True):
        assert (found.shape, found.dtype) == (right.shape, right.dtype)
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, right, rtol=1e-6)
        else:
            assert np.abs(found.astype(int) - right).max() <= 1


EXACT = [
    ("ConvInteger", [bytes_(1, 4, 6, 6), known(weights(5, 4, 3, 3)), zero(120)]),
    ("MatMulInteger", [bytes_(3, 8), known(weights(8, 5)), zero(120), zero([3] * 5, "int8")]),
    ("MatMulInteger", [bytes_(3, 8), bytes_(8, 5), np.array(7, np.uint8)]),
    ("MatMulInteger", [bytes_(3, 8), bytes_(8, 5)]),
    ("MatMulIntegerToFloat", [bytes_(3, 8), known(weights(8, 5)), real(low=0.1), scale(5), zero(9),
                              zero(0, "int8"), known(real(5))], {}, MICROSOFT),
    ("DynamicQuantizeMatMul", [real(3, 8), known(weights(8, 5)), scale(5),
                               zero([0] * 5, "int8"), known(real(5))], {}, MICROSOFT),
    ("DynamicQuantizeMatMul", [real(3, 8), known(weights(8, 5)), scale()], {},
     MICROSOFT),
    ("DynamicQuantizeLinear", [np.zeros((2, 3), np.float32)]),
    ("DynamicQuantizeLinear", [real(5, 6)]), ("DynamicQuantizeLinear", [real(5, 6, low=0.5)]),
]


@pytest.mark.parametrize("number", range(len(EXACT)), ids=lambda each: f"{EXACT[each][0]}-{each}")
def test_sums_of_integers_are_exact(number):
    case = EXACT[number]
    count = 3 if case[0] == "DynamicQuantizeLinear" else 1
    for found, right in zip(*both(*case, outputs=count), strict=True):
        assert (found.shape, found.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(found, right, rtol=1e-6)


def test_a_split_gives_each_part():
    x = real(2, 7)
    for operands, attributes, opset, count in (
            ([x, known([3, 4], "int64")], {"axis": 1}, 17, 2),
            ([x], {"axis": 1, "split": [5, 2]}, 11, 2),
            ([x], {"axis": -1, "num_outputs": 3}, 18, 3), ([x], {"axis": 0}, 17, 2)):
        found, right = both("Split", operands, attributes, {"opset": opset}, outputs=count)
        for one, other in zip(found, right, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_constant_is_what_it_says():
    for attributes in ({"value_float": 2.5}, {"value_int": 3}, {"value_floats": [1.0, 2.0]},
                       {"value_ints": [4, 5]}):
        found, right = both("Constant", [], attributes)
        assert found[0].dtype == right[0].dtype
        np.testing.assert_array_equal(found[0], right[0])


@pytest.mark.parametrize("least", [None, 0.8])
@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("most", [0, 3, 20])
def test_boxes_that_are_kept_come_first_and_are_those_of_onnx_runtime(most, centred, least):
    operands = [real(2, 20, 4, low=0), np.round(real(2, 3, 20, low=0), 1), known([most], "int64"),
                known([0.2], "float32"), None if least is None else known([least], "float32")]
    (found,), (right,) = both("NonMaxSuppression", operands, {"center_point_box": centred})
    assert found.shape == (2 * 3 * most, 3)
    np.testing.assert_array_equal(found[:len(right)], right)
    assert (found[len(right):] == -1).all()


# What it has no kernel for, or no kernel for the opset that ours is for: ONNX's own tests judge.
NOT_IN_ONNX_RUNTIME = {"QLinearReduceMean", "BitCast", "CumProd"}
WITH_BODIES = {"If", "Loop", "Scan"}            # in test_onnx_bodies.py


def test_every_operator_is_tested():
    tested = {(each[3] if len(each) > 3 else {}).get("domain", "") + "." + each[0]
              for each in (*CASES, *QUANTIZED, *EXACT)} | {".Split", ".Constant",
                                                           ".NonMaxSuppression"}
    there = {f"{domain}.{name}" for domain, name in OPERATORS
             if name not in NOT_IN_ONNX_RUNTIME | WITH_BODIES}
    assert there <= tested, there - tested


def test_a_quantized_mean_is_that_of_its_numbers():
    x = bytes_(2, 3, 4)
    model = node_model("QLinearReduceMean", [x, known(0.5, "float32"), zero(9),
                                             known(0.25, "float32"), zero(3)],
                       {"axes": [1, -1], "keepdims": 0}, **MICROSOFT)
    found = evaluate(read_onnx(model.SerializeToString()), {"x0": x})["y0"]
    right = np.clip((x.astype(float) - 9).mean((1, 2)) * 2 + 3, 0, 255)
    assert np.abs(found - right).max() <= 0.5
    with pytest.raises(GraphError, match="unknown attribute"):
        read_onnx(node_model("QLinearReduceMean", [x], {"axis": 3}, **MICROSOFT
                             ).SerializeToString())
