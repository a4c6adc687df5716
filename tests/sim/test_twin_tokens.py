"""Token counters: the most they held, told by the loop and by the timeline."""

import pytest

from microtron.isa.config import Config, tiny
from microtron.isa.instructions import AluI, Engines, Gemm, Load, Store
from microtron.sim.cycle.run import run_cycles
from microtron.sim.functional.simulator import Functional
from microtron.sim.simulate import simulate
from microtron.sim.token_counters import format_counters, most_tokens
from microtron.testing.campaign import random_config, valid_case, wrong_case

from .functional.support import program

L, G, A, S = Engines.LOAD, Engines.GEMM, Engines.ALU, Engines.STORE


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_loop_and_the_timeline_tell_the_same_maxima(first):
    used = 0
    for seed in range(first, first + 50):
        for case in (valid_case(random_config(seed), seed), wrong_case(random_config(seed), seed)):
            run = run_cycles(case.program, timing=case.timing, failing=case.failing,
                             limit=case.limit)
            assert run.most_tokens == most_tokens(case.program, run.timeline)
            used += len(run.most_tokens)
    assert used > 100


def test_a_report_says_how_full_the_counters_were():
    code = [Load(post=S), Load(post=S), Load(post=G), Gemm(wait=L, post=A), AluI(wait=G, post=S),
            Store(segment=1, wait=A | L), Store(segment=1, wait=L)]
    image = program(tiny, *code, source=16, target=4096)
    expected = {"load → gemm": 1, "load → store": 2, "gemm → alu": 1, "alu → store": 1}
    assert simulate(image).counts.most_tokens == expected
    assert Functional(image).run().most_tokens == expected


def test_a_token_taken_in_the_cycle_of_a_post_makes_room_for_it():
    """With counters of one token, a chain of posts and waits runs at all only because of that; the
    most is one."""
    config = Config(token_bits=2, block_in=4, block_out=4)
    code = [each for _ in range(4) for each in (Load(post=G), Gemm(wait=L))]
    image = program(config, *code, memory=64)
    run = run_cycles(image)
    assert run.most_tokens == most_tokens(image, run.timeline)
    assert 1 <= run.most_tokens["load → gemm"] <= config.token_limit


def test_counters_that_are_zero_are_not_listed():
    assert format_counters([0] * 16) == "none"
    assert format_counters([0, 2, *[0] * 13, 1]) == "load → gemm 2, store → store 1"
