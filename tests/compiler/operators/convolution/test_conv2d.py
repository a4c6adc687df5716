"""Convolutions as compiled programs: every stream is safe, every result NumPy's to the bit."""

from dataclasses import replace

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.convolution.conv2d import Conv2d, form_of, plain_forms
from microtron.compiler.operators.convolution.conv2d_schedule import TEMPLATE
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Rounding
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.devices.cycle import CycleDevice
from microtron.runtime.devices.functional import FunctionalDevice
from microtron.runtime.devices.rtl import RtlDevice
from microtron.sim.functional.order import Adversarial
from microtron.testing.campaign import SMALL

from ....examples import examples
from ..operations import check

CONFIGS = {
    "tiny": tiny,
    "batch": SMALL["batch"],
    "more out than in": replace(tiny, block_out=8, wgt_bytes=8 << 10, acc_bytes=16 << 10),
    "batch 2": replace(tiny, batch=2, inp_bytes=4 << 10, acc_bytes=16 << 10, out_bytes=4 << 10),
    "bus 128": replace(tiny, bus_bits=128),
    "single bank, few micro-ops": replace(tiny, acc_banks=1, uop_bytes=256, queue_depth=2),
}
BUILT = ("tiny", "batch")           # whose hardware other tests build anyway

CORNERS = {
    "1 × 1 image": Conv2d(height=1, width=1, channels_in=8, channels_out=8, kernel=(1, 1)),
    "1 × 1 image, 3 × 3 kernel": Conv2d(height=1, width=1, channels_in=5, channels_out=6,
                                        pad=(1, 1, 1, 1), zero_point_in=-9),
    "1 channel": Conv2d(height=6, width=7, channels_in=1, channels_out=1, pad=(1, 1, 1, 1)),
    "3 channels": Conv2d(height=9, width=9, channels_in=3, channels_out=3, stride=(2, 2),
                         pad=(0, 1, 0, 1), zero_point_in=-128),
    "17 channels": Conv2d(height=5, width=5, channels_in=17, channels_out=17, pad=(1, 1, 1, 1)),
    "1 to 17 channels": Conv2d(height=5, width=6, channels_in=1, channels_out=17),
    "17 to 1 channels": Conv2d(height=5, width=6, channels_in=17, channels_out=1),
    "kernel larger than the image": Conv2d(height=3, width=2, channels_in=5, channels_out=4,
                                           kernel=(5, 7), pad=(2, 2, 3, 3), zero_point_in=17),
    "dilated kernel larger than the image": Conv2d(
        height=3, width=4, channels_in=4, channels_out=4, dilation=(3, 2), pad=(3, 2, 2, 1),
        zero_point_in=-3),
    "pads larger than the kernel": Conv2d(height=4, width=3, channels_in=4, channels_out=5,
                                          kernel=(2, 1), pad=(4, 3, 2, 5), zero_point_in=7),
    "stride larger than the kernel": Conv2d(height=11, width=13, channels_in=6, channels_out=7,
                                            kernel=(2, 1), stride=(3, 4), zero_point_in=1),
    "stride larger than kernel and image": Conv2d(
        height=3, width=3, channels_in=4, channels_out=4, kernel=(1, 1), stride=(7, 9),
        pad=(7, 8, 9, 0), zero_point_in=2),
    "kernel wider than a scratchpad": Conv2d(height=20, width=21, channels_in=5, channels_out=5,
                                             dilation=(8, 9), pad=(8, 8, 9, 9), zero_point_in=3),
    "more taps than a scratchpad holds": Conv2d(height=9, width=8, channels_in=5, channels_out=5,
                                                kernel=(13, 11), pad=(6, 6, 5, 5)),
    "batch 4": Conv2d(height=5, width=5, channels_in=6, channels_out=7, pad=(1, 1, 1, 1), images=4),
    "batch 3": Conv2d(height=4, width=5, channels_in=4, channels_out=4, images=3),
    "nothing symmetric": Conv2d(
        height=7, width=10, channels_in=7, channels_out=9, kernel=(2, 4), stride=(2, 1),
        dilation=(1, 2), pad=(0, 2, 3, 1), zero_point_in=-128, zero_point_out=127, low=-1,
        rounding=Rounding.EVEN),
}


def either(corners, most):
    return st.sampled_from(corners) | st.integers(min(corners), most)


BYTES = st.integers(-128, 127)


