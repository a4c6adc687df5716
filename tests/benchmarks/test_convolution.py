"""The hand-scheduled convolution: right on the functional device, and scheduled to overlap."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.isa.config import Config, base, tiny, wide
from microtron.isa.instructions import Buffer, Gemm, Requantize, Store
from microtron.isa.verification.verifier import verify
from microtron.sim.functional.order import Adversarial
from microtron.sim.functional.simulator import Functional

SOURCE = Path(__file__).parents[2] / "benchmarks" / "convolution.py"


@pytest.fixture(scope="module")
def made():
    """The module, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("convolution", SOURCE)
    module = sys.modules["convolution"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["convolution"]


SMALL = {"uop_bytes": 4 << 10, "inp_bytes": 4 << 10, "wgt_bytes": 16 << 10, "acc_bytes": 16 << 10,
         "out_bytes": 4 << 10}
CASES = {       # height, width, channels in and out, kernel, stride, pad
    "3 × 3": (tiny, (9, 7, 12, 8, 3, 1, 1)),
    "rows that do not divide": (tiny, (11, 12, 8, 8, 3, 1, 1)),
    "groups of weights": (tiny, (8, 8, 24, 24, 3, 1, 1)),
    "groups that do not divide": (tiny, (6, 6, 24, 20, 3, 1, 1)),
    "stride 2": (tiny, (13, 14, 8, 8, 3, 2, 1)),
    "1 × 1, stride 2": (tiny, (10, 9, 16, 8, 1, 2, 0)),
    "5 × 5, wide border": (tiny, (7, 9, 4, 8, 5, 1, 3)),
    "batch, int4, more out than in": (Config(batch=2, block_in=4, block_out=8, wgt_bits=4, **SMALL),
                                      (9, 9, 8, 16, 3, 1, 1)),
    "base": (base, (14, 14, 64, 64, 3, 1, 1)),
    "wide": (wide, (7, 7, 64, 64, 3, 1, 1)),
}
RESNET = [(56, 56, 64, 64, 3, 1, 1), (56, 56, 64, 128, 3, 2, 1), (56, 56, 64, 128, 1, 2, 0),
          (28, 28, 128, 128, 3, 1, 1), (28, 28, 128, 256, 3, 2, 1), (28, 28, 128, 256, 1, 2, 0),
          (14, 14, 256, 256, 3, 1, 1), (14, 14, 256, 512, 3, 2, 1), (14, 14, 256, 512, 1, 2, 0),
          (7, 7, 512, 512, 3, 1, 1)]


def schedule_of(made, config, shape):
    names = ("height", "width", "channels_in", "channels_out", "kernel", "stride", "pad")
    return made.Schedule(config, made.Shape(**dict(zip(names, shape, strict=True))))


@pytest.mark.parametrize("case", CASES)
def test_is_safe_and_equals_numpy_in_program_order_and_in_others(made, case):
    config, shape = CASES[case]
    program, expected = made.convolution(config, *shape)
    verify(program)
    machine = Functional(program)
    for order in (None, Adversarial(0), Adversarial(1)):
        machine.memory.write_tensor("output", np.zeros_like(expected))
        machine.run(order)
        np.testing.assert_array_equal(machine.memory.read_tensor("output"), expected)


def test_the_cases_have_what_their_names_say(made):
    assert {case: schedule_of(made, *CASES[case]).groups > 1 for case in CASES if "groups" in case
            } == {"groups of weights": True, "groups that do not divide": True}
    uneven = schedule_of(made, *CASES["groups that do not divide"])
    assert uneven.blocks % uneven.group
    rows = schedule_of(made, *CASES["rows that do not divide"])
    assert rows.shape.out_height % rows.rows


def test_results_use_the_whole_range(made):
    _, expected = made.convolution(*[CASES["base"][0], *CASES["base"][1]])
    assert expected.min() == made.LOW
    assert expected.max() == made.HIGH
    assert 30 < expected.std() < 50


def test_the_border_of_an_input_counts_as_zero(made):
    """One output by hand, from the program's own segments: the first of the first channel."""
    program, expected = made.convolution(tiny, 4, 4, 4, 4)
    image = program.segment("input").data.view(np.int8).reshape(4, 4, 4).astype(int)
    weights = program.segment("weights").data.view(np.int8).reshape(3, 3, 4, 4).astype(int)
    bias, multiplier, shift = program.segment("parameters").data.view("<i4").reshape(3, 4)[:, 0]
    total = sum(int(image[y, x, lane] * weights[y + 1, x + 1, 0, lane])
                for y in range(2) for x in range(2) for lane in range(4))
    scaled = round((total + int(bias)) * int(multiplier) / 2**int(shift))
    by_hand = min(max(scaled + made.ZERO_POINT, made.LOW), made.HIGH)
    assert abs(int(expected[0, 0, 0, 0, 0]) - by_hand) <= 1         # rounds otherwise


def banks(config, *tiles):
    return {tile // config.acc_bank_tiles for tile in tiles}


@pytest.mark.parametrize("shape", RESNET)
def test_a_layer_of_resnet_18_keeps_gemm_and_alu_in_banks_of_their_own(made, shape):
    schedule = schedule_of(made, base, shape)
    code = list(schedule.instructions())
    gemms, requantizes, stores = ([each for each in code if isinstance(each, kind)]
                                  for kind in (Gemm, Requantize, Store))
    assert len(gemms) > 2
    for before, gemm in zip(requantizes, gemms[1:], strict=False):
        first = schedule.micro_ops[gemm.uop].dst
        outer, middle, inner = (count - 1 for count in gemm.loops)
        last = first + np.dot((outer, middle, inner), gemm.dst_stride)
        parameters = before.params + 3 * (before.loops[0] - 1) + 2
        assert not banks(base, first, last) & banks(base, before.src, parameters)
    for before, requantize in zip(stores, requantizes[1:], strict=False):
        assert before.sram // (base.tiles(Buffer.OUT) // 2) != requantize.dst // (
            base.tiles(Buffer.OUT) // 2)


@pytest.mark.parametrize("shape", RESNET)
def test_a_gemm_for_a_layer_of_resnet_18_has_500_slots_or_more(made, shape):
    code = schedule_of(made, base, shape).instructions()
    slots = [each.count * np.prod(each.loops) for each in code if isinstance(each, Gemm)]
    assert min(slots) >= 500
    height, width, channels_in, channels_out, kernel, stride, _ = shape
    assert sum(slots) * base.macs_per_cycle == (
        height * width // stride**2 * channels_in * channels_out * kernel**2)


@pytest.mark.parametrize(("shape", "message"), [
    ((8, 8, 6, 8, 3, 1, 1), "channels_in is 6, but must be a multiple of 4"),
    ((8, 8, 8, 9, 3, 1, 1), "channels_out is 9, but must be a multiple of 4"),
    ((8, 8, 8, 8, 3, 1, 3), "pad is 3, but a kernel of 3"),
    ((2, 8, 8, 8, 5, 1, 0), "pad is 0, but a kernel of 5"),
    ((64, 64, 64, 64, 3, 1, 1), "does not divide into steps that fit"),
    ((8, 8, 256, 8, 3, 1, 1), "does not divide into steps that fit"),
])
def test_what_cannot_be_scheduled_is_refused_in_words(made, shape, message):
    with pytest.raises(MicrotronError, match=message):
        made.convolution(tiny, *shape)
