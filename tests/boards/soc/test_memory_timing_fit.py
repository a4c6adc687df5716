"""Fitting the simulator's memory: it finds the memory that programs were measured with."""

from __future__ import annotations

from dataclasses import replace

import pytest

import microtron
from microtron.boards.soc.simulation.memory_timing_fit import (
    Measured,
    fit_timing,
    format_settings,
    simulate_cycles,
    worst_error,
)
from microtron.isa.memory_timing import MemoryTiming

from ...runtime.small_model import small_graph

RIGHT = MemoryTiming(read_latency=21, write_latency=9, cycles_per_beat=4, stalls=20)


@pytest.fixture(scope="module")
def runs():
    programs = microtron.compile(small_graph(), "tiny").programs
    return [Measured((each,), simulate_cycles(each, RIGHT)) for each in programs]


def test_an_error_has_the_sign_of_what_is_predicted(runs):
    assert runs[0].error(RIGHT) == 0
    assert runs[0].error(replace(RIGHT, read_latency=40)) > 0 > runs[0].error(MemoryTiming())


def test_the_fit_predicts_what_was_measured(runs):
    start = MemoryTiming(read_latency=16, write_latency=4, cycles_per_beat=2)
    assert worst_error(runs, start) > 0.1
    assert worst_error(runs, fit_timing(runs, start)) <= 0.005


def test_the_fit_is_the_best_of_those_from_all_starts(runs):
    few = replace(RIGHT, reads=1)
    slow = [replace(each, cycles=simulate_cycles(each.programs[0], few)) for each in runs]
    far = replace(RIGHT, cycles_per_beat=7, stalls=0)
    assert worst_error(slow, fit_timing(slow, far)) > 0.005
    assert worst_error(slow, fit_timing(slow, far, few)) == 0


def test_settings_are_lines_of_a_boards_file():
    assert format_settings(RIGHT) == ("read_latency = 21\nwrite_latency = 9\ncycles_per_beat = 4\n"
                               "stalls = 20")
