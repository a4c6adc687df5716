"""A system without a processor: a host has the bus, over the serial line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from microtron.boards.catalogue import board as board_of
from microtron.boards.processors import NONE
from microtron.boards.soc.simulate import SimulatedBoard
from microtron.boards.soc.steps import FACTS, gateware
from microtron.isa.config import tiny
from microtron.isa.errors import MicrotronError
from microtron.runtime.board.device import BoardDevice

from ...runtime.board.test_bridge_system import PLACE, SimulatedLink, program
from ...runtime.test_rtl import is_copied
from .test_simulate import LEAST

BOARD = replace(board_of("ulx3s"), cpu=NONE)
STARTED = 25_000            # cycles, by when memory works


def test_programs_run_as_soon_as_memory_is_started():
    line = SimulatedBoard(BOARD, LEAST)
    assert line.read(1, STARTED) == b""
    device = BoardDevice(LEAST, place=PLACE, link=SimulatedLink(line))
    for _ in range(2):
        device.load(program())
        device.run()
        assert is_copied(device, program())


def test_nothing_of_a_processor_is_left(tmp_path):
    *_, system = steps = gateware(BOARD, tiny)
    assert [step.name for step in steps] == ["accelerator", "system"]
    system.run(tmp_path, 1, 1)
    facts = json.loads((tmp_path / FACTS).read_text())
    assert set(facts["memories"]) == {"main_ram", "registers", "csr"}
    assert "VexRiscv" not in (tmp_path / "soc.v").read_text()


def test_memory_that_needs_a_processor_is_refused(tmp_path):
    *_, system = gateware(replace(board_of("ecpix5"), cpu=NONE), tiny)
    with pytest.raises(MicrotronError, match="ecpix5: memory is ddr3, which a processor has to "):
        system.run(tmp_path, 1, 1)
