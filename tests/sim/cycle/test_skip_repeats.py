"""Skipping over quiet stretches: the same as going through every cycle, on any accelerator."""

import os
from dataclasses import replace

import pytest

from microtron import compile_op
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.isa.config import small, tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import (
    PARAMETER_TILES,
    Alu,
    AluI,
    Buffer,
    Load,
    Requantize,
    Store,
    Sync,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.sim.cycle.run import run_cycles
from microtron.testing.campaign import long_case, random_config, valid_case, wrong_case
from microtron.testing.compare import Case
from microtron.testing.soak import config_of

PART = 60
SOAK = int(os.environ.get("SOAK_PROGRAMS", "1000"))
FIRST_SEED = 1 << 40            # apart from the seeds of the ordinary tests

# Each of these once went wrong: a step of the ALU that waits for another only at first, and a
# store that shares a bank with the ALU, but asks for a tile only now and then.
KNOWN = (2281, 2576, 2645, 2931, 6871, 21367)
# And a load whose row is out of range, behind bursts that wait; an instruction of the ALU that has
# one step, which is behind an empty place.
KNOWN_FAULTS = (50001724, 60000413)


def assert_equal(case):
    """Everything that a run tells, with and without skipping."""
    options = {"timing": case.timing, "failing": case.failing, "limit": case.limit}
    ours = run_cycles(case.program, **options)
    theirs = run_cycles(case.program, **options, skip=False)
    for name in ("dispatched", "start", "end", "waits"):
        assert (getattr(ours.timeline, name) == getattr(theirs.timeline, name)).all(), name
    assert (ours.fault, ours.fault_position) == (theirs.fault, theirs.fault_position)
    assert ours.stuck == theirs.stuck
    if not ours.stuck:          # a deadlock is noticed when it begins
        assert ours.counters == theirs.counters
        assert ours.cycles == theirs.cycles


@pytest.mark.parametrize("first", range(0, 240, PART))
def test_random_programs_on_random_accelerators(first):
    for seed in range(first, first + PART):
        assert_equal(valid_case(random_config(seed), seed))


@pytest.mark.parametrize("first", range(0, 120, PART))
def test_wrong_programs_on_random_accelerators(first):
    for seed in range(first, first + PART):
        assert_equal(wrong_case(random_config(seed), seed))


@pytest.mark.parametrize("first", range(0, 60, PART))
def test_programs_whose_instructions_take_long_on_random_accelerators(first):
    for seed in range(first, first + PART):
        assert_equal(long_case(random_config(seed), seed))


@pytest.mark.parametrize("seed", KNOWN_FAULTS)
def test_faults_that_once_came_too_late(seed):
    assert_equal(wrong_case(random_config(seed), seed))


@pytest.mark.parametrize("seed", KNOWN)
def test_what_once_went_wrong(seed):
    make = wrong_case if seed % 3 == 0 else valid_case
    assert_equal(make(replace(random_config(seed), vector_cycles=1), seed))


def test_results_that_change_their_bank_under_way():
    """A load shared a bank with the ALU's results, after those of the row before had left it
    alone; on a slow bus that did not show in any register."""
    assert_equal(long_case(config_of("int4"), (1 << 40) + 2381))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_many_programs_on_random_accelerators(part):
    for number in range(part, SOAK, 20):
        seed = FIRST_SEED + number
        make = (valid_case, long_case, wrong_case)[number % 3]
        assert_equal(make(random_config(seed), seed))


# Long walks by name.

def case_of(*code, config=tiny):
    size = 1 << 14
    return Case(program=Program(config, encode([*code, Sync()]), (
        Segment("input", size, Access.READ), Segment("output", size, Access.WRITE))))


MANY = {"loops": (1, 1, 600), "dst_stride": (0, 0, 1)}
READS = {"dst_stride": (0, 0, 0), "src_stride": (0, 0, 1)}
WALKS = {
    "alu leaves acc": AluI(**MANY),
    "alu leaves out": AluI(**MANY, target=Buffer.OUT),
    "alu leaves acc below": AluI(dst=400, loops=(1, 1, 600), dst_stride=(0, 0, -1)),
    "alu reads beyond acc": AluI(loops=(1, 1, 600), **READS, target=Buffer.OUT),
    "alu reads beyond acc on the right": Alu(loops=(1, 1, 600), rhs_stride=(0, 0, 1)),
    "load leaves inp": Load(sram=100, shape=(1, 1, 600)),
    "load leaves acc": Load(buffer=Buffer.ACC, sram=100, shape=(1, 1, 600)),
    "load pads beyond wgt": Load(buffer=Buffer.WGT, sram=100, shape=(1, 4, 9),
                                 pad=(30, 30, 0, 0)),
    "store leaves out": Store(segment=1, sram=100, shape=(1, 1, 600)),
    "store leaves acc": Store(buffer=Buffer.ACC, segment=1, sram=100, shape=(1, 1, 600)),
}


@pytest.mark.parametrize("config", [tiny, replace(tiny, vector_cycles=4)],
                         ids=lambda config: f"vector_cycles={config.vector_cycles}")
@pytest.mark.parametrize("name", WALKS)
def test_a_walk_that_leaves_its_scratchpad_stops_in_its_cycle(name, config):
    case = case_of(WALKS[name], config=config)
    assert run_cycles(case.program).fault == Fault.INDEX
    assert_equal(case)


def test_parameters_are_read_between_rows_that_follow_one_another():
    """The steps before and after the reads are equally far apart, which looks like one row."""
    walk = {"dst_stride": (40, 0, 1), "src_stride": (40, 0, 1), "params_stride": 3}
    config = replace(tiny, acc_bytes=1 << 14, out_bytes=1 << 12)
    case = case_of(Requantize(loops=(4, 1, 40), params=160, **walk), config=config)
    assert_equal(case)
    steps = 4 * (40 + PARAMETER_TILES)
    assert run_cycles(case.program).counters["alu_busy"] > steps


@pytest.mark.parametrize("config", [small, replace(small, acc_banks=1), replace(tiny, acc_banks=2)],
                         ids=lambda config: f"{config.block_in}x{config.acc_banks}")
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (1, 2)])
def test_compiled_convolutions(config, kernel, stride):
    """GEMM and the ALU share banks in these for longer than in random programs."""
    spec = Conv2d(height=14, width=14, channels_in=32, channels_out=32, kernel=(kernel, kernel),
                  stride=(stride, stride), pad=(kernel // 2,) * 4)
    assert_equal(Case(program=compile_op(spec, config).program))