@st.composite
def convolutions(draw):
    """Small ones that lean on corners: ones, borders wider than kernels, steps past pixels."""
    low, high = sorted((draw(st.just(-128) | BYTES), draw(st.just(127) | BYTES)))
    try:
        return Conv2d(
            height=draw(either((1, 2, 7), 12)), width=draw(either((1, 3, 8), 14)),
            channels_in=draw(either((1, 3, 4, 17), 20)),
            channels_out=draw(either((1, 3, 8, 17), 20)),
            kernel=(draw(either((3, 1), 5)), draw(either((3, 1), 6))),
            stride=(draw(st.sampled_from((1, 2, 5))), draw(st.sampled_from((1, 2, 3)))),
            dilation=(draw(st.sampled_from((1, 1, 2, 3))), draw(st.sampled_from((1, 1, 2, 4)))),
            pad=tuple(draw(either((0, 1), 6)) for _ in range(4)),
            images=draw(st.sampled_from((1, 1, 2, 3, 4))), zero_point_in=draw(st.just(0) | BYTES),
            zero_point_out=draw(st.just(0) | BYTES), low=low, high=high,
            rounding=draw(st.sampled_from(Rounding)))
    except CompileError:        # the kernel reaches over more than there is
        reject()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_equal_numpy(corner, config):
    spec = CORNERS[corner]
    check(spec, CONFIGS[config], form=form_of(spec, CONFIGS[config]))       # even if folding pays


def test_the_corners_are_what_they_are_called():
    large = CORNERS["kernel larger than the image"]
    assert large.kernel > (large.height, large.width)
    wide = CORNERS["pads larger than the kernel"]
    assert min(wide.pad) > min(wide.kernel)
    far = CORNERS["stride larger than the kernel"]
    assert min(far.stride) > max(far.kernel)
    for corner in ("kernel wider than a scratchpad", "more taps than a scratchpad holds"):
        knobs = candidates(TEMPLATE, form_of(CORNERS[corner], tiny))
        assert knobs
        assert all(each.taps(CORNERS[corner].kernel) < CORNERS[corner].kernel for each in knobs)


@pytest.mark.parametrize("config", CONFIGS)
@given(spec=convolutions(), seed=st.integers(0, 99), latency=st.sampled_from((1, 32, 100)),
       stalls=st.sampled_from((0, 60)))
@examples(7)
def test_any_convolution_equals_numpy_in_every_order_and_on_the_cycle_device(config, spec, seed,
                                                                             latency, stalls):
    """Whatever order of instructions the tokens allow, and whatever the memory does."""
    timing = MemoryTiming(read_latency=latency, stalls=stalls)
    check(spec, CONFIGS[config], FunctionalDevice(), FunctionalDevice(order=Adversarial(seed)),
          CycleDevice(CONFIGS[config], timing=timing), seed=seed)


@pytest.mark.parametrize("config", CONFIGS)
@given(spec=convolutions(), data=st.data())
@examples(7)
def test_any_convolution_equals_numpy_with_any_knobs_that_fit(config, spec, data):
    """A part of the kernel at once is always possible, if rarely good."""
    form = form_of(spec, CONFIGS[config])
    fitting = data.draw(st.sampled_from(candidates(TEMPLATE, form)))
    rows, columns = fitting.taps(spec.kernel)
    knobs = replace(fitting, tap_rows=data.draw(st.integers(1, rows) | st.just(rows)),
                    tap_columns=data.draw(st.integers(1, columns) | st.just(columns)))
    check(spec, CONFIGS[config], form=form, knobs=knobs)


@pytest.mark.parametrize("config", CONFIGS)
@given(rows=st.integers(1, 5), columns=st.integers(1, 6), stride=st.sampled_from(((2, 2), (3, 2))),
       channels=st.tuples(either((1, 4, 17), 20), either((1, 8, 17), 20)),
       images=st.sampled_from((1, 3)), data=st.data())
@examples(4)
def test_columns_that_are_not_used_can_be_skipped(config, rows, columns, stride, channels, images,
                                                  data):
    spec = Conv2d(height=rows * stride[0], width=columns * stride[1], channels_in=channels[0],
                  channels_out=channels[1], kernel=(1, 1), stride=stride, images=images,
                  zero_point_in=5)
    whole, some = plain_forms(spec, CONFIGS[config])
    assert (whole.skips_columns, some.skips_columns) == (False, True)
    check(spec, CONFIGS[config], form=some,
          knobs=data.draw(st.sampled_from(candidates(TEMPLATE, some))))


def test_columns_that_are_used_are_not_skipped():
    assert [each.skips_columns for each in plain_forms(CORNERS["17 channels"], tiny)] == [False]


@pytest.mark.parametrize("corner", CORNERS)
def test_results_are_the_same_when_engines_take_turns(corner):
    check(CORNERS[corner], tiny, hide_latency=False)


def test_a_layer_of_resnet_18_equals_numpy_on_base():
    check(Conv2d(height=14, width=14, channels_in=64, channels_out=64, pad=(1, 1, 1, 1),
                 zero_point_in=-5), base, FunctionalDevice(base), CycleDevice(base))


@pytest.fixture(scope="module")
def hardware():
    """One device for each configuration: its Verilog is compiled once."""
    return {config: RtlDevice(CONFIGS[config]) for config in BUILT}


@pytest.mark.parametrize("config", BUILT)
@pytest.mark.parametrize("corner", ["17 channels", "kernel larger than the image", "batch 4",
                                    "stride larger than the kernel", "nothing symmetric"])
def test_the_hardware_equals_numpy(hardware, corner, config):
    check(CORNERS[corner], CONFIGS[config], hardware[config], seed=1)
