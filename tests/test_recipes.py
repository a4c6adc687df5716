"""What docs/recipes.md relies on: lists that are kept by hand have an entry for everything.

Most lists are derived, or refuse what is missing where they are made. These would go on in silence:
an instruction that no random program has, a setting that the simulator never hears of.
"""

from __future__ import annotations

import dataclasses
import random
import re
from pathlib import Path

import numpy as np
import pytest

from microtron.compiler.operators.catalogue import OPERATORS
from microtron.isa.config import Config, tiny
from microtron.isa.generator import random_program
from microtron.isa.instructions import ISA, Alu, AluI, AluOp, Engine, Sync
from microtron.isa.program import Program
from microtron.isa.stream import decode, encode
from microtron.isa.timing import MemoryTiming
from microtron.runtime.campaign import random_config, random_timing
from microtron.sim.counts import count
from microtron.sim.limit import work_of
from microtron.sim.twins.top import TIMING, timing_of

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = [field.name for field in dataclasses.fields(MemoryTiming)]
ON_ENGINES = [kind for kind in ISA if kind.engine is not None]
LOOPS = (2, 3, 4)
WINDOWS = dataclasses.replace(tiny, window_taps=3)


def mnemonic(kind):
    return kind.mnemonic()


@pytest.fixture(scope="module")
def generated():
    """Instructions of random programs."""
    return [instruction for seed in range(12)
            for instruction in decode(random_program(WINDOWS, seed, length=60).code)]


@pytest.mark.parametrize("kind", ISA, ids=mnemonic)
def test_random_programs_have_every_instruction(generated, kind):
    assert any(type(each) is kind for each in generated)


@pytest.mark.parametrize("kind", [Alu, AluI], ids=mnemonic)
def test_random_programs_have_every_operation_of_the_alu(generated, kind):
    assert {each.op for each in generated if type(each) is kind} == set(AluOp)


@pytest.mark.parametrize("kind", [each for each in ON_ENGINES if each.engine == Engine.ALU],
                         ids=mnemonic)
def test_vectors_of_every_instruction_of_the_alu_are_counted(kind):
    code = encode([kind(loops=LOOPS), Sync()])
    assert count(code, tiny, {}).alu_vectors == np.prod(LOOPS)


@pytest.mark.parametrize("kind", ON_ENGINES, ids=mnemonic)
def test_the_work_of_every_instruction_counts_towards_the_limit(kind):
    extents = {"loops": LOOPS} if hasattr(kind(), "loops") else {"shape": LOOPS}
    program = Program(tiny, encode([kind(**extents), Sync()]))
    assert work_of(program).tolist() == [np.prod(LOOPS), 0]


def different(name: str) -> MemoryTiming:
    """A memory in which one setting is not what it is by default."""
    usual = getattr(MemoryTiming(), name)
    return MemoryTiming(**{name: not usual if isinstance(usual, bool) else usual + 1})


@pytest.mark.parametrize("name", SETTINGS)
def test_the_twin_of_memory_hears_of_every_setting(name):
    assert name in TIMING.names
    usual, other = (timing_of(each, 8, range(0)) for each in (MemoryTiming(), different(name)))
    assert usual[name] != other[name]


@pytest.mark.parametrize("file", ["runtime/harness/memory.cpp", "sim/twins/dram.py",
                                  "tests/runtime/memory_reference.py"])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_description_of_memory_uses_every_setting(file, name):
    text = (ROOT / file).read_text(encoding="utf-8")
    by_hash = name in ("stalls", "seed") and "stalled(self.timing" in text      # isa.timing's own
    assert by_hash or re.search(rf"\btiming\.{name}\b", text)


@pytest.mark.parametrize("name", SETTINGS)
def test_campaigns_vary_every_setting_of_memory(name):
    rng = random.Random(0)
    assert len({getattr(random_timing(rng), name) for _ in range(50)}) > 1


@pytest.mark.parametrize("name", [
    field.name for field in dataclasses.fields(Config)
    if field.name not in ("inp_bits", "acc_bits", "out_bits")])         # have one value
def test_campaigns_vary_every_field_of_a_configuration(name):
    assert len({getattr(random_config(seed), name) for seed in range(50)}) > 1


@pytest.mark.parametrize("description", OPERATORS, ids=lambda each: each.operator)
def test_shapes_of_every_operator_are_tried_on_every_device(description):
    text = (ROOT / "tests" / "compiler" / "operators" / "shapes.py").read_text(encoding="utf-8")
    assert re.search(rf"\b{description.__name__}\b", text)
