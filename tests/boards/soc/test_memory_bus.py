"""What a processor writes to memory is there, however wide the port of the controller is."""

from __future__ import annotations

import random
from itertools import count

import pytest
from litedram.common import LiteDRAMNativePort
from migen import passive, run_simulation

from microtron.boards.soc.dram.memory_bus import MemoryBus

BASE, WRITE_LATENCY, READ_LATENCY = 0x4000_0000, 3, 9
WORDS, PATIENCE = 64, 200


@passive
def controller(port, content):
    """LiteDRAM: it takes data, and gives them, a fixed time after a command, whether or not anybody
    is there."""
    size, taken, given = port.data_width // 8, {}, {}
    for cycle in count():
        yield port.cmd.ready.eq(cycle % 3 == 0)
        yield port.wdata.ready.eq(cycle in taken)
        yield port.rdata.valid.eq(cycle in given)
        if cycle in given:
            start = given[cycle] * size
            yield port.rdata.data.eq(int.from_bytes(content[start:start + size], "little"))
        yield
        if (yield port.cmd.valid) and (yield port.cmd.ready):
            place = yield port.cmd.addr
            if (yield port.cmd.we):
                taken[cycle + WRITE_LATENCY] = place
            else:
                given[cycle + READ_LATENCY] = place
        if cycle in taken:
            data, enabled = (yield port.wdata.data), (yield port.wdata.we)
            for byte in range(size):
                if enabled >> byte & 1:
                    content[taken[cycle] * size + byte] = data >> 8 * byte & 0xFF


def processor(bus, accesses, seen):
    """Writes words, or bytes of them, and reads back; it leaves the bus after some accesses."""
    for write, place, value, lanes, pause in accesses:
        for signal, level in ((bus.adr, (BASE >> 2) + place), (bus.dat_w, value), (bus.sel, lanes),
                              (bus.we, write), (bus.cyc, 1), (bus.stb, 1)):
            yield signal.eq(level)
        yield
        for _ in range(PATIENCE):
            if (yield bus.ack):
                break
            yield
        else:
            pytest.fail(f"word {place} is not answered")
        if not write:
            seen.append((yield bus.dat_r))
        if pause:
            yield bus.cyc.eq(0)
            yield bus.stb.eq(0)
            yield


def random_accesses(seed: int):
    choose = random.Random(seed)
    for _ in range(200):
        lanes = choose.choice((1, 2, 4, 8, 12, 15, 15, 15))
        yield (choose.random() < 0.6, choose.randrange(WORDS), choose.getrandbits(32), lanes,
               choose.random() < 0.5)


@pytest.mark.parametrize("bits", [16, 32, 64, 128])
def test_words_are_read_as_they_were_written(bits):
    port = LiteDRAMNativePort("both", address_width=10, data_width=bits)
    accesses, content, seen = list(random_accesses(bits)), bytearray(4096), []
    expected, right = bytearray(4 * WORDS), []
    for write, place, value, lanes, _ in accesses:
        if not write:
            right.append(int.from_bytes(expected[4 * place:4 * place + 4], "little"))
            continue
        for byte in range(4):
            if lanes >> byte & 1:
                expected[4 * place + byte] = value >> 8 * byte & 0xFF
    tested = MemoryBus(port, BASE)
    run_simulation(tested, [processor(tested.bus, accesses, seen), controller(port, content)])
    assert seen == right
