"""Why a program does not end, in words: who waits where for which token."""

from dataclasses import replace

import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, Engines, Gemm, Load, Store, Sync, SyncAction
from microtron.isa.memory_timing import MemoryTiming
from microtron.sim.cycle.run import run_cycles
from microtron.sim.cycle.stop_reasons import describe_timeout, places_in
from microtron.sim.functional.order import Adversarial
from microtron.sim.functional.simulator import Functional
from microtron.sim.simulate import simulate
from microtron.testing.campaign import random_config, wrong_case

from ..functional.support import program

L, G, A, S = Engines.LOAD, Engines.GEMM, Engines.ALU, Engines.STORE
BARRIER = Sync(action=SyncAction.BARRIER)


def words(*code, config=tiny, **options):
    with pytest.raises(ExecutionError) as caught:
        simulate(program(config, *code, memory=4096), **options)
    return str(caught.value)


def test_every_engine_says_what_it_waits_for_and_the_tokens_are_listed():
    assert words(Load(post=A | G), Load(wait=G | S), Gemm(wait=L), Gemm(wait=A, post=L),
                 AluI(wait=L, post=S), AluI(wait=S), BARRIER, Store()) == (
        "deadlock after 3 of 9 instructions: "
        "load waits at instruction 1 (load.inp wait=gemm|store segment=memory) for a token from "
        "gemm and from store; "
        "gemm waits at instruction 3 (gemm wait=alu post=load) for a token from alu; "
        "alu waits at instruction 5 (alui.add wait=store) for a token from store; "
        "store waits for instruction 7 (store.out segment=memory), which is held up by "
        "instruction 6 (sync.barrier); tokens: alu → store 1")


@pytest.mark.parametrize("depth", [2, 4])
def test_an_engine_may_wait_for_an_instruction_that_a_full_queue_holds_up(depth):
    code = [*[Gemm(wait=L)] * 6, AluI()]
    found = words(*code, config=replace(tiny, queue_depth=depth))
    assert found == (
        f"deadlock after 0 of 8 instructions: gemm waits at instruction 0 (gemm wait=load) for a "
        f"token from load; alu waits for instruction 6 (alui.add), which is held up by "
        f"instruction {depth} (gemm wait=load); tokens: none")
    # What counts is the accelerator that runs it, not the one that the program was made for.
    with pytest.raises(ExecutionError) as caught:
        simulate(program(tiny, *code), replace(tiny, queue_depth=depth))
    assert str(caught.value) == found


def test_a_run_that_is_given_up_at_work_says_where_it_is():
    code = [Load(), AluI(loops=(10, 10, 10)), Gemm(wait=A)]
    found = words(*code, limit=1001)
    assert found.startswith("the program has not ended after 1,001 cycles, the limit (limit= in "
                            "Python, --limit on the command line): load has completed 1 "
                            "instructions; gemm has completed 0 instructions; alu is at "
                            "instruction 1 (alui.add")


def test_before_anything_has_started_nothing_is_a_deadlock():
    assert "has not ended after 5 cycles" in words(Load(), limit=5)


def test_a_deadlock_is_noticed_when_it_begins_and_only_then():
    """The functional simulator, whose queues have no end, agrees wherever no queue was full."""
    met = 0
    for seed in range(350):
        case = wrong_case(random_config(seed), seed)
        run = run_cycles(case.program, timing=case.timing, failing=case.failing, limit=10**7)
        if not run.stuck:
            continue
        assert run.cycles < 10**6
        found = describe_timeout(case.program, 10**7, places_in(case.program, run.timeline))
        assert found.startswith("deadlock after")
        if "held up" not in found:
            met += 1
            with pytest.raises(ExecutionError, match="deadlock"):
                Functional(case.program).run(Adversarial(seed))
    assert met > 10


def test_stalls_do_not_hide_a_deadlock():
    code = program(tiny, Load(), Gemm(wait=L), memory=160)
    for seed in range(20):
        run = run_cycles(code, timing=MemoryTiming(stalls=200, seed=seed))
        assert run.stuck
        assert run.cycles < 10**5
