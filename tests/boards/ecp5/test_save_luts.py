"""LUTs that go into carry chains or multiplexers of slices: the same logic with fewer of them."""

import copy
import random

import pytest

from microtron.boards.ecp5.editable_netlist import Netlist
from microtron.boards.ecp5.luts.absorb_luts import absorb_luts
from microtron.boards.ecp5.luts.merge_luts import merge_luts
from microtron.boards.ecp5.luts.save_luts import save_luts

from .small_netlists import Design

ADDER = f"{0x96AA:016b}"                # as Yosys has it: A + (B ^ C)


class Logic(Design):
    """A design of plain logic."""

    def lut_of(self, *bits, function):
        """A LUT4 for a function of a few bits."""
        to, = self.wires(1)
        pins = [*bits, *"0" * (4 - len(bits))]
        table = (int(function(*(row >> place & 1 for place in range(len(bits)))))
                 for row in range(16))
        self.add("LUT4", {**dict(zip("ABCD", ([bit] for bit in pins), strict=True)), "Z": [to]},
                 ("Z",), {"INIT": "".join(map(str, table))[::-1]})
        return to

    def choose(self, select, zero, one):
        to, = self.wires(1)
        self.add("PFUMX", {"C0": [select], "BLUT": [zero], "ALUT": [one], "Z": [to]}, ("Z",), {})
        return to

    def sums(self, pairs, inverts="0"):
        """A carry chain over an even number of pairs."""
        carry, found = "0", []
        for first, second in zip(pairs[::2], pairs[1::2], strict=True):
            low, high, above = self.wires(3)
            self.add("CCU2C", {
                **{f"{pin}{half}": [bit] for half, pair in enumerate((first, second))
                   for pin, bit in zip("ABCD", (*pair, inverts, "1"), strict=True)},
                "CIN": [carry], "S0": [low], "S1": [high], "COUT": [above]},
                ("S0", "S1", "COUT"),
                {"INIT0": ADDER, "INIT1": ADDER, "INJECT1_0": "NO", "INJECT1_1": "NO"})
            carry = above
            found += low, high
        return [*found, carry]

    def module(self):
        for cell in self.cells.values():
            cell.setdefault("attributes", {})
        return super().module()


def compute(module, values):
    """The outputs for the wires of all inputs."""
    known = {"0": 0, "1": 1, **values}
    drivers = {bits[0]: (cell, port) for cell in module["cells"].values()
               for port, bits in cell["connections"].items()
               if cell["port_directions"][port] == "output"}

    def at(bit):
        if bit not in known:
            cell, port = drivers[bit]
            known[bit] = COMPUTE[cell["type"]](
                cell["parameters"], lambda pin: at(cell["connections"][pin][0]), port)
        return known[bit]

    return [at(bit) for name, port in module["ports"].items() if port["direction"] == "output"
            for bit in port["bits"]]


def _row(init, at, pins):
    return int(init[-1 - sum(at(pin) << place for place, pin in enumerate(pins))])


def _carry(parameters, at, port):
    carry = at("CIN")
    for half in "01":
        init = parameters[f"INIT{half}"]
        propagates = _row(init, at, [f"{pin}{half}" for pin in "ABCD"])
        if port == f"S{half}":
            return propagates ^ carry
        carry = carry if propagates else _row(init, at, [f"{pin}{half}" for pin in "AB"])
    return carry


COMPUTE = {"LUT4": lambda parameters, at, port: _row(parameters["INIT"], at, "ABCD"),
           "PFUMX": lambda parameters, at, port: at("ALUT") if at("C0") else at("BLUT"),
           "CCU2C": _carry}


def count(module, kind="LUT4"):
    return sum(cell["type"] == kind for cell in module["cells"].values())


def result(design, work, seed=0):
    """The module after a pass, whose outputs must be the same for many inputs."""
    before = design.module()
    after = copy.deepcopy(before)
    fewer = work(Netlist(after))
    assert fewer == count(before) - count(after)
    rng = random.Random(seed)
    given = [bit for bits in design.inputs.values() for bit in bits]
    for _ in range(400):
        values = {bit: rng.getrandbits(1) for bit in given}
        assert compute(before, values) == compute(after, values)
    return after


def mux(select, zero, one):
    return one if select else zero


