"""The whole system in simulation: the monitor boots, a network runs, and faults leave it alive."""

from __future__ import annotations

import struct
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest

import microtron
from microtron.base.errors import ExecutionError
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.firmware.image import Image, build_image
from microtron.boards.firmware.riscv_gcc import find_tool
from microtron.boards.soc.simulation.memory_timing_fit import Measured
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.isa.config import Config
from microtron.isa.faults import Fault
from microtron.isa.instructions import Engines, Load
from microtron.isa.registers import IDENTITY
from microtron.runtime.monitor.client import Monitor, RefusedError
from microtron.runtime.monitor.network import BoardNetwork
from microtron.runtime.monitor.protocol import Frame, Kind, Status

from ...runtime.small_model import image as pixels
from ...runtime.small_model import small_graph

LEAST = Config(block_in=2, block_out=2, uop_bytes=1024, inp_bytes=512, wgt_bytes=512,
               acc_bytes=1024, out_bytes=512, acc_banks=1, queue_depth=2, token_bits=4,
               reads_in_flight=4, writes_in_flight=2)
BOARD = board_of("ulx3s")
TIMEOUT, PATIENCE = 20_000, 5_000_000       # cycles
NOWHERE = 0x7000_0000                       # no memory, no register


@dataclass
class Running:
    """A board with a network, and the addresses of its variables."""

    line: SimulatedBoard
    monitor: Monitor
    network: BoardNetwork
    symbols: dict[str, int]

    def run(self, seed: int = 0):
        return self.network.run({"image": pixels(seed)}, timeout=TIMEOUT, patience=PATIENCE)



