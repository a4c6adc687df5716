"""Registers of ECP5 designs that many multipliers read, and the step that arranges designs."""

import copy
import json
import random
from collections import Counter

import pytest

from microtron.boards.ecp5.dies import DIES
from microtron.boards.ecp5.netlist_passes import COPIES, PLACES, run_passes, run_passes_on_file
from microtron.boards.ecp5.replicate_registers import COPY, MANY

from .small_netlists import BITS, CLOCK, Design, simulate, stimuli


def share(design, multipliers, **changes):
    """Products of one word with many others, and a LUT beside each multiplier."""
    word = design.registered(design.given("word"), **changes)
    for number in range(multipliers):
        other = design.registered(design.given(f"other_{number}"))
        design.show(f"product_{number}", design.multiplier(word, other))
        design.show(f"parity_{number}", [design.lut(word[0], word[1], other[0])])
    return word


def pass_result(design, seed=0):
    """What the passes report, and the module after them, whose outputs must be the same."""
    before = design.module()
    after = copy.deepcopy(before)
    found = run_passes([after], DIES["25"])
    inputs = stimuli(before, seed)
    assert simulate(before, inputs) == simulate(after, inputs)
    return found, after


def readers(module, name):
    """The types of the cells that read a register."""
    bit, = module["cells"][name]["connections"]["Q"]
    return sorted(cell["type"] for cell in module["cells"].values()
                  for port, bits in cell["connections"].items()
                  if bits == [bit] and cell["port_directions"][port] == "input")


@pytest.mark.parametrize("changes", [{}, {"enable": 2}, {"reset": 2}, {"first": "SET"}])
def test_each_multiplier_of_many_readers_gets_its_own_register_and_logic_follows(changes):
    design = Design()
    word = share(design, MANY, **changes)
    kinds = {name: cell["parameters"] for name, cell in design.cells.items()
             if cell["connections"].get("Q") in ([bit] for bit in word)}
    found, module = pass_result(design)
    assert found == Counter({COPIES: MANY * BITS})
    copies = [name for name in module["cells"] if COPY in name]
    assert len(copies) == MANY * BITS
    assert sorted(map(tuple, (readers(module, name) for name in copies))) == sorted(
        [("LUT4", "MULT18X18D")] * 2 * MANY + [("MULT18X18D",)] * MANY)
    for name in copies:
        assert module["cells"][name]["parameters"] == kinds[name.partition(COPY)[0]]
    assert not set(kinds) & set(module["cells"]), "nobody reads what was copied any more"


@pytest.mark.parametrize(("multipliers", "luts"), [(MANY - 1, 0), (2, MANY)])
def test_a_register_that_few_multipliers_read_is_not_copied(multipliers, luts):
    """VexRiscv's operands go to its few multipliers and to much else."""
    design = Design()
    word = share(design, multipliers)
    for number in range(luts):
        design.show(f"more_{number}", [design.lut(*word)])
    cells = set(design.cells)
    found, module = pass_result(design)
    assert not found.total()
    assert set(module["cells"]) == cells


def test_what_is_no_neighbour_of_one_multiplier_reads_the_old_register():
    design = Design()
    word = share(design, MANY)
    design.show("shown", word[:1])
    design.show("other", [design.lut(*word)])
    old, = (name for name, cell in design.cells.items() if cell["connections"].get("Q") == word[2:])
    _, module = pass_result(design)
    assert readers(module, old) == ["LUT4"]


@pytest.mark.parametrize("seed", range(20))
def test_what_a_design_computes_stays_the_same(seed):
    """Words that many multipliers read, in all sorts of registers, with products in others."""
    rng, design = random.Random(seed), Design()
    kinds = ({}, {"enable": design.enable}, {"reset": design.enable})
    words = [design.registered(design.given(name), **rng.choice(kinds)) for name in "ab"]
    known = [*words, *(design.registered(design.given(name)) for name in "cdef")]
    for number in range(2 * MANY):
        operands = rng.choice(words), rng.choice(known)
        kind = rng.choice(kinds)
        design.show(f"product_{number}", design.registered(design.multiplier(*operands), **kind))
        design.show(f"parity_{number}", [
            design.lut(*(rng.choice(rng.choice(known)) for _ in range(rng.randint(1, 4))))])
    pass_result(design, seed)


def test_the_blocks_of_a_design_that_fills_a_part_get_places():
    design = Design()
    word = design.given("word")
    for number in range(len(DIES["25"].sites("MULT18X18D"))):
        design.show(f"product_{number}", design.multiplier(word, design.given(f"other_{number}")))
    found, module = pass_result(design)
    assert found[PLACES] == len({cell["attributes"]["BEL"] for cell in module["cells"].values()})


def test_a_file_is_rewritten_elsewhere(tmp_path):
    design = Design()
    factors = (design.registered(design.given(name)) for name in ("left", "right"))
    design.show("product", design.registered(design.multiplier(*factors)))
    source, to = tmp_path / "design.json", tmp_path / "prepared.json"
    source.write_text(json.dumps({"modules": {"top": design.module()}}))
    before = source.read_text()
    assert run_passes_on_file(source, to, "25") == Counter({"MULT18X18D": 2 * BITS})
    assert source.read_text() == before
    cell, = (each for each in json.loads(to.read_text())["modules"]["top"]["cells"].values()
             if each["type"] == "MULT18X18D")
    assert cell["parameters"]["REG_OUTPUT_CLK"] == "CLK0"
    assert cell["connections"]["CLK0"] == design.inputs[CLOCK]