def four_to_one(design, words, low, high):
    """As Yosys makes it of ABC9's functions of five inputs."""
    third = design.lut_of(low, words[0], words[1], function=mux)
    zero = design.lut_of(low, high, words[2], words[3],
                         function=lambda low, high, a, b: mux(low, a, b) if high else 0)
    one = design.lut_of(low, high, words[2], words[3],
                        function=lambda low, high, a, b: mux(low, a, b) if high else 1)
    return design.choose(third, zero, one)


def test_a_4_to_1_multiplexer_takes_two_luts():
    design = Logic()
    words, selects = design.given("words", 4), design.given("selects", 2)
    design.show("chosen", [four_to_one(design, words, *selects)])
    module = result(design, merge_luts)
    assert (count(module), count(module, "PFUMX")) == (2, 1)


def test_a_lut_that_others_read_stays():
    design = Logic()
    words, selects = design.given("words", 4), design.given("selects", 2)
    chosen = four_to_one(design, words, *selects)
    third, = design.cells["cell_0"]["connections"]["Z"]
    design.show("both", [chosen, third])
    assert count(result(design, merge_luts)) == 3


def test_a_lut_behind_which_all_can_take_it_goes():
    design = Logic()
    words, selects = design.given("words", 4), design.given("selects", 2)
    shared = design.lut_of(selects[0], words[0], words[1], function=mux)
    chosen = []
    for other in words[2:]:
        halves = [design.lut_of(selects[1], words[0], words[1], other,
                                function=lambda high, a, b, c, low=low: mux(high, low, a ^ b & c))
                  for low in (0, 1)]
        chosen.append(design.choose(shared, *halves))
    design.show("chosen", chosen)
    assert count(result(design, merge_luts)) == 4


def test_operands_that_are_chosen_or_masked_go_into_the_carry_chain():
    design = Logic()
    left, right, controls = (design.given(name, 4) for name in ("left", "right", "controls"))
    takes, adds = controls[:2]
    pairs = [(design.lut_of(adds, takes, a, b, function=lambda adds, takes, a, b:
                            mux(takes and not adds, a, b)),
              design.lut_of(adds, b, function=lambda adds, b: adds and b))
             for a, b in zip(left, right, strict=True)]
    design.show("sum", design.sums(pairs))
    assert count(result(design, absorb_luts)) == 0


@pytest.mark.parametrize("inverts", "01")
def test_a_counter_that_is_loaded_instead_goes_into_the_carry_chain(inverts):
    design = Logic()
    now, limit, load = design.given("now", 6), design.given("limit", 6), design.given("load", 1)
    pairs = [(design.lut_of(*load, a, b, function=mux), "0") for a, b in
             zip(now, limit, strict=True)]
    design.show("next", design.sums(pairs, inverts))
    assert count(result(design, absorb_luts)) == 0


def test_of_two_operands_that_are_chosen_one_fits():
    design = Logic()
    words = [design.given(f"word_{number}", 2) for number in range(4)]
    selects = design.given("selects", 2)
    pairs = [(design.lut_of(selects[0], a, b, function=mux),
              design.lut_of(selects[1], c, d, function=mux))
             for a, b, c, d in zip(*words, strict=True)]
    design.show("sum", design.sums(pairs))
    assert count(result(design, absorb_luts)) == 2


@pytest.mark.parametrize("seed", range(40))
def test_random_logic_stays_the_same(seed):
    rng, design = random.Random(seed), Logic()
    wires = design.given("inputs", 7)

    def lut(pool, most):
        inputs = rng.sample(pool, rng.randint(1, most))
        table = [rng.getrandbits(1) for _ in range(16)]
        return design.lut_of(*inputs, function=lambda *bits: table[
            sum(bit << place for place, bit in enumerate(bits))])

    for _ in range(12):
        kind = rng.choice(("lut", "choice", "sum"))
        if kind == "lut":
            wires = [*wires, lut(wires, 3)]
        elif kind == "choice":
            some = rng.sample(wires, 4)
            wires = [*wires, design.choose(rng.choice(wires), lut(some, 4), lut(some, 4))]
        else:
            wires = [*wires, *design.sums([(lut(wires, 2), lut(wires, 2)) for _ in range(2)],
                                          rng.choice("01"))]
    design.show("outputs", wires[-5:])
    result(design, save_luts, seed)
