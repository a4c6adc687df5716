"""Parts that only their vendors' tools place: Yosys counts what an accelerator takes of them."""

from __future__ import annotations

import json

import pytest

from microtron.boards.build import cell_count, tools
from microtron.boards.build.steps import Command, Step
from microtron.boards.facts.catalogue import find_board
from microtron.hw.targets import find_target
from microtron.hw.top import MODULE, verilog
from microtron.isa.config import Config

LEAST = Config(block_in=2, block_out=2, uop_bytes=1024, inp_bytes=512, wgt_bytes=512,
               acc_bytes=1024, out_bytes=512, acc_banks=1, queue_depth=2, token_bits=4,
               reads_in_flight=4, writes_in_flight=2, vector_cycles=2, out_readers=1)
ULTRASCALE = "synth_xilinx -family xcup -flatten -noiopad"
SYNTHESIS = {"kv260": ULTRASCALE, "zcu104": ULTRASCALE, "ultra96": ULTRASCALE,
             "de10_nano": "synth_intel_alm -family cyclonev -noiopad"}


@pytest.mark.soak
@pytest.mark.parametrize("name", SYNTHESIS)
def test_an_accelerator_becomes_cells_that_the_part_has(name, tmp_path, monkeypatch):
    """No latches, products in multipliers, all but small scratchpads in blocks of RAM, and room."""
    there = find_board(name)
    (tmp_path / f"{MODULE}.v").write_text(verilog(LEAST, find_target("xc7")))
    (tmp_path / "synthesis.ys").write_text(
        f"read_verilog {MODULE}.v\n{SYNTHESIS[name]} -top {MODULE}\ncheck -latchonly -assert\n"
        "tee -q -o cells.json stat -json\n")
    Step(name="synthesis", doing="synthesizing", inputs=(f"{MODULE}.v", "synthesis.ys"),
         outputs=("cells.json",), work=Command(tools.YOSYS, ("synthesis.ys",))).run(tmp_path, 1, 1)
    monkeypatch.chdir(tmp_path)
    cell_count.check_fit(there.flow, name, there.part.device, dict(there.part.resources))
    area = json.loads((tmp_path / "area.json").read_text())
    assert area["lut"] > 5_000
    assert area["register"] > 5_000         # on Cyclone V queues, too: Yosys has no RAM for them
    assert area["dsp"] >= 4
    assert area["bram"] >= 2
