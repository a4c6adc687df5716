"""Random cases on which hardware and twin are compared: programs, configurations and memories.

Every case follows from a configuration and a seed, so it can be had again.
"""

from __future__ import annotations

import random
from dataclasses import replace

from ..base.errors import MicrotronError
from ..isa.config import Config, tiny
from ..isa.instructions import TABLES, WINDOW_ROWS, WINDOW_TAPS, Buffer
from ..isa.memory_timing import MemoryTiming
from ..sim.functional.simulator import Functional
from .compare import Case, Comparison, compare_case
from .faulty_programs import inject_fault
from .long_programs import lengthen
from .random_programs import random_program

# Small, so that they are soon compiled and run, and apart in everything that matters for time.
SMALL = {
    "tiny": tiny,
    "batch": replace(tiny, batch=2, block_in=8, bus_bits=128, address_bits=40, vector_cycles=4,
                     window_taps=3, tables=8),
    "int4": replace(tiny, wgt_bits=4, block_out=8, bus_bits=256, address_bits=40, acc_banks=2,
                    queue_depth=2, reads_in_flight=2, writes_in_flight=1, window_taps=3,
                    tables=8),
}
LENGTHS = (5, 30, 60)           # of programs
WRONG_LIMIT = 20_000            # cycles of a wrong program that are compared


def random_timing(rng: random.Random) -> MemoryTiming:
    """Any memory: fast or slow, wide or narrow, steady or moody."""
    return MemoryTiming(
        read_latency=rng.choice((1, 2, 5, 32, 100, 300, rng.randint(1, 300))),
        write_latency=rng.choice((1, 3, 16, 60, rng.randint(1, 300))),
        cycles_per_beat=rng.choice((1, 1, 1, 2, 3, 4, 5)),
        turn=rng.choice((0, 0, 0, 1, 2, 7)),
        reads=rng.choice((1, 2, 8, 32, 64)), writes=rng.choice((1, 2, 16, 64)),
        shared=rng.random() < 0.7, stalls=rng.choice((0, 0, 0, 10, 30, 100, 200)),
        seed=rng.getrandbits(60))


def random_config(seed: int) -> Config:
    """Any small accelerator."""
    rng = random.Random(f"configuration {seed}")
    while True:
        try:
            config = Config(
                batch=rng.choice((1, 1, 2, 4)), block_in=rng.choice((1, 2, 4, 8, 16)),
                block_out=rng.choice((1, 2, 4, 8, 16)), wgt_bits=rng.choice((8, 8, 4)),
                uop_bytes=rng.choice((256, 2048)), inp_bytes=rng.choice((1024, 8192)),
                wgt_bytes=rng.choice((2048, 16384)), acc_bytes=rng.choice((4096, 32768)),
                out_bytes=rng.choice((1024, 8192)), acc_banks=rng.choice((1, 2, 4, 8)),
                bus_bits=rng.choice((64, 128, 256)), address_bits=rng.choice((24, 32, 64)),
                queue_depth=rng.choice((2, 3, 4, 7, 16, 32)), token_bits=rng.randint(5, 16),
                reads_in_flight=rng.choice((1, 2, 3, 16, 64)),
                writes_in_flight=rng.choice((1, 2, 3, 8, 64)), out_readers=rng.choice((1, 2, 2)))
        except MicrotronError:
            continue            # what does not fit together
        lanes = config.batch * config.block_out
        config = replace(config, vector_cycles=min(lanes, rng.choice((1, 1, 2, 4, 8, 16))))
        windows = min(config.block_in, config.block_out) >= WINDOW_ROWS and rng.random() < 0.5
        config = replace(config, window_taps=WINDOW_TAPS if windows else 1,
                         cycles_only=int(rng.random() < 0.25))
        enough = config.tiles(Buffer.ACC) >= config.table_tiles
        return replace(config, tables=TABLES if enough and rng.random() < 0.5 else 0)


def valid_case(config: Config, seed: int) -> Case:
    """A valid program against some memory."""
    rng = random.Random(seed)
    program = random_program(config, seed, length=rng.choice(LENGTHS))
    return Case(program=program, timing=random_timing(rng))


def long_case(config: Config, seed: int) -> Case:
    """A program whose instructions take long, and race."""
    rng = random.Random(seed)
    program = random_program(config, seed, length=rng.choice(LENGTHS))
    return Case(program=lengthen(program, rng), timing=random_timing(rng))


def wrong_case(config: Config, seed: int) -> Case:
    """A program with something wrong in it, or a bus that fails somewhere."""
    rng = random.Random(seed)
    program = random_program(config, seed, length=rng.choice(LENGTHS))
    program, failing = inject_fault(program, rng)
    return Case(program=program, timing=random_timing(rng), failing=failing, limit=WRONG_LIMIT)


def check_case(case: Case, *, right: bool) -> Comparison:
    """Compare a case; a right one must also leave the memory of the functional simulator."""
    comparison = compare_case(case)
    if right and not comparison.differences:
        expected = Functional(case.program)
        expected.run()
        assert comparison.rtl.memory is not None, comparison.rtl.words
        for segment, ours, theirs in zip(case.program.segments, comparison.rtl.memory,
                                         expected.memory.segments, strict=True):
            if not (ours == theirs).all():
                raise MicrotronError(f"{dict(case.program.provenance)}: hardware and twin agree "
                                     f"on segment {segment.name}, but not with the functional "
                                     f"simulator")
    return comparison
