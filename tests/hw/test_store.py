"""STORE with its writer against the functional simulator, on a rude bus."""

import random

import pytest

from microtron.isa.instructions import Buffer

from .transfers import CONFIGS, Machine, random_store

STORED = (Buffer.OUT, Buffer.ACC)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("seed", range(2))
def test_random_stores_leave_what_the_functional_simulator_leaves(name, seed):
    rng = random.Random(f"{name} {seed}")
    stores = [random_store(rng, CONFIGS[name], rng.choice(STORED)) for _ in range(25)]
    machine = Machine(CONFIGS[name], stores, seed, stall=(0.3, 0.0)[seed], beats_first=not seed).run()
    machine.assert_as_expected()
