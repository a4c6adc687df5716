"""What cells of a netlist take of a part."""

from __future__ import annotations

import pytest

from microtron.boards.build.cell_count import CELLS, WEIGHTS, count_cells

LUT_RAM = {          # what nextpnr or the vendor's slices take for one
    ("ecp5", "TRELLIS_DPR16X4"): (6, 0), ("gowin", "RAM16SDP4"): (8, 6), ("zynq", "RAM32M"): (4, 0)}


@pytest.mark.parametrize(("flow", "cell"), LUT_RAM)
def test_a_lut_ram_takes_all_that_nothing_else_can_have_beside_it(flow, cell):
    found = count_cells({cell: 2}, flow)
    assert (found["lut"], found["register"]) == tuple(2 * each for each in LUT_RAM[flow, cell])


def test_multipliers_and_blocks_of_ram_count_by_their_size():
    assert count_cells({"MULT9X9": 3, "MULT18X18": 2}, "gowin")["dsp"] == 7
    assert count_cells({"RAMB18E1": 3, "RAMB36E1": 2}, "zynq")["bram"] == 3.5


def test_every_weight_is_of_a_cell_that_is_counted():
    for kind, weights in WEIGHTS.items():
        for cell in weights:
            assert any(count_cells({cell: 1}, flow)[kind] == weights[cell] for flow in CELLS), cell
