"""A unit of the accelerator goes all the way to a bitstream for Gowin, which is read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from microtron.boards.build.bare import to_rtlil
from microtron.boards.build.bare_design import bare_design
from microtron.boards.build.constraints import format_cst
from microtron.boards.build.steps import Step, Write
from microtron.boards.build.synthesis import Design
from microtron.boards.facts.board import Memory, Wire
from microtron.boards.facts.catalogue import find_board
from microtron.boards.facts.errors import BoardError
from microtron.boards.gowin import gowin_flow
from microtron.boards.gowin.gowin_bitstream import read_bitstream
from microtron.hw.gemm.mac import MacRow
from microtron.isa.config import tiny

PLACES = {"clk": "4", "rst": "88", "data_in": "87", "load": "15", "data_out": "16"}


def test_a_row_of_multipliers_becomes_a_bitstream(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    tang = find_board("tang_nano_20k")
    wires = {name: Wire((place,), "LVCMOS33", ()) for name, place in PLACES.items()}
    texts = {"top.il": to_rtlil(MacRow(tiny)), "pins.cst": format_cst(wires)}
    design = Design((Step(name="gateware", doing="writing", outputs=tuple(texts),
                          work=Write(texts)),),
                    "read_rtlil top.il\nmemory_nordff", ("top.il",), "top", "pins.cst")
    steps = gowin_flow.plan_back_end(tang, design).steps
    for number, step in enumerate(steps, 1):
        step.run(tmp_path, number, len(steps))
    content = read_bitstream((tmp_path / "tang_nano_20k.fs").read_bytes())
    assert content.idcode == tang.part.idcode == 0x81B
    assert content.frames > 1000
    assert content.set_bits > 1000


def test_the_bare_accelerator_needs_a_place_for_every_port():
    memory = Memory(kind="none", bytes=0, chip="", rate="1:1", timing=None)
    bare = replace(find_board("tang_nano_20k"), memory=memory)
    with pytest.raises(BoardError, match="tang_nano_20k: pins: bare: rst is missing"):
        gowin_flow.plan(bare, tiny)
    wires = {name: Wire((place,), "LVCMOS33", ()) for name, place in PLACES.items()}
    whole = replace(bare, pins={"bare": wires})
    assert 'IO_LOC "data_out" 16;' in str(bare_design(whole, tiny, "pins.cst",
                                                      format_cst).steps)
    wrong = replace(bare, pins={"bare": {"data": wires["clk"]}})
    with pytest.raises(BoardError, match="there is no port 'data'; there are clk, rst, data_in"):
        gowin_flow.plan(wrong, tiny)


def test_a_part_of_another_kind_is_refused():
    ulx3s = find_board("ulx3s")
    with pytest.raises(BoardError, match=r"but must be as GW2AR-LV18QN88C8/I7$"):
        gowin_flow.die_name(ulx3s)
    assert gowin_flow.die_name(find_board("tang_nano_20k")) == "GW2A-18C"
