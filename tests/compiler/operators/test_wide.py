"""Results of 32 bits: sums of products that are scaled, but neither clamped nor narrowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Buffer, Store
from microtron.runtime.devices.cycle import CycleDevice
from microtron.runtime.devices.device import run
from microtron.runtime.devices.rtl import RtlDevice

from .operations import CONFIGS, check

IMAGE = {"height": 7, "width": 6, "channels_in": 6, "kernel": 3, "pad": 1, "wide": True}
SPECS = {
    "dense": Dense(rows=9, inputs=20, outputs=13, zero_point_in=5, wide=True),
    "two activations": Dense(rows=5, inputs=11, outputs=9, matrices=2, constant_weights=False,
                             zero_point_in=3, zero_point_weights=-7, wide=True),
    "conv2d": Conv2d(**IMAGE, channels_out=10, zero_point_in=-3),
    "two planes": Conv2d(**IMAGE, channels_out=5, planes=2),
    "first layer": Conv2d(**IMAGE | {"channels_in": 3, "kernel": 5}, channels_out=9),
    "depthwise": Depthwise(**IMAGE, channels_out=6, zero_point_in=100),
    "depthwise, stride 2": Depthwise(**IMAGE, channels_out=12, stride=2),
    "grouped": Grouped(**IMAGE, channels_out=9, groups=3),
}


@pytest.mark.parametrize("config", ["tiny", "more out than in, batch 2",
                                    "windows, more in than out, batch 2"])
@pytest.mark.parametrize("name", SPECS)
def test_wide_results_are_numpys(name, config):
    check(SPECS[name], CONFIGS[config])


@pytest.mark.parametrize("name", ["dense", "conv2d", "depthwise, stride 2"])
def test_the_hardware_stores_them_in_the_cycles_of_its_twin(name):
    _, (cycle, rtl) = check(SPECS[name], tiny, CycleDevice(tiny), RtlDevice(tiny))
    assert cycle.cycles == rtl.cycles


def test_a_scale_of_one_gives_the_sums_themselves():
    spec = Dense(rows=3, inputs=300, outputs=2, wide=True)
    kernel = compile_op(spec, tiny)
    data, weights = np.full((3, 300), -128, np.int8), np.full((2, 300), -128, np.int8)
    given = {"data": data, "weights": weights, "multiplier": 1, "shift": 0,
             "bias": [(1 << 31) - 300 * (1 << 14), (1 << 31) - 1 - 300 * (1 << 14)]}
    outputs, _ = run(kernel.program, kernel.pack(given), "functional")
    # Sums wrap in the accumulator, as products of integers do on any processor.
    assert kernel.unpack(outputs).tolist() == [[-1 << 31, (1 << 31) - 1]] * 3


def test_results_leave_from_the_accumulator():
    code = compile_op(SPECS["conv2d"], base).program.code
    stores = code.view(Store.dtype())["buffer"][code["opcode"] == Store.opcode]
    assert set(stores.tolist()) == {Buffer.ACC}


def test_four_times_as_many_bytes_leave():
    spec = SPECS["dense"]
    narrow, wide = (compile_op(each, tiny).form.work for each in (replace(spec, wide=False), spec))
    assert wide.bytes - narrow.bytes == 3 * spec.rows * spec.outputs
    assert wide.products == narrow.products


@pytest.mark.parametrize("field", [{"zero_point_out": 1}, {"low": 0}, {"high": 6}], ids=str)
def test_a_bound_or_zero_point_of_wide_results_is_refused(field):
    with pytest.raises(CompileError, match=f"dense: {next(iter(field))} is .* if results are wide"):
        replace(SPECS["dense"], **field)


def test_an_operator_that_narrows_on_the_way_is_refused():
    with pytest.raises(CompileError, match="wide is True, but must be False: only conv2d, dense"):
        ResidualConv2d(**IMAGE, channels_out=6, scale_conv=0.5, scale_residual=0.5, scale_out=1.0)
