"""Operands as a user has them: what is taken, what is refused, and how weights lie in DRAM."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.convolution import conv2d, transposed
from microtron.compiler.operators.dense import dense
from microtron.compiler.operators.depthwise import depthwise, grouped
from microtron.compiler.operators.elementwise import elementwise
from microtron.compiler.operators.packing import (
    Operand,
    check_operands,
    integers,
    pack_parameters,
    pack_weights,
    weight_tiles,
)
from microtron.isa.arithmetic import quantize_scale
from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer
from microtron.sim.functional.scratchpads import unpack
from microtron.testing.campaign import SMALL

from .operations import operands_for

CONFIGS = {
    "int4": SMALL["int4"],
    "rows of one weight": replace(tiny, wgt_bits=4, block_in=1, block_out=2),
    "one row": replace(tiny, wgt_bits=4, block_in=2, block_out=1),
    "8 bits": tiny,
}
INT4 = CONFIGS["int4"]
LAYER = conv2d.Conv2d(height=3, width=4, channels_in=5, channels_out=6)
SIZES = {"height": 3, "width": 3, "channels_in": 4, "channels_out": 4}
FORMS = {
    "conv2d": conv2d.form_of(conv2d.Conv2d(**SIZES), INT4),
    "dense": dense.form_of(dense.Dense(rows=3, inputs=4, outputs=4), INT4),
    "depthwise": depthwise.form_of(depthwise.Depthwise(**SIZES), INT4),
    "grouped": grouped.form_of(grouped.Grouped(**SIZES, groups=2), INT4, 1),
    "transposed": transposed.form_of(transposed.Transposed(**SIZES), INT4),
}


@pytest.fixture(scope="module")
def kernel():
    return compile_op(LAYER, tiny)


@pytest.fixture
def given(kernel):
    return operands_for(kernel.form)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_scratchpad_gets_the_weights_that_were_packed(config):
    limit = 1 << config.wgt_bits - 1
    weights = np.random.default_rng(0).integers(-limit, limit, (11, 7, 3, 2), np.int8)
    packed = pack_weights(weights, config)
    data = packed.view(np.uint8).reshape(-1, config.tile_bytes(Buffer.WGT))
    tiles = weight_tiles(weights, config)
    assert np.array_equal(unpack(data, Buffer.WGT, config).reshape(tiles.shape), tiles)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("value", [8, -9])
def test_weights_that_do_not_fit_are_refused_whatever_the_operator(form, value):
    operands = operands_for(form)
    operands["weights"].flat[-1] = value
    with pytest.raises(CompileError, match=rf"weights\[.*\] is {value}, but must be from -8 to 7"):
        check_operands(form.operands, operands)
    operands["weights"].flat[-1] = 7
    assert form.pack(check_operands(form.operands, operands))["weights"].dtype == np.uint8


@pytest.mark.parametrize(("name", "value", "message"), [
    ("multiplier", 1 << 31, "is 2147483648, but must be from -2147483648 to 2147483647"),
    ("multiplier", -(1 << 31) - 1, "is -2147483649, but must be from -2147483648"),
    ("bias", 1 << 31, "is 2147483648, but must be from -2147483648 to 2147483647"),
    ("shift", 64, "is 64, but must be from 0 to 63"),
    ("shift", -1, "is -1, but must be from 0 to 63"),
])
def test_parameters_out_of_range_are_refused_with_their_place(kernel, given, name, value, message):
    with pytest.raises(CompileError, match=re.escape(f"{name} {message}")):
        kernel.pack(given | {name: value})
    numbers = given[name].tolist()
    numbers[4] = value
    with pytest.raises(CompileError, match=re.escape(f"{name}[4] {message}")):
        kernel.pack(given | {name: numbers})


@pytest.mark.parametrize(("name", "value", "message"), [
    ("data", np.full((1, 5, 3, 4), 128), "data[0, 0, 0, 0] is 128, but must be from -128 to 127"),
    ("data", np.full((1, 5, 3, 4), 255, np.uint8), "data[0, 0, 0, 0] is 255, but must be from"),
    ("data", np.zeros((5, 3, 4), np.int8), "data has shape (5, 3, 4), but must have (1, 5, 3, 4)"),
    ("data", np.zeros((1, 3, 4, 5), np.int8), "data has shape (1, 3, 4, 5), but must have"),
    ("data", 0, "data has shape (), but must have (1, 5, 3, 4)"),
    ("data", [[1], [1, 2]], "data"),
    ("data", None, "data is of type object, but must be whole numbers"),
    ("weights", np.zeros((5, 6, 3, 3), np.int8), "weights has shape (5, 6, 3, 3), but must have"),
    ("bias", [0] * 5, "bias has shape (5,), but must have (6,)"),
    ("bias", [[0] * 6], "bias has shape (1, 6), but must have (6,)"),
    ("bias", [0.0] * 6, "bias is of type float64, but must be whole numbers"),
    ("bias", 0.5, "bias is of type float64, but must be whole numbers"),
    ("bias", True, "bias is of type bool, but must be whole numbers"),
    ("bias", "0", "bias is of type <U1, but must be whole numbers"),
    ("shift", [31, 31], "shift has shape (2,), but must have (6,)"),
])
def test_what_is_no_operand_is_refused_by_name(kernel, given, name, value, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        kernel.pack(given | {name: value})


@pytest.mark.parametrize("name", ["data", "weights", "multiplier", "shift"])
def test_an_operand_that_is_missing_is_named(kernel, given, name):
    del given[name]
    also = "; scale may stand for multiplier and shift" if name == "multiplier" else ""
    with pytest.raises(CompileError, match=f"^{name} is not given; inputs are data, weights, bias, "
                                           f"multiplier, shift{also}$"):
        kernel.pack(given)


def test_an_operand_that_does_not_exist_is_named(kernel, given):
    given["wieghts"] = given.pop("weights")
    with pytest.raises(CompileError, match="there is no input 'wieghts'; inputs are data, weights"):
        kernel.pack(given)


def test_an_operator_without_parameters_takes_no_scale():
    spec = elementwise.Elementwise(operation="rescale", channels=3)
    form = elementwise.form_of(spec, tiny)
    with pytest.raises(CompileError, match=r"there is no input 'scale'; inputs are left$"):
        check_operands(form.operands, {"left": np.zeros((1, 3, 1, 1), np.int8), "scale": 0.5})


@pytest.mark.parametrize("number", [int, np.int16, lambda value: np.full(6, value, np.uint64)],
                         ids=("one", "NumPy's", "unsigned"))
def test_one_number_stands_for_all_channels_and_any_whole_type_will_do(kernel, given, number):
    plain = {"bias": 3, "multiplier": 12345, "shift": 20}
    right = kernel.pack(given | {name: [value] * 6 for name, value in plain.items()})
    found = kernel.pack(given | {name: number(value) for name, value in plain.items()})
    assert np.array_equal(found["parameters"], right["parameters"])


def test_without_a_bias_there_is_none(kernel, given):
    right = kernel.pack(given | {"bias": [0] * 6})
    del given["bias"]
    assert np.array_equal(kernel.pack(given)["parameters"], right["parameters"])


@pytest.mark.parametrize("scale", [0.003, [0.5, 0.25, 0.1, 0.01, 0.003, 1]], ids=("one", "each"))
def test_a_real_scale_stands_for_multiplier_and_shift(kernel, given, scale):
    pairs = [quantize_scale(float(each)) for each in np.broadcast_to(scale, 6)]
    right = kernel.pack(given | {"multiplier": [each for each, _ in pairs],
                                 "shift": [each for _, each in pairs]})
    del given["multiplier"], given["shift"]
    found = kernel.pack(given | {"scale": scale})
    assert np.array_equal(found["parameters"], right["parameters"])


@pytest.mark.parametrize(("scale", "message"), [
    (-1.0, "scale is -1.0, but must be from 0"), (float("nan"), "scale is nan, but must be from 0"),
    (float("inf"), "scale is inf, but must be from 0"), ("1", "scale is of type <U1"),
    ([0.1] * 5, "has shape (5,), but must have (6,)"), ([], "has shape (0,), but must have (6,)"),
])
def test_a_scale_that_is_none_is_refused(kernel, given, scale, message):
    del given["multiplier"], given["shift"]
    with pytest.raises(MicrotronError, match=re.escape(message)):
        kernel.pack(given | {"scale": scale})


def test_a_scale_beside_multiplier_and_shift_is_refused(kernel, given):
    with pytest.raises(CompileError, match="scale"):
        kernel.pack(given | {"scale": 0.5})


def test_the_bias_of_sums_takes_the_zero_point_off():
    spec = replace(LAYER, zero_point_in=-7)
    form = conv2d.form_of(spec, tiny)
    operands = operands_for(form)
    packed = form.pack(check_operands(form.operands, operands))["parameters"][:, 0, 0].ravel()[:6]
    sums = operands["weights"].astype(np.int64).sum(axis=(1, 2, 3))
    assert np.array_equal(packed, operands["bias"] + 7 * sums)


@pytest.mark.parametrize(("parameters", "message"), [
    ((0, 1, 2), "bias, multiplier and shift have shapes (), (), (), but must have one number for"),
    (([0], [1], [2, 3]), "bias, multiplier and shift have shapes (1,), (1,), (2,), but must"),
    (([0], [1 << 31], [1]), "multiplier[0] is 2147483648, but must be from"),
    (([0.5], [1], [1]), "bias is of type float64, but must be whole numbers"),
    (([0], [1], [64]), "shift[0] is 64, but must be from 0 to 63"),
])
def test_parameters_that_are_packed_by_hand_are_checked_too(parameters, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        pack_parameters(*parameters, tiny)


def test_parameters_fill_whole_blocks_and_are_the_same_for_all_images_of_a_batch():
    packed = pack_parameters([1, 2, 3, 4, 5], [6] * 5, [7] * 5, replace(tiny, batch=2))
    assert packed.shape == (2, 3, 2, 4)
    assert packed.dtype == np.int32
    assert packed[:, 0, 1].tolist() == [[1, 2, 3, 4], [5, 0, 0, 0]]
    assert np.array_equal(packed[:, :, 0], packed[:, :, 1])


def test_values_are_never_converted_to_fit():
    operand = Operand("data", (2,))
    assert operand.check([-128, 127]).dtype == np.int8
    assert operand.check(np.array([5, 6], np.int64)).tolist() == [5, 6]
    with pytest.raises(CompileError, match="whole numbers"):
        operand.check([1.0, 2.0])
    with pytest.raises(CompileError, match=re.escape("x[1] is 3, but must be from 0 to 2")):
        integers("x", [1, 3], (0, 2))


@pytest.mark.parametrize("inputs", [None, 5, "data"])
def test_operands_come_by_name(kernel, inputs):
    with pytest.raises(MicrotronError, match=r"inputs is .*, but must be a mapping from operands'"):
        kernel.pack(inputs)
