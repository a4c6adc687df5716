"""Averages whose sums the MAC array makes: compiled programs against NumPy, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.compiler.compile import schedules_of
from microtron.compiler.operators.pool.average import AverageForm, form_of
from microtron.compiler.operators.pool.knobs import Knobs
from microtron.compiler.operators.pool.pool import Kind, Pool, global_average
from microtron.isa.config import base, tiny
from microtron.isa.instructions import Buffer, Load, Rounding
from microtron.isa.stream import positions_of

from ..operations import check, check_meaning

WINDOWS = replace(tiny, window_taps=3)
CONFIGS = {"tiny": tiny, "windows": WINDOWS, "batch 2": replace(WINDOWS, batch=2),
           "int4": replace(tiny, wgt_bits=4)}
POOLS = [
    {"kernel": 3, "pad": 1},
    {"kernel": 3, "pad": 1, "count_include_pad": True, "zero_point_in": 7},
    {"kernel": 3, "pad": 1, "rounding": Rounding.EVEN, "zero_point_in": -9},
    {"kernel": 3, "pad": 1, "stride": 2},
    {"kernel": 5, "stride": 3},
    {"kernel": 2, "stride": 2, "zero_point_in": 4, "zero_point_out": -3},
    {"kernel": (3, 2), "stride": (1, 2), "pad": (1, 0, 0, 1), "dilation": (2, 1)},
    {"kernel": (8, 9)},
    {"kernel": (1, 6), "pad": (0, 0, 2, 1), "rounding": Rounding.EVEN},
]


def average(fields):
    return Pool(**{"kind": Kind.AVERAGE, "height": 8, "width": 9, "channels": 11, "images": 3}
                | fields)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("fields", POOLS, ids=str)
def test_every_schedule_is_numpys(fields, config):
    spec = average(fields)
    own = [each for each in schedules_of(spec, CONFIGS[config])
           if isinstance(each[0], AverageForm)]
    rng = np.random.default_rng(0)
    for number in rng.permutation(len(own))[:2]:
        form, knobs = own[number]
        check(spec, CONFIGS[config], form=form, knobs=knobs)


@pytest.mark.parametrize("fields", POOLS, ids=str)
def test_the_expressions_mean_what_the_program_computes(fields):
    check_meaning(average(fields), form_of(average(fields), WINDOWS))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("fields", [each for each in POOLS if "pad" in each], ids=str)
def test_rows_that_the_host_packs_with_their_border_are_numpys(fields, config):
    spec = average(fields)
    form = form_of(spec, CONFIGS[config], rows_first=True)
    check(spec, CONFIGS[config], form=form)
    check_meaning(spec, form_of(spec, WINDOWS, rows_first=True))


def test_a_packed_row_of_all_channels_is_one_run():
    spec = Pool(kind=Kind.AVERAGE, height=9, width=9, channels=48, kernel=3, pad=1)
    kernel, _ = check(spec, base, form=form_of(spec, base, rows_first=True),
                      knobs=Knobs(blocks=3, rows=1, columns=9, window=(3, 3)))
    loads = [each for each in positions_of(kernel.program.code, Load)[1]
             if each["buffer"] == Buffer.INP and each["shape"][2]]
    assert {tuple(each["shape"]) for each in loads} == {(1, 1, 3 * 11)}
    assert len(loads) == 9


def test_windows_of_4_6_and_9_elements_are_divided_by_36():
    spec = average({"kernel": 3, "pad": 1})
    assert spec.common_count == 36
    form = form_of(spec, tiny)
    packed = form.pack({"data": np.zeros((3, 11, 8, 9), np.int8)})
    assert np.unique(packed["factors"]).tolist() == [4, 6, 9]
    assert packed["factors"].shape == (8, 9, 1, 4)


@pytest.mark.parametrize("fields", [
    {"kind": Kind.MAX, "kernel": 3},
    {"kernel": 3, "pad": 1, "rounding": Rounding.TWICE},
    {"kernel": 3, "pad": 1, "scale_out": 0.5},
    {"kernel": (1, 4), "pad": (0, 0, 1, 0), "rounding": Rounding.EVEN},     # 12 hides ties of 4
], ids=str)
def test_what_another_divisor_would_round_otherwise_is_left_to_the_alu(fields):
    assert form_of(average(fields), tiny) is None
    check(average(fields), tiny)


def test_a_large_image_is_summed_part_by_part():
    spec = global_average(height=40, width=13, channels=5)
    form = form_of(spec, tiny)
    assert form.chunks.counts[0] > 1
    form, knobs = next(each for each in schedules_of(spec, tiny)
                       if isinstance(each[0], AverageForm))
    check(spec, tiny, form=form, knobs=knobs)


def test_a_padded_average_keeps_the_bus_busy():
    spec = Pool(kind=Kind.AVERAGE, height=17, width=17, channels=128, kernel=3, pad=1)
    cycles = microtron.simulate(microtron.compile_op(spec, base).program).cycles
    assert cycles * 0.8 < 2 * 17 * 17 * 128 / base.bus_bytes
