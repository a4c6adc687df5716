"""A board's device against whole systems in simulation, over Ethernet: frames, LiteEth's bridge,
bus, memory, accelerator. With a processor whose monitor has the bus as well, and without."""

from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import ExecutionError
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.facts.ethernet import Ethernet
from microtron.boards.facts.processors import NONE, soft_processor
from microtron.boards.soc.simulation.ethernet_cable import CabledBoard
from microtron.isa.instructions import Buffer, Engines, Gemm, Load, Sync
from microtron.isa.program import Program
from microtron.isa.registers import IDENTITY
from microtron.isa.stream import encode
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.etherbone import EtherboneLink
from microtron.runtime.board.link import LinkError
from microtron.runtime.board.places import LITEX_MEMORY, LITEX_REGISTERS, link_to, place_of
from microtron.runtime.devices.device import Address

from ...boards.soc.ethernet_host import Host, relay
from ...boards.soc.test_simulate_soc import LEAST
from ..devices.test_rtl import copying, is_copied

pytestmark = pytest.mark.soak

BOARDS = [replace(board_of("ulx3s"), cpu=NONE), board_of("ecpix5")]
STARTED = 25_000                # cycles by when memory works, without a processor
PATIENCE = 10_000_000           # cycles: more than the monitor takes
NOWHERE = 0x7000_0000           # no memory, no register
WHERE = Ethernet(phy="rgmii")


@pytest.fixture(scope="module", params=BOARDS, ids=lambda board: board.name)
def cable(request):
    """A relay to a board whose memory has been started."""
    board = request.param
    simulated = CabledBoard(board, LEAST)
    if soft_processor(board) is None:
        simulated.read(1, STARTED)
    else:
        start(simulated)
    host = Host(simulated, bytes(map(int, WHERE.ip.split("."))))
    host.find()
    with relay(host, WHERE.port) as other:
        other.board = board
        yield other


def start(board):
    """Wait for the monitor, which starts memory and then says who it is."""
    text = b""
    while b"Microtron" not in text or not text.endswith(b"\n"):
        more = board.read(1, PATIENCE)
        assert more, text
        text += more


@pytest.fixture
def link(cable):
    cable.loses = lambda: False
    size = cable.board.memory.bytes
    memory = range(LITEX_MEMORY + size // 2, LITEX_MEMORY + size)
    found = EtherboneLink(cable.address, LITEX_REGISTERS, memory, seconds=30)
    yield found
    found.close()
    assert cable.error is None


def device_of(cable, link, **options):
    return BoardDevice(LEAST, place=f"board:{cable.board.name}@{WHERE.ip}", link=link, **options)


def program():
    tiles = LEAST.out_bytes // LEAST.tile_bytes(Buffer.OUT) // 4
    return copying(tiles=tiles, config=LEAST)


def check_a_run(cable, link):
    device = device_of(cable, link)
    device.load(program())
    report = device.run()
    assert is_copied(device, program())
    assert report.counters["instructions"] == 4
    assert 0 < report.cycles < 100_000
    return device


def test_memory_keeps_bytes_with_any_edges(link):
    rng = np.random.default_rng(5)
    known = rng.integers(0, 256, 600, np.uint8)
    link.write(link.memory.start, known)
    for first, size in ((1, 1), (2, 6), (64, 256), (301, 135), (593, 7)):
        known[first:first + size] = rng.integers(0, 256, size, np.uint8)
        link.write(link.memory.start + first, known[first:first + size])
    assert (link.read(link.memory.start, len(known)) == known).all()
    end = link.memory.stop - 8
    link.write(end, known[:8])
    assert (link.read(end, 8) == known[:8]).all()


def test_programs_run_one_after_the_other(cable, link):
    assert link.read_words(LITEX_REGISTERS, 1) == [IDENTITY]
    device = check_a_run(cable, link)
    device.write(Address("input", 1), bytes([7, 8, 9]))
    device.run()
    assert device.read(Address("output", 1), 3).tolist() == [8, 9, 10]


def test_another_configuration_is_refused(cable, link):
    device = BoardDevice("tiny", place=f"board:{cable.board.name}@{WHERE.ip}", link=link)
    with pytest.raises(ExecutionError, match="block_in"):
        device.load(copying(tiles=1, config=device.config))


def test_what_is_nowhere_reads_as_ones_and_the_next_program_runs(cable, link):
    assert link.read_words(NOWHERE, 3) == [0xFFFF_FFFF] * 3
    link.write_words(NOWHERE, [1, 2, 3], repeatable=True)
    check_a_run(cable, link)


def test_a_fault_and_a_deadlock_leave_a_board_that_runs_the_next_program(cable, link):
    device = device_of(cable, link, limit=1)
    segments = program().segments
    device.load(Program(LEAST, encode([Load(offset=1 << 20), Sync()]), segments))
    with pytest.raises(ExecutionError, match=r"instruction 0 \(load\.inp .*\): address fault"):
        device.run()
    device.load(Program(LEAST, encode([Load(), Gemm(wait=Engines.ALU), Sync()]), segments))
    with pytest.raises(ExecutionError, match=r"has not ended after 1 cycles"):
        device.run()
    check_a_run(cable, link)


@pytest.mark.parametrize("lost", range(0, 60, 7))
def test_a_packet_that_gets_lost_is_survived_or_is_one_clear_error(cable, link, lost):
    link.seconds = 1
    device = device_of(cable, link)
    device.load(program())
    passing = iter(range(10_000))
    cable.loses = lambda: next(passing) == lost
    said = "has not answered for 1 s"
    try:
        device.run()
    except LinkError as error:
        said = str(error)
    else:
        assert is_copied(device, program())
    assert "has not answered for 1 s" in said
    cable.loses = lambda: False
    link.seconds = 30
    check_a_run(cable, link)


def test_the_name_of_the_board_leads_to_these_addresses(cable, link, monkeypatch):
    opened = []
    monkeypatch.setattr("microtron.runtime.board.places.EtherboneLink",
                        lambda *arguments: opened.append(arguments))
    link_to(place_of(f"board:{cable.board.name}@{WHERE.ip}"))()
    assert opened == [(WHERE.ip, LITEX_REGISTERS, link.memory)]
