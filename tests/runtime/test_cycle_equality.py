"""Hardware and twin on programs that are long, and on each way to fail, by name."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import microtron.sim.twins.top as twin
from microtron.base.errors import ConfigError, ExecutionError
from microtron.hw import accumulator
from microtron.hw.alu import alu_lanes, alu_results
from microtron.hw.fetch import fetch
from microtron.hw.gemm import gemm, mac
from microtron.hw.store import store_reader
from microtron.hw.transfer import burst_walker, transfer
from microtron.isa.address_map import place_windows
from microtron.isa.config import Config, base, small, tiny, wide
from microtron.isa.faults import Fault
from microtron.isa.instructions import AluI, Engines, Gemm, Load, Store, Sync
from microtron.isa.memory_timing import MemoryTiming
from microtron.sim.cycle.run import run_cycles
from microtron.sim.cycle.stop_reasons import check_end
from microtron.testing.campaign import random_config, valid_case, wrong_case
from microtron.testing.compare import compare, compare_case
from microtron.testing.differences import explain

from .devices.test_rtl import FAULTS, copying, with_code
from .devices.test_rtl_programs import CONFIGS

TIMINGS = {
    "usual": MemoryTiming(),
    "fast": MemoryTiming(read_latency=1, write_latency=1, shared=False),
    "slow": MemoryTiming(read_latency=300, write_latency=200, cycles_per_beat=5),
    "narrow": MemoryTiming(reads=1, writes=1, cycles_per_beat=2),
    "moody": MemoryTiming(stalls=60, seed=7),
    "turning": MemoryTiming(read_latency=9, cycles_per_beat=2, turn=3),
}
SHAPES = {      # height, width, channels in and out, kernel, stride, pad
    "3 × 3": (16, 14, 16, 16, 3, 1, 1),
    "1 × 1, stride 2": (10, 9, 16, 8, 1, 2, 0),
    "5 × 5": (12, 12, 8, 8, 5, 1, 2),
}


def assert_equal(program, **options):
    comparison = compare(program, **options)
    assert not comparison.differences, explain(comparison, Path("program.mt"))
    return comparison


@pytest.fixture(scope="module")
def convolution():
    """The function of the benchmark, which is no part of the package."""
    source = Path(__file__).parents[2] / "benchmarks" / "convolution.py"
    spec = importlib.util.spec_from_file_location("convolution_for_rtl", source)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module.convolution
    finally:
        del sys.modules[spec.name]


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_convolutions_take_the_twin_s_cycles(convolution, shape, timing):
    program, expected = convolution(tiny, *SHAPES[shape])
    comparison = assert_equal(program, timing=TIMINGS[timing])
    output = comparison.rtl.memory[program.segments.index(program.segment("output"))]
    assert (output == expected.view("u1").ravel()).all()


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_comes_in_the_same_cycle(name, timing):
    program, _ = FAULTS[name]
    comparison = assert_equal(program, timing=TIMINGS[timing])
    assert comparison.rtl.words
    assert comparison.rtl.cycles == comparison.twin.cycles > 0


@pytest.mark.parametrize("timing", TIMINGS)
def test_a_deadlock_is_the_same_deadlock(timing):
    program = with_code(Load(), Gemm(wait=Engines.ALU), AluI(wait=Engines.GEMM, post=Engines.GEMM),
                        Store(segment=1), Sync())
    comparison = assert_equal(program, timing=TIMINGS[timing])
    assert comparison.rtl.words == (
        "deadlock after 2 of 5 instructions: gemm waits at instruction 1 (gemm wait=alu) for a "
        "token from alu; alu waits at instruction 2 (alui.add wait=gemm post=gemm) for a token "
        "from gemm; tokens: none")
    assert comparison.rtl.counters is None


@pytest.mark.parametrize("window", range(3))
def test_bus_errors_anywhere_stop_both_in_the_same_cycle(window):
    program = copying()
    base_address = place_windows(program)[window]
    causes = set()
    for place in range(0, 160, 7):
        for size in (1, 64):
            start = base_address + place
            words = assert_equal(program, failing=range(start, start + size)).rtl.words
            causes.add(words.rpartition(": ")[2])
    expected = {"write_error fault"} if window == 2 else {"read_error fault"}
    # The code ends before the last of these addresses: nobody reads there.
    assert causes == expected | ({""} if window == 0 else set())


def words_of(case):
    """How a program ends, as the twin alone tells it."""
    run = run_cycles(case.program, timing=case.timing, failing=case.failing, limit=case.limit)
    try:
        check_end(case.program, run, case.limit)
    except ExecutionError as error:
        return str(error)
    return ""


def test_wrong_programs_meet_every_fault_and_deadlock():
    """So the random ones of `test_rtl_programs`, which are the same, speak of all of them."""
    met = {words_of(wrong_case(tiny, seed)) for seed in range(120)}
    for fault in Fault:
        words = ("ran out of instructions" if fault == Fault.NO_END
                 else f"{fault.name.lower()} fault")
        if fault not in (Fault.NONE, Fault.RESTARTED):
            assert any(words in each for each in met), fault
    assert any("deadlock" in each for each in met)
    assert "" in met


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_random_configurations_take_the_twin_s_cycles(seed):
    config = random_config(seed)
    for number in range(100):
        for make in (valid_case, wrong_case):
            comparison = compare_case(make(config, number))
            assert not comparison.differences, explain(comparison, Path("program.mt"))


# What the twins repeat from the hardware.

def test_depths_are_the_hardware_s():
    pairs = [(twin.alu_results.DEPTH, alu_results.DEPTH),
             (twin.fetch.BURST, fetch.BURST), (twin.fetch.AHEAD, fetch.AHEAD),
             (twin.gemm.STOP, gemm.STOP), (twin.load.QUEUE_DEPTH, transfer.QUEUE_DEPTH),
             (twin.LEVELS_PER_STAGE, mac.LEVELS_PER_STAGE),
             (twin.PRODUCT_STAGE, gemm.PRODUCT),
             (twin.burst_walker.GRID, burst_walker.MOST_BEATS),
             (twin.store.QUEUE_DEPTH, transfer.QUEUE_DEPTH),
             (twin.store_reader.QUEUE_DEPTH, store_reader.QUEUE_DEPTH),
             (twin.READ_LATENCY, accumulator.READ_LATENCY),
             (3, store_reader.READ_LATENCY)]         # the twin has a register for each
    for ours, theirs in pairs:
        assert ours == theirs


@pytest.mark.parametrize("config", [*CONFIGS.values(), small, base, wide, random_config(1)])
def test_the_stages_of_gemm_are_the_hardware_s(config):
    settings = twin.settings(config, 0, 0)[0]
    assert settings["gemm_latency"] == gemm.write_stage(config)
    assert settings["gemm_read_stage"] == (gemm.PRODUCT + mac.tree_stages(config)
                                           - accumulator.READ_LATENCY)


@pytest.mark.parametrize("cycles", [1, 2, 4, 8, 16])
def test_the_latency_of_the_alu_is_the_hardware_s(cycles):
    config = replace(base, vector_cycles=cycles)
    assert twin.settings(config, 0, 0)[0]["alu_latency"] == alu_lanes.latency(config)


def test_the_twins_have_places_for_the_most_that_can_be_under_way():
    most = 64                   # of reads and writes in flight, here and in memory
    with pytest.raises(ConfigError, match=f"reads_in_flight is {most + 1}"):
        Config(reads_in_flight=most + 1)
    with pytest.raises(ConfigError, match=f"writes_in_flight is {most + 1}"):
        Config(writes_in_flight=most + 1)
    with pytest.raises(ConfigError, match=f"reads is {most + 1}"):
        MemoryTiming(reads=most + 1)
    assert most <= twin.dram.BURSTS
    assert most <= twin.writer.BURSTS
    assert most + 2 <= twin.store.AWAITED
    largest = Config(block_in=64)
    assert gemm.write_stage(largest) + 1 <= twin.gemm.IN_FLIGHT
