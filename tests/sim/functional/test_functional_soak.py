"""Long campaigns on random programs; `make soak SOAK_PROGRAMS=100000` says how long."""

import os

import pytest

from microtron.isa.verification.verifier import inspect
from microtron.sim.functional.order import Adversarial
from microtron.sim.functional.simulator import Functional
from microtron.testing.random_programs import random_program

from .support import CONFIGS

PARTS = 20          # so that processes share the work and progress shows
PROGRAMS = int(os.environ.get("SOAK_PROGRAMS", "1000"))
FIRST_SEED = 1 << 40            # apart from the seeds of the ordinary tests
ORDERS = 10


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_are_vouched_for_and_have_one_result(part):
    names = sorted(CONFIGS)
    for number in range(part, PROGRAMS, PARTS):
        program = random_program(CONFIGS[names[number % len(names)]], FIRST_SEED + number)
        assert inspect(program).findings == (), number
        expected = Functional(program)
        expected.run()
        for order in range(ORDERS * number, ORDERS * (number + 1)):
            machine = Functional(program)
            machine.run(Adversarial(order))
            for ours, first in zip(machine.memory.segments, expected.memory.segments, strict=True):
                assert (ours == first).all(), f"program {number}, order {order}"
