"""Places that registers take from LUTs on Gowin."""

from __future__ import annotations

import json

import pytest

from microtron.boards.facts.errors import BoardError
from microtron.boards.gowin.lut_sites import check_fit, count_lut_sites

PLENTY = {"lut": 100, "register": 100, "dsp": 100, "bram": 100}


def cell(kind, output, *inputs):
    names = {"LUT": "F", "ALU": "SUM", "DFF": "Q", "RAM": "DO"}
    first = "D" if kind.startswith("DFF") else "I0"
    connections = {names[kind[:3]]: [output],
                   **{first if not number else f"I{number}": [bit]
                      for number, bit in enumerate(inputs)}}
    return {"type": kind, "connections": connections, "port_directions": {
        port: "output" if port in names.values() else "input" for port in connections}}


def module(*found):
    return {"cells": {f"cell_{number}": each for number, each in enumerate(found)}}


@pytest.mark.parametrize(("found", "taken"), [
    ((cell("LUT3", 1, 8), cell("DFFE", 2, 1)), 1),                          # behind its LUT
    ((cell("ALU", 1, 8), cell("DFF", 2, 1)), 1),
    ((cell("LUT3", 1, 8), cell("DFFE", 2, 1), cell("DFFE", 3, 1)), 2),      # a second one
    ((cell("LUT3", 1, 8), cell("LUT2", 4, 1), cell("DFFE", 2, 1)), 2),      # others read it, too
    ((cell("DFF", 1, 8), cell("DFFR", 2, 1)), 2),                           # from a register
    ((cell("RAM16SDP4", 1, 8), cell("DFF", 2, 1)), 9),
    ((cell("DFF", 2, "0"),), 1),
])
def test_a_register_takes_a_place_unless_logic_of_its_own_drives_it(found, taken):
    assert count_lut_sites(module(*found)) == taken


def test_the_step_refuses_what_only_seems_to_fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    delays = module(*(cell("DFF", number + 1, number) for number in range(6)))
    (tmp_path / "design.json").write_text(json.dumps({"modules": {"top": delays}}))
    (tmp_path / "cells.json").write_text(json.dumps({"design": {"num_cells_by_type": {"DFF": 6}}}))
    check_fit("design.json", "top", "a_board", "a part", PLENTY)
    assert json.loads((tmp_path / "area.json").read_text())["lut"] == 6
    with pytest.raises(BoardError, match=r"^a_board: the design does not fit: it takes 6 places of "
                                         "LUTs, with those of registers that other cells drive, "
                                         "but a part has 5$"):
        check_fit("design.json", "top", "a_board", "a part", {**PLENTY, "lut": 5})
