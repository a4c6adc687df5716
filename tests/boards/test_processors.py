"""Soft processors by the names that boards' files have."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest

from microtron.boards.catalogue import board as board_of
from microtron.boards.facts import BoardError
from microtron.boards.firmware.monitor import monitor_bytes
from microtron.boards.processors import PROCESSORS, processor_of
from microtron.boards.soc.steps import FACTS, gateware
from microtron.isa.config import tiny

BOARD = board_of("ulx3s")
FORGET_DATA = struct.pack("<I", 0x500F)


def test_another_processor_is_refused_with_those_that_there_are():
    with pytest.raises(BoardError, match=r"ulx3s: cpu is '8051', but a soft one is VexRiscv or "):
        processor_of(replace(BOARD, cpu="8051"))


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_system_has_its_processor_and_firmware_that_this_one_understands(name, tmp_path):
    _, system, _ = gateware(replace(BOARD, cpu=name), tiny)
    system.run(tmp_path, 1, 1)
    facts, verilog = tmp_path / FACTS, (tmp_path / "VexRiscv.v").read_text()
    has_cache = PROCESSORS[name].data_cache
    assert ("module DataCache" in verilog) == has_cache
    code = monitor_bytes(json.loads(facts.read_text()))
    assert (FORGET_DATA in code) == has_cache
