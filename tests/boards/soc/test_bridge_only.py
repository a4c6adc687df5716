"""A system without a processor: a host has the bus, over the serial line."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import pytest
from litedram.dfii import DFIInjector
from migen import run_simulation

from microtron.base.errors import MicrotronError
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.facts.processors import NONE
from microtron.boards.soc.dram.initializer import MARGIN, Starter
from microtron.boards.soc.dram.litedram_chip import StartStep
from microtron.boards.soc.file_names import FACTS
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.boards.soc.system_steps import gateware_steps
from microtron.isa.config import tiny
from microtron.runtime.board.board_device import BoardDevice

from ...runtime.board.test_bridge_system import PLACE, SimulatedLink, program
from ...runtime.devices.test_rtl import is_copied
from .test_simulate_soc import LEAST

BOARD = replace(board_of("ulx3s"), cpu=NONE)
STARTED = 25_000            # cycles, by when memory works


@pytest.mark.soak
def test_programs_run_as_soon_as_memory_is_started():
    line = SimulatedBoard(BOARD, LEAST)
    assert line.read(1, STARTED) == b""
    device = BoardDevice(LEAST, place=PLACE, link=SimulatedLink(line))
    for _ in range(2):
        device.load(program())
        device.run()
        assert is_copied(device, program())


def test_memory_gets_every_step_once_with_time_for_each_before_the_controller_has_it():
    steps = [StartStep(0, 0, 0b1110, True, 20), StartStep(0x400, 1, 0b1011, False, 0),
             StartStep(0x21, 2, 0b1111, False, 5)]
    injector = DFIInjector(addressbits=11, bankbits=2, nranks=1, databits=32)
    commands, phase = [], injector.ext_dfi.phases[0]

    def watched():
        for cycle in count():
            yield
            if not (yield injector.ext_dfi_sel):
                break
            if not (yield phase.cs_n):
                commands.append(((yield phase.address), (yield phase.bank), (yield phase.ras_n),
                                 (yield phase.cas_n), (yield phase.we_n), cycle))
            assert (yield phase.cke)        # since the first step
        commands.append(cycle)

    run_simulation(Starter(steps, injector), watched())
    (*precharge, first), (*mode, second), over = commands
    assert (precharge, mode) == ([0x400, 1, 0, 1, 0], [0x21, 2, 0, 0, 0])
    for before, after, wait in ((0, first, 20), (first, second, 0), (second, over, 5)):
        assert after - before >= wait + MARGIN


def test_nothing_of_a_processor_is_left(tmp_path):
    *_, system = steps = gateware_steps(BOARD, tiny)
    assert [step.name for step in steps] == ["accelerator", "system"]
    system.run(tmp_path, 1, 1)
    facts = json.loads((tmp_path / FACTS).read_text())
    assert set(facts["memories"]) == {"main_ram", "registers", "csr"}
    assert "VexRiscv" not in (tmp_path / "soc.v").read_text()


def test_memory_that_needs_a_processor_is_refused(tmp_path):
    *_, system = gateware_steps(replace(board_of("ecpix5"), cpu=NONE), tiny)
    with pytest.raises(MicrotronError, match="ecpix5: memory is ddr3, which a processor has to "):
        system.run(tmp_path, 1, 1)
