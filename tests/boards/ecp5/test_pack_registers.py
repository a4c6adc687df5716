"""Registers that move into multipliers and block RAMs: what a design computes stays the same."""

import copy
import random

import pytest

from microtron.boards.ecp5.editable_netlist import Netlist
from microtron.boards.ecp5.pack_registers import pack_registers

from .small_netlists import BITS, Design, simulate, stimuli


def move(netlist, seed=0):
    """Registers that have moved; the outputs must not notice."""
    before = netlist.module()
    after = copy.deepcopy(before)
    found = pack_registers(Netlist(after))
    inputs = stimuli(before, seed)
    assert simulate(before, inputs) == simulate(after, inputs)
    assert len(before["cells"]) - len(after["cells"]) == found.total()
    return found


def product(netlist, **changes):
    """Registers, a multiplier, and registers."""
    factors = [netlist.registered(netlist.given(name)) for name in ("left", "right")]
    return netlist.registered(netlist.multiplier(*factors), **changes)


@pytest.mark.parametrize("enabled", [False, True])
def test_the_register_behind_a_multiplier_moves_into_it_with_its_enable(enabled):
    netlist = Design()
    netlist.show("product", product(netlist, enable=netlist.enable if enabled else None))
    assert move(netlist) == {"MULT18X18D": 2 * BITS}


@pytest.mark.parametrize("changes", [
    {"first": "SET"}, {"reset": 3, "mode": "ASYNC"},
    {"reset": 3, "enable": 2},      # which of them wins in a multiplier?
    {"reset": 3, "first": "SET"}])
def test_a_product_in_a_register_of_another_kind_stays_outside(changes):
    netlist = Design()
    netlist.show("product", product(netlist, **changes))
    assert not move(netlist).total()


def test_what_clears_products_goes_into_their_multipliers_by_the_same_name_everywhere():
    netlist = Design()
    clears = [netlist.given(name, 1)[0] for name in ("first_clear", "second_clear")]
    for number, clear in enumerate((*clears, None, clears[0])):
        factors = [netlist.registered(netlist.given(f"{name}_{number}")) for name in "ab"]
        netlist.show(f"product_{number}",
                     netlist.registered(netlist.multiplier(*factors), reset=clear))
    module = netlist.module()
    assert move(netlist) == {"MULT18X18D": 4 * 2 * BITS}
    pack_registers(Netlist(module))
    found = [(cell["parameters"]["REG_OUTPUT_RST"],
              cell["connections"][cell["parameters"]["REG_OUTPUT_RST"]])
             for cell in module["cells"].values() if cell["type"] == "MULT18X18D"]
    assert found == [("RST1", [clears[0]]), ("RST2", [clears[1]]), ("RST0", ["0"]),
                     ("RST1", [clears[0]])]


def test_a_multiplier_has_no_more_than_four_wires_that_clear():
    netlist = Design()
    for number in range(4):
        clear, = netlist.given(f"clear_{number}", 1)
        netlist.show(f"product_{number}", netlist.registered(
            netlist.multiplier(netlist.given(f"a_{number}"), netlist.given(f"b_{number}")),
            reset=clear))
    # The wire that is left is for multipliers which are never cleared.
    assert move(netlist) == {"MULT18X18D": 3 * 2 * BITS}


def test_a_product_that_somebody_else_reads_stays_outside():
    netlist = Design()
    now = netlist.multiplier(*(netlist.registered(netlist.given(name))
                               for name in ("left", "right")))
    netlist.show("product", netlist.registered(now))
    netlist.show("now", now[:1])
    assert not move(netlist).total()


def test_a_product_in_registers_of_two_clocks_stays_outside():
    netlist = Design()
    low, *high = netlist.multiplier(netlist.given("left"), netlist.given("right"))
    netlist.show("product", [netlist.register(low, clock=netlist.other), *netlist.registered(high)])
    assert not move(netlist).total()


@pytest.mark.parametrize("enabled", [False, True])
def test_the_register_behind_a_block_ram_moves_into_it_with_its_enable(enabled):
    netlist = Design()
    word = netlist.memory(netlist.given("address"))
    netlist.show("word", netlist.registered(word, enable=netlist.enable if enabled else None))
    assert move(netlist) == {"DP16KD": BITS}


def test_registers_with_different_enables_stay_outside():
    netlist = Design()
    first, *others = netlist.memory(netlist.given("address"))
    netlist.show("word", [netlist.register(first, enable=netlist.enable),
                          *netlist.registered(others)])
    assert not move(netlist).total()


@pytest.mark.parametrize("seed", range(60))
def test_what_a_design_computes_stays_the_same(seed):
    """Products of words that were read, and of products, with registers of all kinds between."""
    rng, netlist = random.Random(seed), Design()
    known = [netlist.given(name) for name in ("first", "second", "third")]
    for number in range(8):
        word = rng.choice(known)[:BITS]
        kind = rng.choice(("register", "register", "multiplier", "memory"))
        if kind == "register":
            known.append(netlist.registered(word, **rng.choice((
                {}, {}, {}, {"enable": netlist.enable}, {"reset": netlist.enable}))))
        elif kind == "memory":
            known.append(netlist.registered(netlist.memory(netlist.registered(word))))
        else:
            factors = (netlist.registered(word), netlist.registered(rng.choice(known)[:BITS]))
            known.append(netlist.registered(netlist.multiplier(*factors)))
        if rng.random() < 0.4:
            netlist.show(f"shown_{number}", rng.choice(known))
    netlist.show("last", known[-1])
    move(netlist, seed)
