"""Where multipliers and block RAMs of ECP5 designs go."""

import random
from itertools import pairwise

import pytest

from microtron.boards.ecp5 import place_blocks as blocks
from microtron.boards.ecp5.dies import DIES
from microtron.boards.ecp5.place_blocks import MOST, place_blocks

from .small_netlists import BITS, Design


@pytest.fixture
def one_start(monkeypatch):
    monkeypatch.setattr(blocks, "STARTS", 1)


def chains(number, length, seed=0):
    """Blocks in rows, each of which feeds the next one of its row; in no order."""
    design, rng = Design(), random.Random(seed)
    words = [design.given(f"word_{row}") for row in range(number)]
    rows = [[] for _ in range(number)]
    for row in rng.sample([*range(number)] * length, number * length):
        last = len(rows[row]) % 2
        words[row] = (design.memory(words[row]) if last
                      else design.multiplier(words[row], words[row])[:BITS])
        rows[row].append(list(design.cells)[-1])
    for row, word in enumerate(words):
        design.show(f"end_{row}", word)
    return design, rows


def places(design, die):
    sites = {site.name: site for kind in ("MULT18X18D", "DP16KD") for site in die.sites(kind)}
    return {name: sites[cell["attributes"]["BEL"]] for name, cell in design.cells.items()
            if "attributes" in cell}


def way(left, right):
    return abs(left.column - right.column) + abs(left.row - right.row)


@pytest.mark.parametrize("name", ["25", *(pytest.param(name, marks=pytest.mark.soak)
                                          for name in ("12", "45", "85"))])
def test_every_block_of_a_full_part_has_a_place_of_its_type_for_itself(name):
    die = DIES[name]
    multipliers = die.sites("MULT18X18D")
    design, _ = chains(len(multipliers), 2)
    assert place_blocks(design.module(), die) == 2 * len(multipliers)
    found = places(design, die)
    assert len({site.name for site in found.values()}) == len(found) == 2 * len(multipliers)
    for cell, site in found.items():
        assert site in die.sites(design.cells[cell]["type"])
    assert {site.name for site in multipliers} < {site.name for site in found.values()}


def test_what_is_connected_is_close(one_start):
    die = DIES["25"]
    design, rows = chains(12, 4)
    place_blocks(design.module(), die)
    found = places(design, die)
    together = [way(found[left], found[right]) for row in rows for left, right in pairwise(row)]
    rows_apart = 12
    assert sum(together) / len(together) < rows_apart + 2


@pytest.mark.parametrize("number", [0, int(28 * MOST) - 1, 29])
def test_nextpnr_places_the_blocks_of_a_design_that_is_much_smaller_or_too_large(number):
    design, _ = chains(number, 1)
    assert place_blocks(design.module(), DIES["25"]) == 0
    assert not places(design, DIES["25"])


def test_the_same_design_gets_the_same_places(one_start):
    first, second = (chains(int(28 * MOST), 2, 1)[0] for _ in range(2))
    for each in (first, second):
        assert place_blocks(each.module(), DIES["25"]) == len(each.cells)
    assert first.cells == second.cells
