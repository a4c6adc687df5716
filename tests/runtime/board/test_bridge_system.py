"""A board's device against a whole system in simulation: bridge, processor, memory, accelerator."""

import pytest

from microtron.base.errors import ExecutionError
from microtron.boards.soc.simulation.simulated_board import SimulatedBoard
from microtron.isa.instructions import Buffer, Engines, Gemm, Load, Sync
from microtron.isa.program import Program
from microtron.isa.stream import encode
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.link import LinkError
from microtron.runtime.board.places import LITEX_MEMORY, LITEX_REGISTERS, link_to, place_of
from microtron.runtime.board.uart import BridgeLink
from microtron.runtime.devices.device import Address
from microtron.testing.self_test import self_test

from ...boards.soc.test_simulate_soc import BOARD, LEAST
from ..devices.test_rtl import copying, is_copied

PLACE = "board:ulx3s@/dev/ttyUSB0"
PATIENCE = 300_000              # cycles
ANSWER_PATIENCE = 20 * PATIENCE     # what was sent before takes time, too
GREETING = 4096                 # bytes: more than it has
MEMORY = range(LITEX_MEMORY + BOARD.memory.bytes // 2, LITEX_MEMORY + BOARD.memory.bytes)


class SimulatedLink(BridgeLink):
    """The bridge over a line whose other end is a simulation. Time passes while one waits."""

    def __init__(self, board):
        super().__init__("simulation", LITEX_REGISTERS, MEMORY)
        self.board = board

    def send(self, data):
        self.board.write(data)

    def receive(self, size):
        data = self.board.read(size, ANSWER_PATIENCE)
        if len(data) != size:
            raise LinkError(f"{len(data)} of {size} bytes came")
        return data

    def forget(self):
        self.board.read(GREETING, 0)

    def close(self):
        pass


@pytest.fixture(scope="module")
def link():
    board = SimulatedBoard(BOARD, LEAST)
    assert b"Microtron" in board.read(GREETING, PATIENCE)
    return SimulatedLink(board)


def program():
    tiles = LEAST.out_bytes // LEAST.tile_bytes(Buffer.OUT) // 4
    return copying(tiles=tiles, config=LEAST)


def test_programs_run_through_the_monitor_s_bridge_one_after_the_other(link):
    device = BoardDevice(LEAST, place=PLACE, link=link)
    device.load(program())
    report = device.run()
    assert is_copied(device, program())
    assert report.counters["instructions"] == 4
    assert 0 < report.cycles < 100_000
    device.write(Address("input", 1), bytes([7, 8, 9]))
    device.run()
    assert device.read(Address("output", 1), 3).tolist() == [8, 9, 10]


def test_a_fault_and_a_deadlock_leave_a_board_that_runs_the_next_program(link):
    device = BoardDevice(LEAST, place=PLACE, link=link, limit=1)
    segments = program().segments
    device.load(Program(LEAST, encode([Load(offset=1 << 20), Sync()]), segments))
    with pytest.raises(ExecutionError, match=r"instruction 0 \(load\.inp .*\): address fault"):
        device.run()
    device.load(Program(LEAST, encode([Load(), Gemm(wait=Engines.ALU), Sync()]), segments))
    with pytest.raises(ExecutionError, match=r"has not ended after 1 cycles.*handed out$"):
        device.run()
    device.limit = None
    device.load(program())
    device.run()
    assert is_copied(device, program())


@pytest.mark.soak
def test_the_self_test_passes_over_the_serial_line(link, monkeypatch):
    monkeypatch.setattr("microtron.testing.self_test.digits_programs", lambda config: ())   # slow
    checks = list(self_test(BoardDevice(LEAST, place=PLACE, link=link), LEAST))
    assert len(checks) > 8
    assert all(each.passed for each in checks), [each for each in checks if not each.passed]


def test_the_name_of_the_board_leads_to_these_addresses(monkeypatch):
    opened = []
    monkeypatch.setattr("microtron.runtime.board.places.UartLink",
                        lambda *arguments, **options: opened.append((arguments, options)))
    link_to(place_of(PLACE))()
    assert opened == [(("/dev/ttyUSB0", LITEX_REGISTERS, MEMORY), {"speed": 115200})]
