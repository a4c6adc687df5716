"""Nodes of operators that pick, write, sort, shift, repeat and sample, as ONNX Runtime has them:
(operator, operands, attributes, settings of the model)."""

from __future__ import annotations

import numpy as np

from .onnx_models import bytes_, known, real, truth, whole

NAN, INF = np.nan, np.inf


def places(*shape, size, dtype="int64"):
    return whole(*shape, low=-size, high=size, dtype=dtype)


def lengths(*values):
    return np.array(values, np.int32)


def layer(gates, *, steps=5, batch=3, inputs=4, hidden=2, directions=1):
    """The operands of a recurrent layer: input, weights, recurrent weights, bias."""
    return [real(steps, batch, inputs), known(real(directions, gates * hidden, inputs)),
            known(real(directions, gates * hidden, hidden)),
            known(real(directions, 2 * gates * hidden))]


STATE = real(2, 3, 2)
RECURRENT = [
    ("RNN", layer(1), {"hidden_size": 2}, {"outputs": 2}),
    ("RNN", [*layer(1, directions=2), None, STATE],
     {"hidden_size": 2, "direction": "bidirectional", "activations": ["Relu", "Tanh"],
      "clip": 1.5}, {"outputs": 2}),
    ("RNN", [*layer(1), lengths(5, 2, 0)], {"hidden_size": 2, "direction": "reverse"},
     {"outputs": 2}),
    ("GRU", layer(3), {"hidden_size": 2}, {"outputs": 2}),
    ("GRU", layer(3), {"hidden_size": 2, "linear_before_reset": 1}, {"outputs": 2}),
    ("GRU", [*layer(3, directions=2), lengths(3, 5, 1), STATE],
     {"hidden_size": 2, "direction": "bidirectional", "linear_before_reset": 1}, {"outputs": 2}),
    ("GRU", [*layer(3)[:3], None, lengths(4, 5, 1)], {"hidden_size": 2, "direction": "reverse"},
     {"outputs": 2}),
    ("LSTM", layer(4), {"hidden_size": 2}, {"outputs": 3}),
    ("LSTM", [*layer(4, directions=2), lengths(3, 5, 1), STATE, STATE, known(real(2, 6))],
     {"hidden_size": 2, "direction": "bidirectional"}, {"outputs": 3}),
    ("LSTM", [*layer(4)[:3], None, None, None, None, known(real(1, 6))],
     {"hidden_size": 2, "direction": "reverse", "clip": 0.7}, {"outputs": 3}),
]
SPECTRA = [        # of lengths for which ONNX Runtime is precise
    ("DFT", [real(2, 16, 1)]), ("DFT", [real(2, 16, 1)], {"onesided": 1}),
    ("DFT", [real(2, 8, 2)]), ("DFT", [real(2, 8, 2)], {"inverse": 1}),
    ("DFT", [real(2, 5, 12, 1), known(8, "int64")], {"axis": 2, "onesided": 1}),
    ("DFT", [real(2, 5, 12, 1), known(16, "int64")], {"axis": -2}),
    ("DFT", [real(2, 4, 3, 2), None, known(1, "int64")], {"inverse": 1}, {"opset": 20}),
    ("STFT", [real(2, 35, 1), known(7, "int64"), None, known(8, "int64")], {"onesided": 1}),
    ("STFT", [real(2, 20, 2), known(4, "int64"), known(real(8))], {"onesided": 0}),
]
PICKED = [
    ("GatherElements", [real(3, 4), places(2, 4, size=3)]),
    ("GatherElements", [bytes_(3, 4), places(3, 7, size=4, dtype="int32")], {"axis": -1}),
    ("Scatter", [real(3, 4), known([[1, 0], [2, 3]], "int64"), real(2, 2)], {"axis": 1},
     {"opset": 9}),
    ("ScatterElements", [real(3, 4), known([[1, 0, 2, -1]] * 2, "int64"), real(2, 4)]),
    *[("ScatterElements", [real(3, 4), known([[1, 1, -1], [0, 0, 1]], "int64"), real(2, 3)],
       {"axis": 1, "reduction": each}, {"opset": 18}) for each in ("add", "mul", "min", "max")],
    ("ScatterND", [real(4, 3, 2), known([[0, 2], [3, -1]], "int64"), real(2, 2)]),
    *[("ScatterND", [real(4, 3), known([[[1]], [[1]]], "int64"), real(2, 1, 3)],
       {"reduction": each}, {"opset": 18}) for each in ("add", "mul", "min", "max")],
    ("TensorScatter", [real(2, 5, 3), real(2, 2, 3), np.array([1, 3])], {}, {"opset": 24}),
    ("TensorScatter", [real(2, 1, 4, 3), real(2, 1, 2, 3), np.array([1, 3])],
     {"mode": "circular"}, {"opset": 24}),
    ("TopK", [real(3, 5), known([2], "int64")], {}, {"outputs": 2}),
    ("TopK", [whole(4, 3, low=0, high=3, dtype="int64"), known([3], "int64")],
     {"axis": 0, "largest": 0}, {"outputs": 2}),
    ("CumSum", [real(3, 4), known(1, "int64")]),
    ("CumSum", [whole(3, 4, dtype="int32"), known(-2, "int32")], {"exclusive": 1, "reverse": 1}),
    ("Compress", [real(3, 4), known([False, True, True])], {"axis": 0}),
    ("Compress", [real(3, 4), known([True, False, True, True, True])]),
    ("ReverseSequence", [real(4, 3, 2), np.array([1, 4, 2])]),
    ("ReverseSequence", [real(3, 4), np.array([1, 4, 2])], {"batch_axis": 0, "time_axis": 1}),
    *[("Trilu", [real(2, 3, 4), known(k, "int64")], {"upper": upper})
      for k in (-5, -1, 0, 2, 9) for upper in (0, 1)],
    ("Trilu", [whole(3, 3, dtype="int64")]), ("EyeLike", [real(3, 5)], {"k": 1}),
    ("EyeLike", [real(3, 2)], {"k": -1, "dtype": 7}), ("Hardmax", [real(2, 3, 4)]),
    ("Hardmax", [real(2, 3, 4)], {"axis": 1}, {"opset": 11}),
]
NUMBERS = [
    *[(f"Bitwise{each}", [whole(3, 4, dtype=dtype), whole(4, dtype=dtype)], {}, {"opset": 18})
      for each in ("And", "Or", "Xor") for dtype in ("int8", "uint16", "int64")],
    ("BitwiseNot", [whole(9, dtype="int32")], {}, {"opset": 18}),
    *[("BitShift", [whole(9, low=0, high=250, dtype=dtype), whole(9, low=0, high=8, dtype=dtype)],
       {"direction": each}) for each in ("LEFT", "RIGHT") for dtype in ("uint8", "uint32")],
    *[("Mod", [whole(9, dtype=dtype), known([3, -5, 7], dtype).array.repeat(3)], {"fmod": fmod})
      for dtype in ("int8", "int32", "int64") for fmod in (0, 1)],
    ("Mod", [real(9), real(9)], {"fmod": 1}),
    ("Pow", [whole(5, low=0, high=9, dtype="int32"), known([2, 1, 0.5, 1.5, 0], "float32")]),
    ("Pow", [whole(4, low=-3, high=4, dtype="int64"), known([2, 3, 1, 0], "int64").array]),
    *[("IsInf", [np.array([1, INF, -INF, NAN], np.float32)],
       {"detect_negative": one, "detect_positive": other}) for one in (0, 1) for other in (0, 1)],
    ("Einsum", [real(2, 3, 4), real(2, 4, 5)], {"equation": "bij,bjk->bik"}),
    ("Einsum", [real(3, 4), real(4, 5), real(5)], {"equation": "ij, jk, k -> ki"}),
    ("Einsum", [real(2, 3, 3)], {"equation": "...ii->...i"}),
    ("Einsum", [real(3, 1, 4), real(1, 5, 4)], {"equation": "...k,...k"}),
    ("Einsum", [real(3, 4, 5)], {"equation": "kji->j"}),
    ("Einsum", [whole(3, 4, dtype="int32"), whole(4, 2, dtype="int32")], {"equation": "ab,bc"}),
]
IMAGES = [
    *[("GridSample", [real(2, 2, 4, 5), real(2, 3, 6, 2, low=-1.6, high=1.6)],
       {"mode": mode, "padding_mode": outside, "align_corners": align})
      for mode in ("bilinear", "nearest", "bicubic") for outside in ("zeros", "border",
                                                                     "reflection")
      for align in (0, 1)],
    ("Col2Im", [real(2, 12, 6), known([4, 5], "int64"), known([2, 3], "int64")],
     {"strides": [2, 1]}, {"opset": 18}),
    ("Col2Im", [real(1, 8, 16), known([4, 3], "int64"), known([2, 2], "int64")],
     {"pads": [1, 1, 1, 1], "dilations": [2, 1]}, {"opset": 18}),
    ("MaxUnpool", [real(1, 1, 2, 2), known([[[[0, 3], [8, 15]]]], "int64").array],
     {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("MaxPool", [real(2, 3, 7, 6)], {"kernel_shape": [3, 2], "strides": [2, 1],
                                     "pads": [1, 0, 1, 1]}, {"outputs": 2}),
    ("MaxPool", [real(2, 3, 7)], {"kernel_shape": [3], "ceil_mode": 1, "strides": [3]},
     {"outputs": 2}),
    ("MaxPool", [bytes_(2, 3, 4, 5)], {"kernel_shape": [2, 2], "storage_order": 1},
     {"outputs": 2}),
    ("MaxPool", [real(2, 3, 5, 6, 7)], {"kernel_shape": [2, 3, 2], "strides": [1, 2, 3],
                                        "pads": [1, 1, 0, 0, 1, 1], "ceil_mode": 1}),
    ("AveragePool", [real(2, 3, 5, 6, 7)], {"kernel_shape": [3, 3, 2], "strides": [2, 2, 1],
                                            "pads": [1, 1, 0, 1, 0, 1]}),
    ("AveragePool", [real(2, 3, 5, 6, 7)], {"kernel_shape": [3, 3, 2], "count_include_pad": 1,
                                            "pads": [1, 1, 0, 1, 0, 1]}),
    ("LpPool", [real(2, 3, 7, 6)], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "p": 3}),
    ("LpPool", [real(2, 3, 7)], {"kernel_shape": [3], "strides": [2]}),
    ("GlobalLpPool", [real(2, 3, 5, 6)], {"p": 1}), ("GlobalLpPool", [real(2, 3, 5, 6)]),
    ("ConvTranspose", [real(1, 4, 3, 3), real(4, 2, 2, 2)], {"group": 2}),
    ("LpNormalization", [real(2, 3, 4)], {"p": 1, "axis": 1}),
    ("LpNormalization", [real(2, 3, 4)]),
    ("LayerNormalization", [real(2, 3, 4), known(real(4)), known(real(4))], {}, {"outputs": 3}),
    ("Dropout", [truth(3).astype(np.float32)], {}, {"outputs": 2}),
]
RESIZED = [
    *[("Resize", [real(1, 2, 9, 7), None, known([1, 1, 0.5, 0.7], "float32")],
       {"mode": mode, "antialias": 1}, {"opset": 18}) for mode in ("linear", "cubic")],
    ("Resize", [real(1, 1, 9, 7), None, None, known([1, 1, 4, 14], "int64")],
     {"mode": "cubic", "antialias": 1, "exclude_outside": 1}, {"opset": 18}),
    ("Resize", [real(1, 2, 5, 4), None, known([1, 1, 1.5, 2], "float32")],
     {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}),
    *[("Resize", [real(1, 1, 5, 4), known([0, 0, 0.4, -0.2, 1, 1, 0.8, 1.1], "float32"), None,
                  known([1, 1, 4, 6], "int64")],
       {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 10.0}) for mode in ("linear", "nearest")],
    *[("Resize", [real(1, 2, 5, 4), None, None, known([7, 8], "int64")],
       {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": each}, {"opset": 18})
      for each in ("not_larger", "not_smaller")],
    ("Resize", [real(1, 2, 5, 4), None, known([1, 1, 0.7, 0.7], "float32")],
     {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}, {"opset": 19}),
]
MORE = [*RESIZED, *RECURRENT, *PICKED, *NUMBERS, *IMAGES, *SPECTRA]
