"""Pools: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.operators import pool
from microtron.compiler.operators.build_other import compile_pool
from microtron.compiler.operators.packing import pack_activations, unpack_activations
from microtron.compiler.operators.pool import Kind, Pool, global_average
from microtron.compiler.operators.pool_schedule import Knobs
from microtron.isa.arithmetic import scale_array
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Rounding
from microtron.isa.verifier import verify
from microtron.runtime.device import run

from .references import pool as reference

TALL = replace(tiny, batch=2, block_in=8)
FLAT = replace(tiny, batch=2, block_out=8)
CONFIGS = [tiny, TALL, FLAT]
WINDOWS = [
    {"kernel": (2, 2), "stride": (2, 2)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1, 1, 1)},
    {"kernel": (3, 3), "pad": (1, 1, 1, 1), "low": -10, "high": 20},
    {"kernel": (3, 2), "stride": (1, 2), "pad": (0, 1, 1, 0)},
    {"kernel": (2, 3), "pad": (1, 0, 0, 0)},
    {"kernel": (3, 2), "stride": (1, 2), "dilation": (2, 2), "pad": (1, 1, 1, 1)},
    {"kernel": (1, 1), "stride": (3, 3)},
    {"kernel": (9, 10)},
    {"kernel": (1, 5), "pad": (0, 0, 2, 2)},
    {"kernel": (6, 1)},
]


def inputs_for(spec, config, seed=0):
    rng = np.random.default_rng(seed)
    data = rng.integers(-128, 128, (spec.images, spec.channels, spec.height, spec.width),
                        dtype=np.int8)
    return data, {"data": pack_activations(data, config, config.block_out),
                  "parameters": pool.parameters(spec, config)}


def check(spec, config, knobs=None, device="functional"):
    data, given = inputs_for(spec, config)
    kernel = compile_pool(spec, config, knobs=knobs)
    verify(kernel.program)
    outputs, report = run(kernel.program, given, device)
    result = unpack_activations(outputs["output"], spec.images, spec.channels)
    assert np.array_equal(result, reference(spec, data))
    return report, kernel


def spec_for(kind, window, **fields):
    return Pool(**{"kind": kind, "height": 9, "width": 10, "channels": 11, "images": 3} | window
                | fields)


@pytest.mark.parametrize("config", CONFIGS, ids=("tiny", "tall", "flat"))
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("kind", Kind)
def test_a_pool_is_numpys_whatever_its_window(kind, window, config):
    check(spec_for(kind, window), config)


@pytest.mark.parametrize("window", WINDOWS[1:6], ids=str)
def test_padding_counts_if_it_is_said_to(window):
    check(spec_for(Kind.AVERAGE, window, count_include_pad=True), tiny)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("rounding", Rounding)
def test_an_average_may_change_scale_and_zero_point(rounding, counted):
    check(spec_for(Kind.AVERAGE, WINDOWS[2], scale_in=0.3, scale_out=0.2, zero_point_in=9,
                   zero_point_out=-5, rounding=rounding, count_include_pad=counted), tiny)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("window", [WINDOWS[1], WINDOWS[2], WINDOWS[7]], ids=str)
@pytest.mark.parametrize("knobs", [
    Knobs(blocks=1, rows=2, columns=2, window=(3, 3)),
    Knobs(blocks=2, rows=3, columns=1, window=(2, 2)),
    Knobs(blocks=3, rows=1, columns=4, window=(1, 3), doubled=False)], ids=str)
def test_knobs_do_not_change_what_is_computed(kind, window, knobs):
    spec = spec_for(kind, window, images=1)
    rows, columns = (min(size, extent) for size, extent in zip(
        (knobs.rows, knobs.columns), spec.out_shape, strict=True))
    check(spec, tiny, replace(knobs, rows=rows, columns=columns))


@pytest.mark.parametrize("window", WINDOWS[:3], ids=str)
@pytest.mark.parametrize("kind", Kind)
def test_the_cycle_device_computes_the_same(kind, window):
    check(spec_for(kind, window), TALL, device="cycle")


def test_a_window_larger_than_the_accumulator_is_combined_in_parts():
    few = replace(tiny, acc_bytes=1 << 10)
    check(global_average(height=40, width=13, channels=5), few)
    check(global_average(height=3, width=300, channels=5), few)


def test_few_tiles_are_used_without_double_buffers():
    few = replace(tiny, acc_bytes=128, acc_banks=1)
    spec = Pool(kind=Kind.AVERAGE, height=5, width=5, channels=5, kernel=(2, 1), pad=(1, 0, 0, 0))
    _, kernel = check(spec, few)
    assert not kernel.knobs.doubled


@pytest.mark.parametrize("size", [1, 7, 8])
def test_a_global_average_divides_by_the_whole_image(size):
    check(global_average(height=size, width=size, channels=9, images=2), TALL)


def test_division_rounds_every_sum_as_integers_do():
    for count in (*range(1, 130), 196, 3136, 12544):
        step = max(1, count // 128)
        sums = np.unique(np.concatenate([np.arange(-128 * count, 127 * count + 1, step),
                                         np.arange(-255, 255) * count // 2]))
        multiplier, shift = pool.division(count)
        magnitude = (np.abs(sums) + count // 2) // count
        expected = np.where(sums > 0, magnitude, -magnitude)
        assert np.array_equal(scale_array(sums, multiplier, shift, Rounding.AWAY), expected), count


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("window", [WINDOWS[1], WINDOWS[2]], ids=str)
def test_the_expressions_mean_what_the_program_computes(kind, window):
    spec = spec_for(kind, window)
    data, given = inputs_for(spec, FLAT)
    what = pool.expressions(spec, FLAT)
    result = evaluate(what.output, {what.data: given["data"],
                                    what.parameters: given["parameters"]})
    assert np.array_equal(unpack_activations(result, spec.images, spec.channels),
                          reference(spec, data))


def test_windows_outside_the_image_are_refused():
    with pytest.raises(CompileError, match="windows that lie outside the image altogether"):
        spec_for(Kind.MAX, {"kernel": (2, 2), "pad": (2, 0, 0, 0)})


def test_a_window_larger_than_the_image_is_refused():
    with pytest.raises(CompileError, match="reaches over 12 × 2, more than the padded input"):
        spec_for(Kind.MAX, {"kernel": (12, 2)})


def test_the_maximum_of_resnets_first_block_keeps_bus_and_alu_busy():
    spec = Pool(kind=Kind.MAX, height=56, width=56, channels=32, kernel=(3, 3), stride=(2, 2),
                pad=(1, 1, 1, 1))
    report, _ = check(spec, base, device="cycle")
    bytes_moved = 32 * (56 * 56 + 28 * 28)
    assert report.cycles * 0.8 < bytes_moved / base.bus_bytes
