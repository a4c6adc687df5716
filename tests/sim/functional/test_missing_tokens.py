"""The verifier against the adversary: on the same programs, neither may know better."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.base.errors import ExecutionError
from microtron.isa.verification.verifier import inspect
from microtron.sim.functional.order import Adversarial
from microtron.sim.functional.simulator import Functional
from microtron.testing.random_programs import random_program

from .support import CONFIGS

ORDERS = 50
SEEDS = st.integers(0, 1 << 32)
NAMES = st.sampled_from(sorted(CONFIGS))


def outcome(program, order=None):
    """All of memory after a run, or the complaint that ended it."""
    machine = Functional(program)
    try:
        machine.run(order)
    except ExecutionError as error:
        return str(error)
    return b"".join(segment.tobytes() for segment in machine.memory.segments)


@settings(max_examples=12)
@given(name=NAMES, seed=SEEDS)
def test_the_verifier_raises_no_alarm_and_every_order_agrees_on_valid_programs(name, seed):
    program = random_program(CONFIGS[name], seed, length=30)
    assert inspect(program).findings == ()
    expected = outcome(program)
    assert isinstance(expected, bytes)
    for order in range(ORDERS):
        assert outcome(program, Adversarial(order)) == expected, f"order {order}"


def without_one_token(program, choice):
    """The program with one token gone on both sides: a post and the wait it paired with."""
    masks = program.code["post"]
    posts = [(position, bit) for position in np.flatnonzero(masks).tolist()
             for bit in range(4) if masks[position] >> bit & 1]
    if not posts:
        return None
    instructions = Functional(program).instructions
    position, taker = posts[choice % len(posts)]
    giver = instructions[position].engine
    mine = [each for each, bit in posts if bit == taker and instructions[each].engine == giver]
    takers = [each for each, instruction in enumerate(instructions)
              if instruction.engine == taker and instruction.wait >> giver & 1]
    code = program.code.copy()
    code["post"][position] &= ~np.uint8(1 << taker)
    code["wait"][takers[mine.index(position)]] &= ~np.uint8(1 << giver)
    return replace(program, code=code)


def test_a_token_whose_absence_some_order_notices_is_missed_by_the_verifier():
    caught = {"harmful": 0, "alarms": 0}

    @settings(max_examples=40)
    @given(name=NAMES, seed=SEEDS, choice=st.integers(0, 1 << 16))
    def check(name, seed, choice):
        program = random_program(CONFIGS[name], seed, length=30)
        broken = without_one_token(program, choice)
        if broken is None:
            return
        expected = outcome(program)
        noticed = any(outcome(broken, Adversarial(order)) != expected for order in range(ORDERS))
        findings = inspect(broken).findings
        caught["harmful"] += noticed
        caught["alarms"] += bool(findings)
        assert findings or not noticed

    check()
    assert caught["harmful"] >= 5, "the adversary found too little to test anything"
    assert caught["alarms"] >= caught["harmful"]
