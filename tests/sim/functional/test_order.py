"""Orders of execution: tokens and syncs are respected, everything else is tried."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import (
    AluI,
    AluOp,
    Buffer,
    Engine,
    Engines,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode, encode_micro_ops
from microtron.sim.functional.flow import Flow
from microtron.sim.functional.order import STRATEGIES, Adversarial, ProgramOrder
from microtron.sim.functional.simulator import Functional

L, G, A, S = Engines.LOAD, Engines.GEMM, Engines.ALU, Engines.STORE
NONE = Engines(0)
STEPS = 6
BARRIER = Sync(action=SyncAction.BARRIER)


def double_buffered():
    """Products of rows of `x` with the weights, two buffers of everything, all engines busy.

    Step i uses half i % 2 of inp, acc and out. An engine that fills a half waits until the one
    that empties it is done with step i - 2.
    """
    code = [Load(buffer=Buffer.UOP, shape=(1, 1, 2)), Load(buffer=Buffer.WGT, offset=16)]
    for step in range(STEPS):
        half = step % 2
        again = L | G | A | S if step >= 2 else NONE
        reused = L | G | A | S if step + 2 < STEPS else NONE
        code += [
            Load(buffer=Buffer.INP, segment=1, offset=4 * step, sram=half, wait=again & G, post=G),
            Gemm(flags=GemmFlags.START, uop=half, wait=L | again & A, post=A | reused & L),
            AluI(dst=half, src=half, target=Buffer.OUT, immediate=step, wait=G | again & S,
                 post=S | reused & G),
            Store(segment=2, sram=half, offset=4 * step, wait=A, post=reused & A)]
    return [*code, Sync()]


def program(code, config=tiny):
    uops = encode_micro_ops([MicroOp(), MicroOp(dst=1, src=1)]).tobytes()
    rng = np.random.default_rng(0)
    small = rng.integers(-3, 4, (2, 4 * STEPS), np.int8)     # no result is lost to saturation
    constants = np.frombuffer(uops + small[0, :16].tobytes(), np.uint8)
    return Program(config, encode(code), (
        Segment("constants", len(constants), Access.READ, constants),
        Segment("x", 4 * STEPS, Access.READ, small[1].view(np.uint8)),
        Segment("y", 4 * STEPS, Access.WRITE)))


def result(code, order):
    machine = Functional(program(code))
    machine.run(order)
    return machine.memory.read("y", 0, 4 * STEPS).tobytes()


def without_token(code, at, giver):
    """The program without one wait and without the post that it took its token from."""
    taker = Engines(1 << code[at].engine)
    waits = [position for position, each in enumerate(code)
             if each.engine == code[at].engine and each.wait & 1 << giver]
    posts = [position for position, each in enumerate(code)
             if each.engine == giver and each.post & taker]
    source = posts[waits.index(at)]
    changed = list(code)
    changed[at] = replace(code[at], wait=code[at].wait & ~Engines(1 << giver))
    changed[source] = replace(changed[source], post=changed[source].post & ~taker)
    return changed


TOKENS = [(at, giver) for at, each in enumerate(double_buffered()) for giver in Engine
          if each.wait & 1 << giver]


def test_a_correct_program_has_one_result_in_all_orders():
    expected = result(double_buffered(), ProgramOrder())
    assert any(expected)
    for seed in range(200):
        assert result(double_buffered(), Adversarial(seed)) == expected, f"seed {seed}"


@pytest.mark.parametrize(("at", "giver"), TOKENS)
def test_without_any_one_of_its_tokens_some_order_changes_the_result(at, giver):
    code = without_token(double_buffered(), at, giver)
    expected = result(double_buffered(), ProgramOrder())
    assert result(code, ProgramOrder()) == expected
    assert any(result(code, Adversarial(seed)) != expected for seed in range(50))


class Recorder:
    """A machine that does nothing but write down what it is asked to do."""

    def __init__(self):
        self.events = []

    def execute(self, position):
        self.events += [("begin", position), ("end", position)]

    def begin(self, position):
        self.events.append(("begin", position))
        return lambda: self.events.append(("end", position))


def events(code, seed):
    recorder = Recorder()
    Adversarial(seed).drive(Flow(code, tiny), recorder)
    return recorder.events


def test_an_order_is_reproducible_from_its_seed_and_seeds_differ():
    code = double_buffered()
    orders = [events(code, seed) for seed in range(20)]
    assert orders == [events(code, seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) > 15


@pytest.mark.parametrize("seed", range(20))
def test_engines_keep_their_own_order_and_one_instruction_at_a_time(seed):
    code = double_buffered()
    seen = events(code, seed)
    for engine in Engine:
        own = [event for event in seen if code[event[1]].engine == engine]
        assert own == [(what, position) for position, each in enumerate(code)
                       if each.engine == engine for what in ("begin", "end")]


@pytest.mark.parametrize("seed", range(20))
def test_a_barrier_separates_what_is_before_it_from_what_is_behind(seed):
    code = [BARRIER, Load(), Gemm(), AluI(), BARRIER, BARRIER, Store(), Load(), BARRIER, Gemm(),
            Sync()]
    seen = [position for _, position in events(code, seed)]
    assert sorted(seen[:6]) == [1, 1, 2, 2, 3, 3]
    assert sorted(seen[6:10]) == [6, 6, 7, 7]
    assert seen[10:] == [9, 9]


def test_consecutive_seeds_use_every_strategy_in_one_step_and_in_two():
    interleaved = [any(first[0] == second[0] for first, second in pairwise(seen))
                   for seen in (events(double_buffered(), seed) for seed in range(100))]
    for strategy in range(len(STRATEGIES)):
        ones = [interleaved[seed] for seed in range(strategy, 100, len(STRATEGIES))]
        assert not any(ones[::2])
        assert any(ones[1::2])


@pytest.mark.parametrize(("strategy", "expected"), [
    (1, "the victim's instructions come after everything that needs no token from it"),
    (2, "the favourite's instructions come before everything else")])
def test_one_engine_is_starved_or_hurried(strategy, expected):
    code = [each for _ in range(5) for each in (Load(), Gemm(), AluI(), Store())] + [Sync()]
    for seed in range(strategy, 50, len(STRATEGIES)):
        seen = [code[position].engine for what, position in events(code, seed) if what == "begin"]
        edge = seen[-5:] if strategy == 1 else seen[:5]
        assert len(set(edge)) == 1, expected


def test_in_two_steps_an_instruction_reads_when_it_starts_and_writes_when_it_ends():
    code = [AluI(op=AluOp.MOVE, immediate=1), AluI(op=AluOp.MOVE, immediate=2),
            Store(buffer=Buffer.ACC, segment=2), Sync()]
    machine = Functional(program(code))
    machine.execute(0)
    later = machine.begin(2)                    # the store has read 1 ...
    fill = machine.begin(1)
    assert (machine.scratchpads.acc[0] == 1).all()
    fill()
    assert (machine.scratchpads.acc[0] == 2).all()
    assert not machine.memory.read("y", 0, 16).any()
    later()
    assert machine.memory.read("y", 0, 16).view("<i4").tolist() == [1] * 4     # ... and writes it


def test_in_two_steps_a_load_brings_what_memory_held_when_it_started():
    machine = Functional(program([Load(segment=1), Sync()]))
    expected = machine.memory.read("x", 0, 4).view(np.int8)
    arrive = machine.begin(0)
    machine.memory.write("x", 0, bytes([99] * 4))
    arrive()
    assert (machine.scratchpads.inp[0] == expected).all()


def test_in_two_steps_only_what_was_written_comes_back():
    # Both begin on the same accumulator; neither may undo the other's tile.
    code = [AluI(op=AluOp.MOVE, dst=3, immediate=5),
            Gemm(flags=GemmFlags.START, loops=(1, 1, 2), dst_stride=(0, 0, 4)), Sync()]
    machine = Functional(program(code))
    machine.scratchpads.acc[:8] = 7
    alui, gemm = machine.begin(0), machine.begin(1)
    alui()
    gemm()
    assert machine.scratchpads.acc[:8, 0, 0].tolist() == [0, 7, 7, 5, 0, 7, 7, 7]


def failure(code, order, config=tiny):
    with pytest.raises(ExecutionError) as caught:
        Functional(program(code, config)).run(order)
    return str(caught.value)


@pytest.mark.parametrize("seed", range(10))
def test_a_deadlock_says_where_each_engine_waits_for_what_and_which_tokens_there_are(seed):
    code = [Load(post=A | G), Load(wait=G | S), Gemm(wait=L), Gemm(wait=A, post=L), AluI(wait=L),
            AluI(wait=S, post=G), BARRIER, Store(), Sync()]
    assert failure(code, Adversarial(seed)) == (
        "deadlock: load waits at instruction 1 (load.inp) for a token from gemm and from store; "
        "gemm waits at instruction 3 (gemm) for a token from alu; "
        "alu waits at instruction 5 (alui.add) for a token from store; "
        "store waits at instruction 7 (store.out) for instruction 6 (sync); tokens: none")


def test_a_deadlock_lists_the_tokens_that_nobody_takes():
    code = [Load(post=A | S), Load(post=A), Gemm(wait=S), Sync()]
    for order in (Adversarial(0), ProgramOrder()):
        assert failure(code, order).endswith(
            "gemm waits at instruction 2 (gemm) for a token from store; "
            "tokens: load → alu 2, load → store 1")


def test_in_program_order_a_wait_must_find_its_token():
    code = [Gemm(wait=L), Load(post=G), Sync()]
    Functional(program(code)).run(Adversarial(0))
    assert failure(code, ProgramOrder()) == (
        "deadlock in program order at instruction 0: load may start instruction 1 (load.inp); "
        "gemm waits at instruction 0 (gemm) for a token from load; tokens: none")


@pytest.mark.parametrize("order", [ProgramOrder(), Adversarial(0), Adversarial(6)])
def test_a_counter_that_overflows_is_named(order):
    config = Config(token_bits=2, block_in=4, block_out=4)
    code = [Load(post=S)] * 4
    assert failure([*code, Sync()], order, config) == (
        "instruction 3 (load.inp): post makes 4 tokens in load → store, but a counter holds 3")
    counts = Functional(program([*code[:3], Sync()], config)).run(order)
    assert counts.most_tokens == {"load → store": 3}


def test_counters_of_different_pairs_are_apart():
    code = [Load(post=G | A | S), Gemm(wait=L, post=A), AluI(wait=L | G, post=S),
            Store(segment=2, wait=L | A), Sync()]
    counts = Functional(program(code)).run()
    assert counts.most_tokens == {"load → gemm": 1, "load → alu": 1, "load → store": 1,
                                  "gemm → alu": 1, "alu → store": 1}
