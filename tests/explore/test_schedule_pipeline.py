"""The coarse simulation of the steps of a schedule, against exact simulations."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from microtron import PRESETS, Config, Conv2d, Depthwise, Elementwise, Pool, schedules_of
from microtron.compiler.operators.depthwise.separable import Separable
from microtron.compiler.operators.elementwise.elementwise import Operation
from microtron.compiler.operators.pool.pool import Kind
from microtron.explore.dataset import Design
from microtron.explore.features import estimate_of
from microtron.explore.layer_sources import sample_layers
from microtron.explore.measure import measure_schedules
from microtron.explore.pipeline.pipeline_parts import PARTS, pipeline_of
from microtron.explore.pipeline.recorded_steps import image_shares
from microtron.explore.points import LayerPoint, Schedule
from microtron.explore.predictor import best_schedule
from microtron.explore.sampling import sample_configs
from microtron.isa.memory_timing import MemoryTiming

pytest.importorskip("scipy")
MEMORIES = (MemoryTiming(), MemoryTiming(read_latency=90, write_latency=40),
            MemoryTiming(cycles_per_beat=2, turn=4), MemoryTiming(shared=False, turn=8))


@pytest.fixture(scope="module")
def points():
    design = Design(configs=sample_configs(24, 4), layers=sample_layers(24, 4), memories=MEMORIES,
                    schedules=1)
    return [point for group in design.groups(72) for point in group]


def test_it_is_closer_to_exact_cycles_than_the_estimate(points):
    exact, pipeline, estimate = [], [], []
    for point, measured in measure_schedules(points):
        exact.append(measured["cycles"])
        pipeline.append(pipeline_of(point)["cycles"])
        estimate.append(estimate_of(point))
    ours, theirs = (np.abs(np.log2(np.array(each) / exact)) for each in (pipeline, estimate))
    assert np.median(ours) < 0.12
    assert np.percentile(ours, 90) < np.percentile(theirs, 90)


def test_slower_memory_takes_no_fewer_cycles_and_no_engine_is_busy_for_longer(points):
    for point in points:
        found = pipeline_of(point)
        assert list(found) == list(PARTS)
        assert all(found["cycles"] >= found[part] for part in ("bus", "gemm", "alu"))
        for change in ({"read_latency": 200}, {"write_latency": 200}, {"cycles_per_beat": 8}):
            slower = pipeline_of(replace(point, memory=replace(point.memory, **change)))
            assert slower["cycles"] >= found["cycles"]


@pytest.mark.parametrize(("rows", "columns", "share"), [
    (8, 8, (0.8, 0.8)),         # 8 of 10 rows, at once
    (4, 8, (10 / 12, 0.8)),     # twice 5 of 6
    (2, 1, (14 / 16, 22 / 24)),     # 3, 4, 4, 3 of 4; 2, 3, …, 3, 2 of 3
])
def test_what_is_padded_is_not_loaded(rows, columns, share):
    layer = Conv2d(height=8, width=8, channels_in=4, channels_out=4, pad=1)
    knobs = SimpleNamespace(rows=rows, columns=columns)
    assert image_shares(layer, knobs, (0, 0)) == pytest.approx(share)
    plain = replace(layer, pad=(0, 0, 0, 0), height=10, width=10)
    assert image_shares(plain, knobs, (0, 0)) == (1, 1)


def test_channels_that_do_not_fill_a_tile_of_memory_are_loaded_tile_by_tile():
    """Eight channels in tiles of 16: a burst for each four of them at each position."""
    config = Config(batch=4, block_in=4, block_out=16, bus_bits=256, reads_in_flight=2,
                    wgt_bytes=1 << 14, inp_bytes=1 << 14, acc_bytes=1 << 16, out_bytes=1 << 14,
                    uop_bytes=1 << 12)
    layer = Depthwise(height=28, width=28, channels_in=8, channels_out=8, pad=1)
    point = LayerPoint(layer, config, MEMORIES[0], best_schedule(layer, config, MEMORIES[0]))
    [(_, measured)] = measure_schedules([point])
    assert measured["cycles"] > 1.8 * estimate_of(point)
    assert pipeline_of(point)["cycles"] == pytest.approx(measured["cycles"], rel=0.3)


@pytest.mark.parametrize("layer", [
    Elementwise(operation=Operation.ADD, channels=64, height=12, width=12),     # four passes
    Pool(kind=Kind.MAX, height=16, width=16, channels=32, kernel=2, stride=2)])
@pytest.mark.parametrize("banks", [1, 4])
def test_layers_of_the_alu_wait_for_their_sums_and_their_banks(layer, banks):
    """Few tiles in a step: what the ALU writes is read 17 cycles later at the earliest."""
    config = replace(PRESETS["small"], acc_banks=banks)
    errors = []
    schedules = [Schedule(form.number, knobs) for form, knobs in schedules_of(layer, config)]
    for schedule in schedules[::max(1, len(schedules) // 12)]:
        point = LayerPoint(layer, config, MEMORIES[0], schedule)
        [(_, measured)] = measure_schedules([point])
        errors.append(pipeline_of(point)["cycles"] / measured["cycles"] - 1)
    assert np.median(np.abs(errors)) < 0.1
    assert np.max(np.abs(errors)) < 0.4


def test_layers_of_two_convolutions_are_simulated_too():
    """Whose blocks of results are those of the second one."""
    layer = Separable(height=14, width=14, channels_in=64, channels_out=64, pad=1)
    for number, (form, knobs) in enumerate(schedules_of(layer, "base")):
        point = LayerPoint(layer, PRESETS["base"], MEMORIES[0], Schedule(form.number, knobs))
        assert pipeline_of(point)["cycles"] > 0
        if number == 40:
            break


@pytest.mark.parametrize(("size", "pad", "stride"), [(20, 0, 1), (14, 1, 1), (24, 1, 2)])
@pytest.mark.parametrize("vector_cycles", [1, 4])
def test_windows_that_overlap_share_what_they_have_in_common(size, pad, stride, vector_cycles):
    config = replace(PRESETS["base"], vector_cycles=vector_cycles, acc_bytes=1 << 18)
    layer = Pool(kind=Kind.MAX, channels=96, height=size, width=size, kernel=3, stride=stride,
                 pad=pad)
    point = LayerPoint(layer, config, MEMORIES[0], best_schedule(layer, config, MEMORIES[0]))
    [(_, measured)] = measure_schedules([point])
    assert pipeline_of(point)["alu"] == pytest.approx(measured["alu_busy"], rel=0.08)