def symbols_of(image: Image, folder) -> dict[str, int]:
    (folder / "network.elf").write_bytes(image.elf)
    done = subprocess.run([find_tool("nm"), folder / "network.elf"], capture_output=True, text=True)
    return {name: int(value, 16) for value, _, name in map(str.split, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def model():
    return microtron.compile(small_graph(), LEAST)


@pytest.fixture(scope="module")
def running(model, tmp_path_factory):
    """Loaded over the serial line, with one damaged word on its first try."""
    image = build_image(model, BOARD)
    line = SimulatedBoard(BOARD, LEAST)
    monitor = Monitor(line)
    network = BoardNetwork(monitor, image.content)
    place = len(image.content) // 2 // 4 * 4
    address = network.image.base + place
    monitor.write32(address, monitor.read32(address) ^ 1)
    outcome = monitor.run(TIMEOUT, PATIENCE)
    assert outcome.status is Status.BAD_IMAGE
    monitor.write(address, image.content[place:place + 4])
    return Running(line, monitor, network, symbols_of(image, tmp_path_factory.mktemp("image")))


def check(running: Running, model, seed: int = 0):
    """The network gives what the functional simulator gives."""
    right = model.run({"image": pixels(seed)}, device="functional")
    found, outcome = running.run(seed)
    for name in model.outputs:
        np.testing.assert_array_equal(found[name], right[name])
    assert 0 < outcome.accelerator_cycles < outcome.cycles
    return outcome


def test_a_network_gives_what_the_functional_simulator_gives_in_the_time_predicted(running, model):
    """Refreshes of memory do not come at the same instruction, nor do the simulator's stalls: the
    means of some runs count."""
    cycles = [check(running, model, seed).accelerator_cycles for seed in range(4)]
    measured = Measured(model.programs, round(sum(cycles) / len(cycles)))
    timing = BOARD.memory.timing
    assert timing is not None
    errors = [measured.error(replace(timing, seed=seed)) for seed in range(8)]
    assert abs(sum(errors) / len(errors)) <= 0.02
    assert running.monitor.outcome().status is Status.DONE
    assert b"Microtron monitor on ulx3s" in running.monitor.text


def test_damaged_and_unknown_frames_are_refused(running):
    frame = bytearray(Frame(Kind.HELLO, 7, b"").encode())
    frame[-1] ^= 1
    running.line.write(bytes(frame))
    answer = running.line.read(14, PATIENCE)
    assert answer[6:10] == struct.pack("<I", Status.BAD_FRAME)
    running.line.write(Frame(99, 7, b"").encode())
    assert running.line.read(14, PATIENCE)[6:10] == struct.pack("<I", Status.BAD_REQUEST)
    assert running.monitor.hello().memory_bytes == BOARD.memory.bytes


def test_the_monitors_own_memory_and_holes_are_refused(running):
    for address in (0, 0x1000_0000, 0x7000_0000, 0x4000_0000 + BOARD.memory.bytes):
        with pytest.raises(RefusedError, match="bad_address"):
            running.monitor.read(address, 4)


def test_litexs_own_bridge_finds_memory_and_registers(running):
    registers = running.monitor.hello().registers
    running.line.write(struct.pack(">BBI", 2, 1, registers // 4))
    assert running.line.read(4, PATIENCE) == struct.pack(">I", IDENTITY)
    place = 0x4100_0000
    running.line.write(struct.pack(">BBI3I", 1, 3, place // 4, 1, 2, 0xFFEEDDCC))
    running.line.write(struct.pack(">BBI", 2, 3, place // 4))
    assert running.line.read(12, PATIENCE) == struct.pack(">3I", 1, 2, 0xFFEEDDCC)
    assert running.monitor.read(place + 8, 4) == bytes.fromhex("CCDDEEFF")


@contextmanager
def changed(running: Running, address: int, data: bytes):
    """The board's memory with other bytes somewhere, for a while."""
    before = running.monitor.read(address, len(data))
    running.monitor.write(address, data)
    yield
    running.monitor.write(address, before)


def placed(running: Running, member: int) -> int:
    """The address of a member of `struct placed`, of the program that was placed last."""
    return running.monitor.read32(running.symbols["all_placed"]) + 4 * member


def word(value: int) -> bytes:
    return struct.pack("<I", value)


def test_a_program_for_another_bitstream_is_refused_by_name_and_value(running, model):
    table = next(value for name, value in running.symbols.items() if name.startswith("expected"))
    number = 2 + list(LEAST.to_dict()).index("block_in")
    with changed(running, table + 8 * number + 4, word(16)), pytest.raises(
            ExecutionError, match="config_block_in is 0x2, but the network needs 0x10: another"):
        running.run()
    check(running, model)


def test_a_bus_error_is_a_fault_with_its_instruction(running, model):
    with changed(running, placed(running, 9), word(NOWHERE)), pytest.raises(
            ExecutionError, match=r"stage 6 \(program 1\): the accelerator stopped at instruction "
                                  "0: read_error"):
        running.run()
    outcome = running.monitor.outcome()
    assert (outcome.status, outcome.details[0]) == (Status.FAULT, Fault.READ_ERROR)
    check(running, model)


def test_an_accelerator_that_hangs_is_reset(running, model):
    instructions = running.monitor.read32(placed(running, 9))
    with changed(running, instructions, Load(wait=Engines.STORE).encode()), pytest.raises(
            ExecutionError, match=r"stage 6 \(program 1\): .* did not end in time, and was reset"):
        running.run()
    check(running, model)


def test_a_trap_of_the_processor_ends_the_image_alone(running, model):
    stage = running.network.image.stage_address(0)
    with changed(running, stage + 4, word(NOWHERE)), pytest.raises(
            ExecutionError, match="the processor met trap 2 at 0x70000000"):
        running.run()
    check(running, model)


def test_an_image_larger_than_memory_is_refused_before_it_is_sent(running, model):
    cycles = running.line.cycles
    with pytest.raises(RefusedError, match="bytes of memory, but the board has 33,554,432"):
        running.monitor.load(bytes(1 << 20), BOARD.memory.bytes + 1, 0x4000_0000)
    assert running.line.cycles - cycles < 100_000
    check(running, model)
