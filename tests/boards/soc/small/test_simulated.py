"""The whole small system in simulation: the host's driver, over the serial line, runs networks.

Its model is compiled for more than half a minute, so this is for `make soak`; in `make test`, the
controller and the host's side are tested alone, and a network runs in the system of an ULX3S.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import microtron
from microtron.base.errors import ExecutionError
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.soc.simulation.memory_timing_fit import Measured
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.boards.soc.simulation.simulated_link import SimulatedLink
from microtron.isa.config import tiny
from microtron.isa.instructions import Load, Sync
from microtron.isa.program import Program
from microtron.isa.registers import IDENTITY
from microtron.isa.stream import encode
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.places import LITEX_MEMORY, LITEX_REGISTERS
from microtron.runtime.devices.device import Address
from microtron.sim.functional.simulator import Functional
from microtron.testing.random_programs import random_program

from ....runtime.devices.test_rtl import copying, is_copied
from ....runtime.small_model import image as pixels
from ....runtime.small_model import small_graph
from ..test_simulate_soc import LEAST

BOARD = board_of("tang_nano_20k")
PLACE = "board:tang_nano_20k@/dev/ttyUSB0"
DIGITS = Path(__file__).parents[4] / "examples" / "digits"
PATIENCE = 20_000               # cycles
pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def line():
    return SimulatedBoard(BOARD, LEAST)


@pytest.fixture
def opened(line, monkeypatch):
    """The driver finds the simulation at the end of any line."""
    link = SimulatedLink(BOARD, line)
    monkeypatch.setattr("microtron.runtime.board.board_device.link_to", lambda place: lambda: link)
    return link


def check(model, inputs):
    """The outputs of the functional simulator; returns the cycles that they took."""
    right = model.run(inputs, device="functional")
    found = model.run(inputs, device=PLACE)
    for name in model.outputs:
        np.testing.assert_array_equal(found[name], right[name])
    return sum(report.cycles for report in found.reports)


def test_a_network_gives_what_the_functional_simulator_gives_in_the_time_predicted(opened):
    model = microtron.compile(small_graph(), LEAST)
    cycles = [check(model, {"image": pixels(seed)}) for seed in range(4)]
    measured = Measured(model.programs, round(sum(cycles) / len(cycles)))
    assert BOARD.memory.timing is not None
    assert abs(measured.error(BOARD.memory.timing)) <= 0.02


def test_a_read_outside_of_memory_is_a_fault_and_the_next_program_runs(opened):
    device = BoardDevice(LEAST, place=PLACE)
    segments = copying(tiles=4, config=LEAST).segments
    device.load(Program(LEAST, encode([Load(), Sync()]), segments))
    device._bases[1] = LITEX_MEMORY + BOARD.memory.bytes
    with pytest.raises(ExecutionError, match=r"instruction 0 \(load\.inp .*\): read_error fault"):
        device.run()
    device.load(copying(tiles=4, config=LEAST))
    device.run()
    assert is_copied(device, copying(tiles=4, config=LEAST))


def test_the_line_speaks_as_litexs_bridge(line):
    line.write(struct.pack(">BBI", 2, 1, LITEX_REGISTERS // 4))
    assert line.read(4, PATIENCE) == struct.pack(">I", IDENTITY)
    place = LITEX_MEMORY + 0x123450
    line.write(struct.pack(">BBI3I", 1, 3, place // 4, 1, 2, 0xFFEEDDCC)
               + struct.pack(">BBI", 2, 3, place // 4))
    assert line.read(12, PATIENCE) == struct.pack(">3I", 1, 2, 0xFFEEDDCC)


def test_random_programs_leave_the_memory_of_the_functional_simulator():
    device = BoardDevice(tiny, place=PLACE, link=SimulatedLink(BOARD, SimulatedBoard(BOARD, tiny)))
    for seed in range(40):
        program = random_program(tiny, seed, length=(5, 30, 60)[seed % 3])
        right = Functional(program)
        right.run()
        device.load(program)
        device.run()
        for segment, content in zip(program.segments, right.memory.segments, strict=True):
            found = device.read(Address(segment.name), segment.size)
            np.testing.assert_array_equal(found, content[:segment.size])


def test_digits_are_what_the_functional_simulator_says_and_take_the_time_predicted(monkeypatch):
    model = microtron.compile(DIGITS / "digits.onnx", "micro")
    link = SimulatedLink(BOARD, SimulatedBoard(BOARD, model.config))
    monkeypatch.setattr("microtron.runtime.board.board_device.link_to", lambda place: lambda: link)
    name, = model.inputs
    with np.load(DIGITS / "digits_test.npz") as data:
        images = data["images"][:3].astype(np.float32)
    cycles = [check(model, {name: image[None, None]}) for image in images]
    measured = Measured(model.programs, round(sum(cycles) / len(cycles)))
    assert BOARD.memory.timing is not None
    assert abs(measured.error(BOARD.memory.timing)) <= 0.02
