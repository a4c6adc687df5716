"""Programs that must fail, each on a bench that must then run a right one without a reset.

Each stores half of a result, waits, does something wrong, and would go on to store the rest.
Whatever is wrong, memory must then hold the first half and nothing else that is new, and the bus
must be at rest.
"""

import os
from dataclasses import dataclass
from itertools import count
from typing import Any

import cocotb
import numpy as np
from cocotb_bench import Bench
from cocotb_compare import compare
from cocotbext.axi import AxiResp

from microtron.isa.config import tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import AluI, Buffer, Engines, Load, Store, Sync, SyncAction
from microtron.isa.program import Access, Program, Segment
from microtron.isa.registers import Status
from microtron.isa.stream import from_bytes
from microtron.testing.random_programs import random_program

DATA, RESULT, OTHER, NOWHERE = 0, 1, 2, 7       # segments
TILE = tiny.tile_bytes(Buffer.OUT)
TILES, HALF = 40, 20
SIZE = TILES * TILE
UOP = SIZE                                      # where one micro-op of zeros lies in DATA
BARRIER = Sync(action=SyncAction.BARRIER)

DATA_BYTES = np.concatenate([np.arange(SIZE) % 100, np.zeros(8)]).astype(np.uint8)
BEFORE = (DATA_BYTES, bytes(SIZE), bytes(range(SIZE)))
ALL_STORED = bytes(DATA_BYTES[:SIZE] + 1)
HALF_STORED = ALL_STORED[:HALF * TILE] + bytes(SIZE - HALF * TILE)

FIRST_HALF = (
    Load(buffer=Buffer.ACC8, shape=(1, 1, TILES), post=Engines.ALU),
    AluI(loops=(1, 1, TILES), dst_stride=(0, 0, 1), src_stride=(0, 0, 1), immediate=1,
         target=Buffer.OUT, wait=Engines.LOAD, post=Engines.STORE),
    Store(segment=RESULT, shape=(1, 1, HALF), wait=Engines.ALU), BARRIER)
SECOND_HALF = (BARRIER, Store(segment=RESULT, sram=HALF, offset=HALF * TILE, shape=(1, 1, HALF)),
               Sync())
STORE = Store(segment=OTHER, shape=(1, 1, TILES))
PARTLY = (BEFORE[OTHER], ALL_STORED)            # what OTHER may hold when STORE did not finish
WRONG = len(FIRST_HALF)                         # number of the first instruction between them


@dataclass(frozen=True, kw_only=True)
class Case:
    """What stands between the halves, instructions or raw words, and how it must fail."""

    cause: Fault
    words: tuple = ()
    after: int = 0              # right ones before the wrong one
    other: Any = BEFORE[OTHER]  # what OTHER may hold, as `Bench.assert_memory` takes it
    count: int | None = None    # of instructions, if the driver gives fewer than there are


@dataclass(frozen=True, kw_only=True)
class BusError:
    """Bytes that answer with an error."""

    segment: int | None         # None: the program itself
    first: int
    size: int = 1
    writes: bool = False        # or reads
    response: AxiResp = AxiResp.SLVERR

    def arrange(self, bench):
        start = self.first + (bench.code if self.segment is None
                              else bench.windows[self.segment].start)
        kind = "writes" if self.writes else "reads"
        bench.memory.fail(response=self.response, **{kind: range(start, start + self.size)})


def tried(cases):
    """Those of several cases that are run: every one, or as the environment says."""
    return tuple(cases)[::int(os.environ.get("EVERY", "1"))]


def program_of(*words):
    """The two halves with something in between."""
    code = [each if isinstance(each, bytes) else each.encode()
            for each in (*FIRST_HALF, *words, *SECOND_HALF)]
    return Program(tiny, from_bytes(b"".join(code)), (
        Segment("data", len(DATA_BYTES), Access.READ), Segment("result", SIZE, Access.WRITE),
        Segment("other", SIZE, Access.WRITE)))


async def prepared(dut, seed):
    """A bench with random numbers of its own, after the only reset it gets."""
    bench = Bench(dut, seed=cocotb.RANDOM_SEED * 100 + seed, memory_bytes=1 << 19)
    bench.seeds = count(1000 * bench.rng.randrange(1000))
    await bench.reset()
    return bench


async def check(bench, case, error=None):
    """Run a case; it fails as it must, and the next program is right."""
    await bench.load(program_of(*case.words), BEFORE, case.count)
    if error:
        error.arrange(bench)
    await bench.start()
    await assert_fails(bench, case.cause, WRONG + case.after,
                       (DATA_BYTES, HALF_STORED, case.other))


async def assert_fails(bench, cause, position, contents):
    """What has been started stops with this fault, and the next program is right."""
    assert await bench.stopped() == Status.FAILED | Status.INTERRUPT
    found = Fault(await bench.read("fault")), await bench.read("fault_position")
    assert found == (cause, position), f"{found} instead of {(cause, position)}"
    await bench.assert_quiet()
    bench.assert_memory(contents)
    await compare(bench, random_program(tiny, next(bench.seeds), length=6))
