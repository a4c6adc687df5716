"""Programs made to exhaust a verifier: huge loops, huge boxes, many micro-ops, many of all these.

Run as a script it verifies each of them, and derives its tokens, and prints the outcomes as JSON,
one line each: a name, the findings, and the complaint of the derivation.
"""

import json
from dataclasses import replace

import numpy as np

from microtron.base.errors import VerificationError
from microtron.isa.config import Config, base, tiny
from microtron.isa.instructions import (
    AluI,
    Buffer,
    Engines,
    Gemm,
    Load,
    Requantize,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.isa.verification.verifier import inspect

MANY = 2000
# The most tiles a scratchpad can have, of the fewest bytes.
LARGEST = Config(block_in=1, block_out=1, uop_bytes=512 << 10, inp_bytes=64 << 10,
                 wgt_bytes=64 << 10, acc_bytes=256 << 10, out_bytes=64 << 10)
BARRIER = Sync(action=SyncAction.BARRIER)
UOPS = Load(buffer=Buffer.UOP, shape=(1, 1, 4096), post=Engines.GEMM)
LONG_GEMM = Gemm(wait=Engines.LOAD, count=4096, loops=(680, 680, 680), dst_stride=(1, 1, 1),
                 src_stride=(1, 1, 1), wgt_stride=(0, 1, 0))
ALL = (65535, 65535, 65535)


def program(config, *code):
    """With 4096 micro-ops that are zero and two segments of 2 GiB to store to."""
    data = np.zeros(8 * 4096, np.uint8)
    segments = (Segment("constants", len(data), Access.READ, data),
                *(Segment(name, 1 << 31, Access.WRITE) for name in ("memory", "more")))
    return Program(replace(config, address_bits=40), encode([*code, Sync()]), segments)


def many(config, instruction, count=MANY):
    return program(config, *(instruction(number) for number in range(count)))


def gemm(number):
    return Gemm(uop=number % 97, count=4000, loops=(500 + number % 67, 1 + number % 3, 2),
                dst_stride=(32 + number % 30, 5000, 20000 - number % 100),
                src_stride=(33 - number % 30, 5000 + number % 7, 20011), wgt_stride=(1, 0, 3))


def every_second_tile(number):
    kind = AluI if number % 2 else Requantize
    return kind(dst=number % 2, loops=(1, 1, 32000 + number % 700), dst_stride=(0, 0, 2),
                src_stride=(0, 0, 2))


def transfer(number, *, rows, step, other=0, different=MANY):
    """By turns a store to even and a load from odd places."""
    number, kind = number % different, Load if number % 2 else Store
    offset = 32 * number + (16 if number % 2 else 0)
    return kind(segment=1, offset=offset, shape=rows, stride=(other, step * 16))


def large_transfer(number):
    kind, offset = (Load, 0) if number % 2 else (Store, 1 << 30)
    return kind(segment=1, sram=number % 7, offset=offset + number, shape=(1, 1, 60000 + number))


PROGRAMS = {
    "a gemm of 10^12": lambda: program(base, UOPS, LONG_GEMM),
    "a race in a gemm of 10^12": lambda: program(base, UOPS, Load(shape=(1, 1, 2048)), LONG_GEMM),
    "a load with too many rows": lambda: program(base, Load(shape=(1, 32769, 128))),
    "a load of 65535 planes of micro-ops": lambda: program(
        base, Load(buffer=Buffer.UOP, shape=(65535, 1, 4096))),
    "an alui of 2.8 * 10^14": lambda: program(base, AluI(loops=ALL)),
    "a race in a requantize of 2.8 * 10^14": lambda: program(
        tiny, AluI(dst=1, loops=ALL), Store(buffer=Buffer.ACC, segment=1, sram=1)),
    "a store of 67 million rows": lambda: program(
        base, Store(segment=1, shape=(65535, 1023, 1), stride=(32768, 32)),
        Load(segment=1, offset=16, shape=(65535, 1023, 1), stride=(32768, 32))),
    "a race between 60 million rows": lambda: program(
        base, Store(segment=1, shape=(1000, 60000, 1), stride=(48, 32016)),
        Load(segment=1, offset=48_000_000, shape=(9999, 60, 1), stride=(48, 32112))),
    "the ends of large segments": lambda: program(
        LARGEST, Store(segment=1, offset=(1 << 31) - 1), Load(segment=2, offset=(1 << 31) - 1),
        Store(segment=2)),
    "many long gemms": lambda: program(base, UOPS, LONG_GEMM, BARRIER, *[
        Gemm(count=4096, loops=ALL)] * MANY),
    "many different gemms": lambda: program(
        LARGEST, UOPS, BARRIER, *(gemm(number) for number in range(MANY))),
    "many walks over every second tile": lambda: many(LARGEST, every_second_tile),
    "many large transfers": lambda: many(LARGEST, large_transfer),
    "many loads of micro-ops": lambda: many(LARGEST, lambda number: Load(
        buffer=Buffer.UOP, offset=8 * (number % 90), shape=(9, 1, 4000))),
    "many boxes of 1000 rows": lambda: many(base, lambda number: transfer(
        number, rows=(1, 1000, 1), step=2 * (number % 500 + 1)), count=500),
    "many long boxes": lambda: many(base, lambda number: transfer(
        number, rows=(30000, 1, 1), step=0, other=64, different=1000)),
    "one long box many times": lambda: many(base, lambda number: transfer(
        number, rows=(10000, 3, 1), step=5, other=192, different=2)),
    "too many long boxes": lambda: many(base, lambda number: transfer(
        number, rows=(2000, 500, 1), step=10, other=(10 * 500 - 6) * 16)),
}


if __name__ == "__main__":
    for name, build in PROGRAMS.items():
        made = build()
        findings, complaint = inspect(made).findings, ""
        try:
            with_tokens(made)
        except VerificationError as error:
            complaint = str(error)
        print(json.dumps([name, findings, complaint]), flush=True)
