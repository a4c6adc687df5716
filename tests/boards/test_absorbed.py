"""Registers that move into multipliers and block RAMs: what a design computes stays the same."""

import copy
import json
import random

import pytest

from microtron.boards.absorbed import absorb, absorb_file

BITS = 3
CLOCK, ENABLE, OTHER_CLOCK = "clk", "en", "other"


class Netlist:
    """A module of inputs, registers, one block and outputs, as Yosys writes it, by numbers."""

    def __init__(self):
        self.cells, self.inputs, self.outputs, self.count = {}, {}, {}, 1
        self.clock, self.enable, self.other = (
            self.given(name, 1)[0] for name in (CLOCK, ENABLE, OTHER_CLOCK))

    def wires(self, number):
        self.count += number
        return list(range(self.count - number, self.count))

    def given(self, name, number=BITS):
        self.inputs[name] = self.wires(number)
        return self.inputs[name]

    def show(self, name, bits):
        self.outputs[name] = list(bits)

    def registered(self, bits, **changes):
        return [self.register(bit, **changes) for bit in bits]

    def register(self, bit, enable=None, clock=None, reset=None, first="RESET"):
        to, = self.wires(1)
        connections = {"CLK": [clock or self.clock], "DI": [bit], "Q": [to],
                       "LSR": ["0" if reset is None else reset]}
        if enable is not None:
            connections["CE"] = [enable]
        self.add("TRELLIS_FF", connections, ("Q",), {
            "CEMUX": "1 " if enable is None else "CE", "CLKMUX": "CLK", "LSRMUX": "LSR",
            "REGSET": first})
        return to

    def multiplier(self, left, right):
        product = self.wires(2 * BITS)
        ports = {f"{name}{number}": [bit] for name, bits in (("A", left), ("B", right),
                                                            ("P", product))
                 for number, bit in enumerate(bits)}
        self.add("MULT18X18D", ports, {port for port in ports if port[0] == "P"}, {})
        return product

    def memory(self, address):
        word = self.wires(BITS)
        ports = {**{f"ADB{number}": [bit] for number, bit in enumerate(address)},
                 **{f"DO{'BA'[number % 2]}{number}": [bit] for number, bit in enumerate(word)},
                 "CLKA": [self.clock], "CLKB": [self.clock], "CEB": [self.enable],
                 "OCEA": ["0"], "OCEB": ["1"]}
        self.add("DP16KD", ports, {port for port in ports if port.startswith("DO")},
                 {"REGMODE_A": "NOREG", "REGMODE_B": "NOREG"})
        return word

    def add(self, kind, connections, outputs, parameters):
        self.cells[f"cell_{len(self.cells)}"] = {
            "type": kind, "parameters": parameters, "connections": connections,
            "port_directions": {port: "output" if port in outputs else "input"
                                for port in connections}}

    def module(self):
        return {"cells": self.cells, "ports": {
            name: {"direction": direction, "bits": bits}
            for direction, ports in (("input", self.inputs), ("output", self.outputs))
            for name, bits in ports.items()}}


def simulated(module, stimuli):
    """The outputs in every cycle, the clock being `clk`; the other one stands still."""
    cells = module["cells"].values()
    clock, = module["ports"][CLOCK]["bits"]
    state = {id(cell): [0, 0, 0] for cell in cells}
    trace = []
    for stimulus in stimuli:
        value = {"0": 0, "1": 1, "x": 0}
        for name, port in module["ports"].items():
            if port["direction"] == "input":
                value |= {bit: stimulus[name] >> number & 1
                          for number, bit in enumerate(port["bits"])}

        def number(cell, prefix, value=value):
            return sum(value[bits[0]] << int(port[len(prefix):])
                       for port, bits in cell["connections"].items()
                       if port.startswith(prefix) and port[len(prefix):].isdigit())

        def drive(cell, prefixes, word, value=value):
            value |= {bits[0]: word >> int(port.lstrip("PDOABQ") or 0) & 1
                      for port, bits in cell["connections"].items()
                      if port.startswith(prefixes) and cell["port_directions"][port] == "output"}

        later = []
        for cell in cells:                          # what comes from a register
            kept = state[id(cell)]
            if cell["type"] == "TRELLIS_FF":
                drive(cell, ("Q",), kept[0])
            elif cell["type"] == "DP16KD":
                drive(cell, ("DO",), kept[cell["parameters"]["REGMODE_B"] == "OUTREG"])
            elif "REG_OUTPUT_CLK" in cell["parameters"]:
                drive(cell, ("P",), kept[0])
            else:
                later.append(cell)
        for cell in later:                          # and what comes through a block
            drive(cell, ("P",), number(cell, "A") * number(cell, "B"))
        trace.append({name: tuple(value[bit] for bit in port["bits"])
                      for name, port in module["ports"].items() if port["direction"] == "output"})
        following = {}
        for cell in cells:
            kept, wires = state[id(cell)], cell["connections"]
            if cell["type"] == "TRELLIS_FF":
                moves = wires["CLK"] == [clock] and value[wires.get("CE", ["1"])[0]]
                now = value[wires["DI"][0]] if moves else kept[0]
                following[id(cell)] = [0 if value[wires["LSR"][0]] else now]
            elif cell["type"] == "DP16KD":
                read = number(cell, "ADB") * 5 % 8 if value[wires["CEB"][0]] else kept[0]
                following[id(cell)] = [read, kept[0] if value[wires["OCEB"][0]] else kept[1]]
            else:
                now = number(cell, "A") * number(cell, "B")
                following[id(cell)] = [now if value[wires.get("CE0", ["1"])[0]] else kept[0]]
        state = following
    return trace


