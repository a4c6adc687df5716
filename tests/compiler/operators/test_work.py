"""The work of every operator, and its bound, against figures worked out by hand.

Published efficiencies rest on these numbers.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microtron
from microtron.compiler.compile import bound_of, work_of
from microtron.compiler.operators.catalogue import OPERATORS, operator_of
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense, batch_matmul
from microtron.compiler.operators.depthwise.conv_separable import ConvSeparable
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.separable import Separable
from microtron.compiler.operators.depthwise.upsample import Upsample
from microtron.compiler.operators.elementwise.broadcast import Broadcast
from microtron.compiler.operators.elementwise.elementwise import Elementwise
from microtron.compiler.operators.pool.average import AverageForm
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.compiler.operators.pool.pool import Pool, global_average
from microtron.compiler.operators.work import Bound, Work, rows_read
from microtron.isa.config import base, small, tiny, wide
from microtron.isa.memory_timing import MemoryTiming

INT4 = replace(base, wgt_bits=4)
ONE_TAP, WINDOWS = replace(base, window_taps=1), replace(base, window_taps=3)
PIXELS = 56 * 56
CASES = {
    "resnet 3 × 3": (
        Conv2d(height=56, width=56, channels_in=64, channels_out=64, pad=1), base,
        Work(macs=PIXELS * 64 * 64 * 9, products=PIXELS * 4 * 4 * 9,
             bytes=PIXELS * 64 + 64 * 64 * 9 + PIXELS * 64, passes=PIXELS * 4)),
    "every other pixel": (
        Conv2d(height=56, width=56, channels_in=64, channels_out=128, kernel=1, stride=2), base,
        Work(macs=28 * 28 * 64 * 128, products=28 * 28 * 4 * 8,
             bytes=28 * 28 * 64 + 64 * 128 + 28 * 28 * 128, passes=28 * 28 * 8)),
    "channels that fill no block": (
        Conv2d(height=4, width=5, channels_in=17, channels_out=3, kernel=1, images=2), base,
        Work(macs=2 * 20 * 17 * 3, products=2 * 20 * 2, bytes=2 * 20 * 17 + 51 + 2 * 20 * 3,
             passes=2 * 20)),
    "weights of 4 bits": (
        Conv2d(height=1, width=1, channels_in=1024, channels_out=1001, kernel=1), INT4,
        Work(macs=1024 * 1001, products=64 * 63, bytes=1024 + 1024 * 1001 // 2 + 1001,
             passes=63)),
    "first layer, folded whole": (
        Conv2d(height=224, width=224, channels_in=3, channels_out=64, kernel=7, stride=2, pad=3),
        base, Work(macs=112 * 112 * 147 * 64, products=112 * 112 * 10 * 4,
                   bytes=112 * 112 * 147 + 147 * 64 + 112 * 112 * 64, passes=112 * 112 * 4)),
    "depthwise": (
        Depthwise(height=14, width=14, channels_in=40, channels_out=40, pad=1), ONE_TAP,
        Work(macs=14 * 14 * 40 * 9, products=14 * 14 * 3 * 9,
             bytes=2 * 14 * 14 * 40 + 9 * 40, passes=14 * 14 * 3)),
    "depthwise with windows": (
        Depthwise(height=14, width=14, channels_in=40, channels_out=40, pad=1), WINDOWS,
        Work(macs=14 * 14 * 40 * 9, products=14 * (14 + 2) * 3 * 3,
             bytes=2 * 14 * 14 * 40 + 9 * 40, passes=14 * 14 * 3)),
    "windows along the longer side": (
        Depthwise(height=25, width=5, channels_in=64, channels_out=64, pad=1), WINDOWS,
        Work(macs=125 * 64 * 9, products=5 * (25 + 2) * 4 * 3, bytes=2 * 125 * 64 + 9 * 64,
             passes=125 * 4)),
    "windows with stride 2": (
        Depthwise(height=24, width=24, channels_in=16, channels_out=16, stride=2,
                  pad=(0, 1, 0, 1)), WINDOWS,
        Work(macs=144 * 16 * 9, products=12 * (2 * 12 + 1) * 3, bytes=(576 + 144 + 9) * 16,
             passes=144)),
    "windows of five columns": (
        Depthwise(height=14, width=14, channels_in=16, channels_out=16, kernel=(1, 5),
                  pad=(0, 0, 2, 2)), WINDOWS,
        Work(macs=196 * 16 * 5, products=14 * (14 + 2) * 2, bytes=(2 * 196 + 5) * 16, passes=196)),
    "windows that are no faster": (
        Depthwise(height=14, width=14, channels_in=16, channels_out=16, kernel=1), WINDOWS,
        Work(macs=196 * 16, products=196, bytes=(2 * 196 + 1) * 16, passes=196)),
    "depthwise with a multiplier": (
        Depthwise(height=5, width=5, channels_in=8, channels_out=16), small,
        Work(macs=9 * 16 * 9, products=9 * 2 * 9, bytes=25 * 8 + 16 * 9 + 9 * 16, passes=9 * 2)),
    "grouped": (
        Grouped(height=8, width=8, channels_in=64, channels_out=64, groups=16, kernel=1), base,
        Work(macs=64 * 64 * 4, products=64 * 4, bytes=64 * 64 + 64 * 4 + 64 * 64,
             passes=64 * 4)),
    "transposed": (
        Transposed(height=4, width=4, channels_in=16, channels_out=32, kernel=2), base,
        Work(macs=16 * 16 * 32 * 4, products=4 * 16 * 2, bytes=16 * 16 + 16 * 32 * 4 + 64 * 32,
             passes=64 * 2)),
    "upsample": (
        Upsample(height=4, width=6, channels=32), base,
        Work(macs=8 * 12 * 32 * 4, products=4 * 2 * 4 * (5 + 2 + 1 + 2) * 2, bytes=(24 + 96) * 32,
             passes=96 * 2)),
    "fully connected": (
        Dense(rows=3, inputs=100, outputs=33), base,
        Work(macs=9900, products=3 * 7 * 3, bytes=300 + 3300 + 99, passes=3 * 3)),
    "classifier with weights of 4 bits": (
        Dense(rows=1, inputs=512, outputs=1000), INT4,
        Work(macs=512_000, products=32 * 63, bytes=512 + 256_000 + 1000, passes=63)),
    "rows in a batch": (
        Dense(rows=5, inputs=4, outputs=4), replace(tiny, batch=2),
        Work(macs=80, products=3, bytes=20 + 16 + 20, passes=3)),
    "batch matmul": (
        batch_matmul(rows=128, inputs=64, outputs=128, matrices=12), base,
        Work(macs=12 * 128 * 64 * 128, products=12 * 128 * 4 * 8,
             bytes=12 * (2 * 128 * 64 + 128 * 128), passes=12 * 128 * 8)),
    "batch matmul with zero points": (
        batch_matmul(rows=10, inputs=32, outputs=48, zero_point_in=1, zero_point_weights=2), base,
        Work(macs=10 * 32 * 48, products=10 * 2 * 3 + 10 * 2 + 3 * 3 * 2, bytes=320 + 1536 + 480,
             passes=2 * 10 * 3 + 3 * 3)),
    "max pool, windows side by side": (
        Pool(kind="max", height=8, width=8, channels=32, kernel=2, stride=2), base,
        Work(macs=0, products=0, bytes=64 * 32 + 16 * 32, passes=2 * 16 * 4)),
    "average pool, windows that overlap": (
        Pool(kind="average", height=28, width=28, channels=16, kernel=3, pad=1), base,
        Work(macs=0, products=0, bytes=2 * 28 * 28 * 16,
             passes=28 * 28 * (1 + 1) + 26 * 26 * 5 // 3)),
    "average pool, ties to even": (
        Pool(kind="average", height=28, width=28, channels=16, kernel=3, pad=1, rounding="even"),
        base, Work(macs=0, products=28 * 30 * 3, bytes=2 * 28 * 28 * 16,
                   passes=28 * 28 * (1 + 4))),
    "average pool, scales of its own": (
        Pool(kind="average", height=28, width=28, channels=16, kernel=3, pad=1, scale_out=2.0),
        base, Work(macs=0, products=0, bytes=2 * 28 * 28 * 16,
                   passes=28 * 28 * (1 + 1) + 26 * 26 * 5 // 3)),
    "every other pixel of a pool": (
        Pool(kind="max", height=8, width=8, channels=16, kernel=1, stride=2), base,
        Work(macs=0, products=0, bytes=2 * 16 * 16, passes=16)),
    "global average": (
        global_average(height=7, width=7, channels=512), base,
        Work(macs=0, products=0, bytes=49 * 512 + 512, passes=32 * 49)),
    "a convolution of weights in two planes": (
        Conv2d(height=7, width=7, channels_in=64, channels_out=32, kernel=1, planes=2), base,
        Work(macs=49 * 64 * 32, products=49 * 4 * 2 * 2, bytes=49 * (64 + 32) + 2 * 64 * 32,
             passes=49 * 2)),
    "a depthwise convolution of weights in two planes": (
        Depthwise(height=7, width=7, channels_in=32, channels_out=32, pad=1, planes=2), ONE_TAP,
        Work(macs=49 * 32 * 9, products=49 * 2 * 9 * 2, bytes=49 * 64 + 2 * 32 * 9,
             passes=49 * 2)),
    "a convolution with a residual": (
        ResidualConv2d(height=7, width=7, channels_in=64, channels_out=32, kernel=1), base,
        Work(macs=49 * 64 * 32, products=49 * 4 * 2, bytes=49 * (64 + 32 + 32) + 64 * 32,
             passes=49 * 2 * 5)),
    "a convolution whose image is averaged": (
        AveragedConv2d(height=7, width=7, channels_in=64, channels_out=32, kernel=1), base,
        Work(macs=49 * 64 * 32, products=49 * 4 * 2, bytes=49 * 64 + 32 + 64 * 32,
             passes=2 * (49 + 48 + 1))),
    "a depthwise convolution and a pointwise one": (
        Separable(height=7, width=7, channels_in=64, channels_out=64, channels_mixed=32, pad=1),
        ONE_TAP, Work(macs=49 * 64 * (9 + 32), products=49 * 4 * (9 + 2),
                      bytes=49 * (64 + 32) + 64 * 9 + 64 * 32, passes=49 * (4 + 2))),
    "the same with windows": (
        Separable(height=7, width=7, channels_in=64, channels_out=64, channels_mixed=32, pad=1),
        WINDOWS, Work(macs=49 * 64 * (9 + 32), products=4 * (7 * (7 + 2) * 3 + 49 * 2),
                      bytes=49 * (64 + 32) + 64 * 9 + 64 * 32, passes=49 * (4 + 2))),
    "a convolution before both": (
        ConvSeparable(height=7, width=7, channels_in=64, channels_out=64, kernel=1, window_pad=1,
                      channels_mixed=32), ONE_TAP,
        Work(macs=49 * 64 * (64 + 9 + 32), products=49 * 4 * (4 + 9 + 2),
             bytes=49 * (64 + 32) + 64 * (64 + 9 + 32), passes=49 * (4 + 4 + 2))),
    "a convolution of which only every third row is used": (
        ConvSeparable(height=7, width=7, channels_in=64, channels_out=64, kernel=1, window=1,
                      window_stride=(3, 1), channels_mixed=32), ONE_TAP,
        Work(macs=49 * 64 * 64 + 21 * 64 * (1 + 32), products=21 * 4 * (4 + 1 + 2),
             bytes=21 * 32 + 64 * (1 + 32), passes=21 * (4 + 4 + 2))),
    "addition of equal scales": (
        Elementwise(operation="add", channels=64, height=7, width=7), base,
        Work(macs=0, products=0, bytes=3 * 49 * 64, passes=49 * 4 * 4)),
    "multiplication": (
        Elementwise(operation="mul", channels=60, height=7, width=7), base,
        Work(macs=0, products=0, bytes=3 * 49 * 60, passes=49 * 4 * 2)),
    "multiplication with a zero point": (
        Elementwise(operation="mul", channels=64, zero_point_left=3), base,
        Work(macs=0, products=0, bytes=192, passes=4 * 3)),
    "multiplication of channels": (
        Broadcast(operation="mul", channels=60, height=7, width=7, zero_point_right=3), base,
        Work(macs=0, products=0, bytes=60 * (2 * 49 + 1), passes=4 * (49 * 2 + 1))),
    "rescale": (
        Elementwise(operation="rescale", channels=64, height=7, width=7, images=2), base,
        Work(macs=0, products=0, bytes=2 * 2 * 49 * 64, passes=2 * 49 * 4)),
}


def test_every_operator_has_a_case():
    assert {type(spec) for spec, *_ in CASES.values()} == set(OPERATORS)


@pytest.mark.parametrize("name", CASES)
def test_the_work_of(name):
    spec, config, expected = CASES[name]
    assert replace(work_of(spec, config), written=0, pairs=0, parameters=0, kept=0,
                   filled=0) == expected


@pytest.mark.parametrize(("name", "config", "channels"), [
    ("resnet 3 × 3", base, 64), ("first layer, folded whole", base, 64),
    ("depthwise with a multiplier", small, 16), ("grouped", base, 64), ("transposed", base, 32),
    ("fully connected", replace(base, batch=4), 4 * 33),
    ("a convolution with a residual", base, 32),
    ("a depthwise convolution and a pointwise one", base, 64 + 32),
    ("a convolution before both", base, 64 + 64 + 32), ("rescale", base, 0)])
def test_parameters_of_channels_are_read_whatever_the_form(name, config, channels):
    spec = CASES[name][0]
    forms = operator_of(spec).forms_of(spec, config, alone=True)
    assert {each.work.parameters for each in forms} == {9 * channels}
    plain = Work(macs=0, products=0, bytes=7200, written=800, passes=0)
    more = replace(plain, parameters=800).bound(config, MemoryTiming())
    assert more.memory == 8000 / config.bus_bytes


def test_sums_that_are_added_to_are_read():
    """Windows make 28 × 28 sums in three steps, of which two read, and a factor is another
    operand."""
    spec, *_ = CASES["average pool, windows that overlap"]
    form = next(each for each in operator_of(spec).forms_of(spec, WINDOWS)
                if isinstance(each, AverageForm))
    assert form.work.pairs == 28 * 28 * (2 + 1)


@pytest.mark.parametrize(("name", "kept", "filled"), [
    ("max pool, windows side by side", 16 * 3 * 2, 64 * 32),
    ("addition of equal scales", 49 * 4 * 3, 2 * 49 * 64),
    ("multiplication of channels", 4 * (49 + 1), 60 * 50), ("fully connected", 0, 0)])
def test_a_bank_takes_a_result_or_a_beat_in_a_cycle(name, kept, filled):
    spec, *_ = CASES[name]
    work = work_of(spec, base)
    assert (work.kept, work.filled) == (kept, filled)
    for banks in (1, 2, 4):
        found = work.bound(replace(base, acc_banks=banks), MemoryTiming())
        reads = work.pairs if banks == 1 else 0
        assert found.alu == max(work.passes + reads, (kept + filled / 8) / banks)


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_the_output(name):
    spec, config, _ = CASES[name]
    form = operator_of(spec).forms_of(spec, config)[0]
    result = form.unpack(np.zeros(form.shapes["output"], np.int8))
    assert work_of(spec, config).written == result.size * getattr(form, "result_bytes", 1)


@pytest.mark.parametrize("cycles", [1, 8, 16])
def test_a_vector_takes_the_alu_its_cycles(cycles):
    spec, config = CASES["rescale"][0], replace(base, vector_cycles=cycles)
    assert bound_of(spec, config).alu == 2 * 49 * 4 * cycles
    assert bound_of(spec, config).limit == ("memory" if cycles == 1 else "alu")


@pytest.mark.parametrize(("bound", "cycles", "limit"), [
    (Bound(macs=10, memory=3, alu=4), 10, "macs"), (Bound(macs=10, memory=30, alu=4), 30, "memory"),
    (Bound(macs=10, memory=30, alu=40), 40, "alu"), (Bound(macs=7, memory=7, alu=7), 7, "macs"),
])
def test_the_bound_is_the_largest_of_products_bytes_and_vectors(bound, cycles, limit):
    assert (bound.cycles, bound.limit) == (cycles, limit)


@pytest.mark.parametrize(("config", "memory", "cycles"), [
    (base, MemoryTiming(), 1000), (wide, MemoryTiming(), 500),
    (replace(base, bus_bits=256), MemoryTiming(), 250),
    (base, MemoryTiming(cycles_per_beat=3), 3000),
    (base, MemoryTiming(read_latency=128), 1000),       # latency can be hidden
])
def test_bytes_take_their_time_on_the_bus(config, memory, cycles):
    found = Work(macs=5, products=0, bytes=8000, passes=0).bound(config, memory)
    assert found.memory == found.cycles == cycles
    assert found.alone == cycles + 2 * memory.read_latency + memory.write_latency


@pytest.mark.parametrize(("config", "memory", "cycles"), [
    (base, MemoryTiming(shared=False), 750),
    (base, MemoryTiming(shared=False, cycles_per_beat=2), 1500),
    (replace(base, reads_in_flight=1), MemoryTiming(), 750 * (64 + 32) / 64),
    (replace(base, reads_in_flight=2), MemoryTiming(read_latency=256), 750 * (64 + 256) / 128),
    (replace(base, writes_in_flight=1), MemoryTiming(write_latency=256), 250 * (64 + 256) / 64),
    (replace(base, reads_in_flight=1, bus_bits=256), MemoryTiming(), 6000 / 32 * (64 + 32) / 64),
    (base, MemoryTiming(stalls=128), 750 * 2),
    (base, MemoryTiming(stalls=64), 1000 * 16 / 15),
    (base, MemoryTiming(stalls=128, cycles_per_beat=3), 1000 * (2 + 4 / 3)),
])
def test_reads_and_writes_take_their_own_time(config, memory, cycles):
    work = Work(macs=5, products=0, bytes=8000, written=2000, passes=0)
    assert work.bound(config, memory).memory == pytest.approx(cycles)


@pytest.mark.parametrize(("banks", "cycles"), [(1, 150), (2, 100)])
def test_one_bank_gives_two_operands_in_two_cycles(banks, cycles):
    work = Work(macs=0, products=0, bytes=0, passes=100, pairs=50)
    assert work.bound(replace(base, acc_banks=banks), MemoryTiming()).alu == cycles


def test_utilization_counts_what_the_result_needs_not_what_the_array_does():
    work = Work(macs=128_000, products=1000, bytes=0, passes=0)
    assert work.utilization(1000, base) == 0.5
    assert work.utilization(2000, base) == 0.25


@pytest.mark.parametrize(("name", "config"), [(name, config) for name in (
    "channels that fill no block", "depthwise with a multiplier", "grouped", "transposed",
    "fully connected", "batch matmul with zero points", "max pool, windows side by side",
    "every other pixel of a pool", "addition of equal scales", "multiplication with a zero point",
    "classifier with weights of 4 bits", "average pool, ties to even")
    for config in (tiny, small, INT4) if config is not INT4 or "matmul" not in name])
def test_no_program_undercuts_the_bound(name, config):
    spec = CASES[name][0]
    cycles = microtron.simulate(microtron.compile_op(spec, config).program).cycles
    assert bound_of(spec, config).alone <= cycles


@pytest.mark.parametrize("name", ["channels that fill no block", "grouped", "fully connected",
                                  "max pool, windows side by side", "addition of equal scales"])
@pytest.mark.parametrize(("fields", "memory"), [
    ({"reads_in_flight": 1}, MemoryTiming(read_latency=100)),
    ({"writes_in_flight": 1, "acc_banks": 1}, MemoryTiming(write_latency=100)),
    ({"reads_in_flight": 2}, MemoryTiming(shared=False, cycles_per_beat=3)),
    ({}, MemoryTiming(stalls=128, seed=3)),
])
def test_no_program_undercuts_the_bound_of_a_slow_memory(name, fields, memory):
    spec, config = CASES[name][0], replace(tiny, **fields)
    kernel = microtron.compile_op(spec, config, memory=memory, cost="estimate")
    assert bound_of(spec, config, memory).alone <= microtron.simulate(
        kernel.program, memory=memory).cycles


@pytest.mark.parametrize(("size", "outputs", "kernel", "stride", "dilation", "pad", "seen"), [
    (56, 56, 3, 1, 1, 1, 56),
    (56, 28, 1, 2, 1, 0, 28),       # every other row
    (57, 19, 1, 3, 1, 0, 19),
    (10, 3, 2, 4, 1, 0, 6),
    (7, 3, 3, 1, 2, 0, 7),
    (8, 2, 2, 4, 3, 0, 4),          # 0, 3, 4, 7
    (3, 9, 1, 1, 1, 3, 3),          # mostly border
    (1, 1, 3, 1, 1, 1, 1),
])
def test_pixels_that_no_output_sees_do_not_count(size, outputs, kernel, stride, dilation, pad,
                                                 seen):
    assert rows_read(size, outputs, kernel, stride, dilation, pad) == seen


@given(*(st.integers(1, most) for most in (20, 9, 6, 5, 4)), st.integers(-4, 9))
def test_used_rows_are_those_that_some_tap_of_some_output_reads(size, outputs, kernel, stride,
                                                                dilation, pad):
    rows = {output * stride + tap * dilation - pad
            for output in range(outputs) for tap in range(kernel)}
    assert rows_read(size, outputs, kernel, stride, dilation, pad) == len(rows & set(range(size)))
