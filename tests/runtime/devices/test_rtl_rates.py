"""What the hardware promises about time, by the benchmark that measures it, on `tiny`."""

import argparse
import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def rates():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("hardware", BENCHMARKS / "hardware.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        outcome = module.measure(argparse.Namespace(configs=["tiny"]))
    finally:
        sys.path.remove(str(BENCHMARKS))
    return {row["what"]: row for row in outcome.rows}


@pytest.mark.parametrize("what", ["gemm", "gemm, one sum", "alu immediate", "alu tensor"])
def test_n_steps_take_n_cycles_and_a_constant_and_follow_without_a_bubble(rates, what):
    row = rates[what]
    assert row["cycles"] == row["due"] + (10 if what.startswith("gemm") else 17)
    assert row["again"] == row["due"]


def test_requantize_takes_a_cycle_a_vector_and_three_an_outer_iteration(rates):
    assert rates["requantize"]["again"] == rates["requantize"]["due"]


@pytest.mark.parametrize("what", ["load inp", "load wgt", "load acc", "store out", "store acc"])
def test_transfers_sustain_a_beat_a_cycle_at_32_cycles_of_latency(rates, what):
    row = rates[what]
    assert row["cycles"] == row["due"] + (38 if what.startswith("load") else 24)
    assert row["again"] == row["due"] + 1       # one cycle between instructions


def test_all_four_engines_are_busy_in_the_same_cycles(rates):
    assert rates["all four engines"]["again"] > 50
