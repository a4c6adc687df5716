"""Registers around Gowin's blocks move into them, if nobody sees the difference."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from microtron.boards.gowin.lut_sites import count_lut_sites
from microtron.boards.gowin.pack_into_blocks import RegisterPacker, pack_registers_in_file

ZERO, ONE, CLOCK, ENABLE = 2, 3, 4, 5


def cell(kind, parameters=(), outputs=(), **connections):
    return {"type": kind, "parameters": dict(parameters), "connections": {
        port: bits if isinstance(bits, list) else [bits] for port, bits in connections.items()},
        "port_directions": {port: "output" if port in outputs else "input"
                            for port in connections}}


def register(data, output, enable=None, kind=None):
    enabled = {} if enable is None else {"CE": enable}
    return cell(kind or ("DFF" if enable is None else "DFFE"), outputs=("Q",), CLK=CLOCK, D=data,
                Q=output, **enabled)


def module(**cells):
    return {"ports": {"out": {"bits": [99]}}, "cells": {
        "gnd": cell("GND", outputs=("G",), G=ZERO), "vcc": cell("VCC", outputs=("V",), V=ONE),
        **cells}}


def multiplier(a=10, b=11, product=20):
    """Of two bits each way, as far as this pass is concerned."""
    return cell("MULT9X9", outputs=("DOUT",), A=[a, ZERO], B=[b, b], DOUT=[product, product + 1],
                CE=ZERO, CLK=ZERO, RESET=ZERO)


def memory(mode="0", width=36, reset=ZERO, words=(20, 21)):
    return cell("SDPX9B", {"READ_MODE": mode, "BIT_WIDTH_1": f"{width:032b}"}, ("DO",),
                DO=list(words), OCE=ONE, CLKB=CLOCK, RESETB=reset)


def pack(design):
    return RegisterPacker(design).run(), design["cells"]


def test_a_multiplier_takes_two_stages_behind_it_and_one_before_a_factor():
    design = module(
        product=multiplier(), early=register(9, 8), factor=register(8, 11),
        first=register(20, 30), upper=register(21, 31),
        second=register(30, 40), second_upper=register(31, 41),
        sum=cell("LUT2", outputs=("F",), I0=40, I1=41, F=99))
    before = count_lut_sites(design)
    gone, cells = pack(design)
    assert gone == Counter({"MULT9X9": 5})
    assert {name for name in cells if name not in ("gnd", "vcc")} == {"product", "early", "sum"}
    assert cells["product"]["parameters"] == {"OUT_REG": "1", "PIPE_REG": "1", "BREG": "1"}
    wires = cells["product"]["connections"]
    assert (wires["DOUT"], wires["B"], wires["A"]) == ([40, 41], [8, 8], [10, ZERO])
    assert (wires["CLK"], wires["CE"], wires["RESET"]) == ([CLOCK], [ONE], [ZERO])
    assert count_lut_sites(design) == before - 5


def test_a_register_with_logic_before_it_stays_there():
    design = module(product=multiplier(), logic=cell("LUT2", outputs=("F",), I0=6, I1=7, F=8),
                    factor=register(8, 11), out=register(20, 30), upper=register(21, 31))
    gone, cells = pack(design)
    assert gone == Counter({"MULT9X9": 2})
    assert cells["product"]["parameters"] == {"OUT_REG": "1"}
    assert cells["factor"]["connections"]["Q"] == cells["product"]["connections"]["B"][:1]


def test_one_factor_of_two_multipliers_moves_into_both():
    design = module(product=multiplier(), other=multiplier(a=12, product=22),
                    early=register(9, 8), factor=register(8, 11))
    gone, cells = pack(design)
    assert sum(gone.values()) == 1
    for name in ("product", "other"):
        assert cells[name]["connections"]["B"] == [8, 8]
        assert cells[name]["parameters"] == {"BREG": "1"}


def test_a_memory_takes_the_registers_behind_it_with_their_enable():
    gone, cells = pack(module(memory=memory(), low=register(20, 30, ENABLE),
                              high=register(21, 31, ENABLE)))
    assert gone == Counter({"SDPX9B": 2})
    assert cells["memory"]["parameters"]["READ_MODE"] == "1"
    assert cells["memory"]["connections"]["DO"] == [30, 31]
    assert cells["memory"]["connections"]["OCE"] == [ENABLE]


SEEN = {"sees": cell("LUT2", outputs=("F",), I0=21, I1=6, F=99)}
HIGH = {"high": register(21, 31, ENABLE)}


@pytest.mark.parametrize(("block", "others"), [
    (memory(), HIGH | SEEN),                                    # read without a register, too
    (memory(), {"high": register(21, 31)}),                     # another enable
    (memory(), {"high": register(21, 31, ENABLE, "DFFRE")}),    # reset
    (memory(), HIGH | {"again": register(21, 32, ENABLE)}),     # two registers
    (memory(mode="1"), HIGH),                                   # its register is taken
    (memory(width=18), HIGH),                                   # a width where it does not work
    (memory(reset=7), HIGH),
    (memory(words=(20, 99)), {}),                               # goes to a pin
    (multiplier(), {"high": register(21, 31)}),                 # another enable
])
def test_what_would_behave_differently_stays(block, others):
    design = module(block=block, low=register(20, 30, ENABLE), **others)
    before = json.dumps(design)
    gone, _ = pack(design)
    assert not gone
    assert json.dumps(design) == before


def test_a_factor_that_others_see_stays():
    design = module(product=multiplier(), early=register(9, 8), factor=register(8, 11),
                    sees=cell("LUT2", outputs=("F",), I0=11, I1=6, F=99))
    assert not pack(design)[0]


def test_stages_with_different_enables_are_not_in_one_multiplier():
    design = module(product=multiplier(), early=register(9, 8), factor=register(8, 11),
                    out=register(20, 30, ENABLE), upper=register(21, 31, ENABLE))
    gone, cells = pack(design)
    assert gone == Counter({"MULT9X9": 2})
    assert cells["product"]["connections"]["CE"] == [ENABLE]
    assert "factor" in cells


def test_the_step_of_a_build_packs_one_module_of_a_file(tmp_path):
    design = {"modules": {"soc": module(memory=memory(), low=register(20, 30),
                                        high=register(21, 31))}}
    (tmp_path / "in.json").write_text(json.dumps(design))
    pack_registers_in_file(str(tmp_path / "in.json"), str(tmp_path / "out.json"), "soc")
    packed = json.loads((tmp_path / "out.json").read_text())
    assert list(packed["modules"]["soc"]["cells"]) == ["gnd", "vcc", "memory"]
