"""Whole random programs: the simulator against the reference, and every order against the first."""

import pytest

from microtron.sim.functional.order import Adversarial
from microtron.sim.functional.simulator import Functional
from microtron.testing.random_programs import random_program

from .reference import Reference
from .support import CONFIGS, assert_same


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("seed", range(3))
def test_a_program_leaves_scratchpads_and_memory_as_the_reference_does(name, seed):
    program = random_program(CONFIGS[name], seed, length=30)
    machine, reference = Functional(program), Reference(program.config, program.segments)
    machine.run()
    for instruction in machine.instructions:
        if instruction.engine is not None:
            reference.execute(instruction)
    assert_same(machine, reference)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_valid_program_has_one_result_in_all_orders(name):
    program = random_program(CONFIGS[name], 1000)
    expected = Functional(program)
    counts = expected.run()
    for seed in range(50):
        machine = Functional(program)
        again = machine.run(Adversarial(seed))
        assert again.tile_products == counts.tile_products
        for ours, first in zip(machine.memory.segments, expected.memory.segments, strict=True):
            assert (ours == first).all(), f"seed {seed}"
