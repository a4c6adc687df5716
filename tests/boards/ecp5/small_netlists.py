"""Small designs as Yosys writes them for ECP5, and what they compute."""

import random

BITS = 3
CLOCK, ENABLE, OTHER_CLOCK = "clk", "en", "other"


class Design:
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

    def register(self, bit, enable=None, clock=None, reset=None, first="RESET",
                 mode="LSR_OVER_CE"):
        to, = self.wires(1)
        connections = {"CLK": [clock or self.clock], "DI": [bit], "Q": [to],
                       "LSR": ["0" if reset is None else reset]}
        if enable is not None:
            connections["CE"] = [enable]
        self.add("TRELLIS_FF", connections, ("Q",), {
            "CEMUX": "1 " if enable is None else "CE", "CLKMUX": "CLK", "LSRMUX": "LSR",
            "REGSET": first, **({} if reset is None else {"SRMODE": mode})})
        return to

    def lut(self, *bits):
        """The parity of a few bits."""
        to, = self.wires(1)
        self.add("LUT4", {**dict(zip("ABCD", ([bit] for bit in bits), strict=False)), "Z": [to]},
                 ("Z",), {})
        return to

    def multiplier(self, left, right):
        product = self.wires(2 * BITS)
        ports = {f"{name}{number}": [bit] for name, bits in (("A", left), ("B", right),
                                                            ("P", product))
                 for number, bit in enumerate(bits)}
        self.add("MULT18X18D", ports, {port for port in ports if port[0] == "P"}, {})
        return product

    def signed_multiplier(self, left, right, signed=("1", "1")):
        """As Yosys makes it: all bits of its ports, with copies of the sign."""
        product = self.wires(36)
        ports = {f"{name}{number}": [bits[min(number, len(bits) - 1)]]
                 for name, bits in (("A", left), ("B", right)) for number in range(18)}
        ports |= {"SIGNEDA": [signed[0]], "SIGNEDB": [signed[1]]}
        ports |= {f"P{number}": [bit] for number, bit in enumerate(product)}
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


def simulate(module, stimuli):
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

        def factor(cell, side, number=number):
            plain = number(cell, side)
            signed = cell["connections"].get(f"SIGNED{side}") == ["1"]
            return plain - (1 << 18) if signed and plain >> 17 else plain

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
        for cell in later:                          # and what comes through a block or a LUT
            if cell["type"] == "LUT4":
                parity = sum(value[bits[0]] for port, bits in cell["connections"].items()
                             if port != "Z") % 2
                value[cell["connections"]["Z"][0]] = parity
            else:
                drive(cell, ("P",), factor(cell, "A") * factor(cell, "B"))
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
            elif cell["type"] == "MULT18X18D":
                now = factor(cell, "A") * factor(cell, "B")
                moves = value[wires.get("CE0", ["1"])[0]]
                by = cell["parameters"].get("REG_OUTPUT_RST", "RST0")
                cleared = value[wires.get(by, ["0"])[0]]
                following[id(cell)] = [0 if cleared else now if moves else kept[0]]
            else:
                following[id(cell)] = kept
        state = following
    return trace


def stimuli(module, seed, cycles=40):
    rng = random.Random(seed)
    return [{name: rng.getrandbits(len(port["bits"])) for name, port in module["ports"].items()
             if port["direction"] == "input"} for _ in range(cycles)]