def stimuli(module, seed, cycles=40):
    rng = random.Random(seed)
    return [{name: rng.getrandbits(len(port["bits"])) for name, port in module["ports"].items()
             if port["direction"] == "input"} for _ in range(cycles)]


def moved(netlist, seed=0):
    """Registers that have moved; the outputs must not notice."""
    before = netlist.module()
    after = copy.deepcopy(before)
    found = absorb([after])
    inputs = stimuli(before, seed)
    assert simulated(before, inputs) == simulated(after, inputs)
    assert len(before["cells"]) - len(after["cells"]) == found.total()
    return found


def product(netlist, **changes):
    """Registers, a multiplier, and registers."""
    factors = [netlist.registered(netlist.given(name)) for name in ("left", "right")]
    return netlist.registered(netlist.multiplier(*factors), **changes)


@pytest.mark.parametrize("enabled", [False, True])
def test_the_register_behind_a_multiplier_moves_into_it_with_its_enable(enabled):
    netlist = Netlist()
    netlist.show("product", product(netlist, enable=netlist.enable if enabled else None))
    assert moved(netlist) == {"MULT18X18D": 2 * BITS}


@pytest.mark.parametrize("changes", [{"reset": 2}, {"first": "SET"}])
def test_a_product_in_a_register_of_another_kind_stays_outside(changes):
    netlist = Netlist()
    netlist.show("product", product(netlist, **changes))
    assert not moved(netlist).total()


def test_a_product_that_somebody_else_reads_stays_outside():
    netlist = Netlist()
    now = netlist.multiplier(*(netlist.registered(netlist.given(name))
                               for name in ("left", "right")))
    netlist.show("product", netlist.registered(now))
    netlist.show("now", now[:1])
    assert not moved(netlist).total()


def test_a_product_in_registers_of_two_clocks_stays_outside():
    netlist = Netlist()
    low, *high = netlist.multiplier(netlist.given("left"), netlist.given("right"))
    netlist.show("product", [netlist.register(low, clock=netlist.other), *netlist.registered(high)])
    assert not moved(netlist).total()


@pytest.mark.parametrize("enabled", [False, True])
def test_the_register_behind_a_block_ram_moves_into_it_with_its_enable(enabled):
    netlist = Netlist()
    word = netlist.memory(netlist.given("address"))
    netlist.show("word", netlist.registered(word, enable=netlist.enable if enabled else None))
    assert moved(netlist) == {"DP16KD": BITS}


def test_registers_with_different_enables_stay_outside():
    netlist = Netlist()
    first, *others = netlist.memory(netlist.given("address"))
    netlist.show("word", [netlist.register(first, enable=netlist.enable),
                          *netlist.registered(others)])
    assert not moved(netlist).total()


@pytest.mark.parametrize("seed", range(60))
def test_what_a_design_computes_stays_the_same(seed):
    """Products of words that were read, and of products, with registers of all kinds between."""
    rng, netlist = random.Random(seed), Netlist()
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
    moved(netlist, seed)


def test_a_file_is_rewritten_elsewhere(tmp_path):
    netlist = Netlist()
    netlist.show("product", product(netlist))
    source, to = tmp_path / "design.json", tmp_path / "absorbed.json"
    source.write_text(json.dumps({"modules": {"top": netlist.module()}}))
    before = source.read_text()
    assert absorb_file(source, to).total() == 2 * BITS
    assert source.read_text() == before
    cell, = (each for each in json.loads(to.read_text())["modules"]["top"]["cells"].values()
             if each["type"] == "MULT18X18D")
    assert cell["parameters"]["REG_OUTPUT_CLK"] == "CLK0"
    assert cell["connections"]["CLK0"] == netlist.inputs[CLOCK]
