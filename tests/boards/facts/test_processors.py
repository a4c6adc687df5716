"""Soft processors by the names that boards' files have."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from dataclasses import replace

import pytest

import microtron
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.facts.errors import BoardError
from microtron.boards.facts.processors import NONE, PROCESSORS, processor_of
from microtron.boards.firmware.image import build_image
from microtron.boards.firmware.monitor import build_monitor
from microtron.boards.soc.file_names import FACTS
from microtron.boards.soc.system_design import system_design
from microtron.boards.soc.system_steps import gateware_steps
from microtron.boards.timing.unit_synthesis import SCRIPT
from microtron.isa.config import tiny

from ...runtime.small_model import small_graph

BOARD = board_of("ulx3s")
FORGET_DATA = struct.pack("<I", 0x500F)


def test_another_processor_is_refused_with_those_that_there_are():
    with pytest.raises(BoardError, match=r"ulx3s: cpu is '8051', but a soft one is VexRiscv, "
                                         r"VexRiscv Lite or none$"):
        processor_of(replace(BOARD, cpu="8051"))


def test_software_for_a_board_without_a_processor_is_refused_with_what_runs_instead():
    with pytest.raises(BoardError, match=r"ulx3s: its system has no processor; .*@/dev/ttyUSB0$"):
        build_image(microtron.compile(small_graph(), tiny), replace(BOARD, cpu=NONE))


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_system_has_its_processor_and_firmware_that_this_one_understands(name, tmp_path):
    _, system, _ = gateware_steps(replace(BOARD, cpu=name), tiny)
    system.run(tmp_path, 1, 1)
    facts, verilog = tmp_path / FACTS, (tmp_path / "VexRiscv.v").read_text()
    has_cache = PROCESSORS[name].data_cache
    assert ("module DataCache" in verilog) == has_cache
    code = build_monitor(json.loads(facts.read_text()))
    assert (FORGET_DATA in code) == has_cache
    in_lut_ram = "VexRiscv/m:RegFilePlugin_regFile VexRiscv/a:ram_style=distributed %i"
    read = system_design(replace(BOARD, cpu=name), tiny).read.splitlines()[1:]
    commands = ["read_verilog VexRiscv.v", *read, f"select -assert-count 1 {in_lut_ram}"]
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, input="\n".join(commands),
                   text=True, check=True, capture_output=True)
