"""Predictions of networks as streams, what exact simulations say about them, and hill climbing."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from microtron import bound_of, simulate
from microtron.boards.facts.catalogue import find_board
from microtron.explore.area.area_model import shipped_area_model
from microtron.explore.codesign.board_budget import Budget
from microtron.explore.codesign.codesign_search import Exploration, measure
from microtron.explore.codesign.correction import fit_correction
from microtron.explore.codesign.front import Point
from microtron.explore.codesign.layer_streams import (
    estimated_stream_cycles,
    least_stream_cycles,
    streams_of,
)
from microtron.explore.codesign.question import Question
from microtron.explore.codesign.refinement import climb, neighbours, starts_of
from microtron.explore.codesign.workload import read_tasks
from microtron.explore.records import Records
from microtron.explore.sampling import sample_configs
from microtron.explore.time_left import time_left
from microtron.isa.config import PRESETS
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.models.compilation import ModelOptions, compile_to_network

pytest.importorskip("scipy")
DIGITS = Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"


def test_a_stream_takes_less_than_its_layers_where_results_stay_on_the_chip():
    """Whole networks on a slow memory, simulated: below the sum of their layers' bounds, and not
    below their own."""
    memory = find_board("ulx3s").memory.timing
    config = replace(PRESETS["small"], out_bytes=64 << 10)
    network = compile_to_network(DIGITS, config, ModelOptions(memory=memory), version="")
    [stream] = streams_of(network)
    assert [layer.chained for layer in stream] == [False, True, False, True, False, False]
    [program] = network.programs
    cycles = simulate(program, memory=memory).cycles
    assert least_stream_cycles(stream, config, memory) <= cycles
    alone = tuple(replace(layer, chained=False) for layer in stream)
    bounds = {layer.spec: bound_of(layer.spec, config, memory).cycles for layer in stream}
    assert estimated_stream_cycles(alone, config, memory, bounds.get) == pytest.approx(
        sum(bounds[layer.spec] for layer in stream))
    stays = estimated_stream_cycles(stream, config, memory, bounds.get)
    assert stays < sum(bounds[layer.spec] for layer in stream)
    assert estimated_stream_cycles(stream, replace(config, out_readers=1), memory,
                                   bounds.get) > stays


def test_what_is_known_exactly_corrects_predictions():
    """Half the cycles where there are four banks, and 10 % more where there is one."""
    configs = [config for config in sample_configs(200, 5) if config.acc_banks in (1, 4)]
    factors = {config: 0.5 if config.acc_banks == 4 else 1.1 for config in configs}
    predicted = {config: Point(config, 1000.0, {}) for config in configs}
    exact = {config: Point(config, 1000 * factors[config], {}, exact=True)
             for config in configs[:60]}
    found = fit_correction(predicted, exact)
    for point in found.correct([predicted[config] for config in configs[60:]]):
        assert point.cycles == pytest.approx(1000 * factors[point.config], rel=0.1)
    backwards = dict(reversed(exact.items()))
    assert fit_correction(predicted, backwards).factor(configs[0]) == found.factor(configs[0])
    few = dict([*exact.items()][:3])
    assert fit_correction(predicted, few).factor(configs[0]) == 1


def test_what_takes_luts_is_tried_with_what_saves_them(tmp_path):
    """A model of areas in which scratchpads cost LUTs: a larger one alone is never tried."""
    [task] = read_tasks([DIGITS], [], PRESETS["tiny"], MemoryTiming())
    budget = Budget(find_board("ulx3s"), shipped_area_model())
    found = Exploration(Question(tasks=[task], memory=MemoryTiming(), budget=budget))
    start = Point(PRESETS["small"], 1.0, budget.area(PRESETS["small"]))
    configs = [each.config for each in neighbours(found, start, start.area["lut"])]
    assert all(budget.area(config)["lut"] <= start.area["lut"] for config in configs)
    larger = [config for config in configs if config.out_bytes > start.config.out_bytes]
    assert larger
    for config in larger:
        changed = [name for name, value in config.to_dict().items()
                   if value != getattr(start.config, name)]
        assert len(changed) == 2
    assert any(config.acc_banks < start.config.acc_banks for config in larger)


def test_neighbours_are_climbed_to_fewer_cycles_and_no_more_area(tmp_path):
    (tmp_path / "layers.json").write_text(json.dumps(
        [{"operator": "dense", "rows": 4, "inputs": 64, "outputs": 64}]))
    [task] = read_tasks([tmp_path / "layers.json"], [], PRESETS["tiny"], MemoryTiming())
    question = Question(tasks=[task], memory=MemoryTiming(),
                        budget=Budget(find_board("ulx3s"), shipped_area_model()))
    found = Exploration(question)
    with Records(tmp_path / "records") as records:
        start = measure(found, PRESETS["tiny"], records)
        climb(found, starts_of(start, None), records, count=6)
    assert len(found.exact) == 7
    assert all(each.area["lut"] <= start.area["lut"] for each in found.exact.values())
    assert min(each.cycles for each in found.exact.values()) < start.cycles
    assert climb(Exploration(question), [], records, count=6) is None
    [_, knee] = starts_of(start, start)
    assert start.area["lut"] < knee.most_luts < 1.1 * start.area["lut"]


@pytest.mark.parametrize(("done", "total", "seconds", "said"), [
    (0, 8, 5.0, ""), (8, 8, 5.0, ""), (3, None, 5.0, ""), (2, 8, 10.0, ", about 30 s left"),
    (1, 8, 60.0, ", about 7 min left")])
def test_what_is_left_is_said_where_it_is_known(done, total, seconds, said):
    assert time_left(done, total, seconds) == said
