"""Instructions a second of the verifier, and of token derivation, on long streams."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from common import Column, Outcome, best_of, main, quantity

from microtron.isa.config import Config
from microtron.isa.config_files import load_config
from microtron.isa.instructions import (
    Buffer,
    Engines,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import decode, encode, encode_micro_ops
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.isa.verification.verifier import verify
from microtron.testing.random_programs import random_program

TILES = 128         # of each half of a scratchpad


def layer(config: Config, length: int) -> Program:
    """A double-buffered convolution-like stream: load, gemm, requantize, store, over and over."""
    micro_ops = [MicroOp(dst=half * TILES, src=half * TILES) for half in (0, 1)]
    data = np.frombuffer(encode_micro_ops(micro_ops).tobytes(), np.uint8)
    tile = config.tile_bytes(Buffer.INP)
    segments = (Segment("micro_ops", 16, Access.READ, data),
                Segment("memory", 4096 * TILES * tile, Access.WRITE))
    code: list[Instruction] = [Load(buffer=Buffer.UOP, shape=(1, 1, 2)),
                               Load(buffer=Buffer.WGT, segment=1)]
    for step in range((length - 3) // 4):
        half, at = step % 2 * TILES, step % 2000 * TILES * tile
        code += [
            Load(segment=1, sram=half, offset=at, shape=(1, 1, TILES)),
            Gemm(flags=GemmFlags.START, uop=step % 2, loops=(1, 1, TILES),
                 dst_stride=(0, 0, 1), src_stride=(0, 0, 1)),
            Requantize(dst=half, src=half, params=4 * TILES, loops=(1, 1, TILES),
                       dst_stride=(0, 0, 1), src_stride=(0, 0, 1)),
            Store(segment=1, sram=half, offset=at + 2000 * TILES * tile, shape=(1, 1, TILES))]
    return with_tokens(Program(config, encode([*code, Sync()]), segments))


def random_stream(config: Config, length: int) -> Program:
    """Random instructions that conflict as often as they can, one random program repeated."""
    program = random_program(config, 0, length=200)
    body = [replace(each, wait=Engines(0), post=Engines(0)) for each in decode(program.code)]
    repeated = body[:-1] * (length // (len(body) - 1)) + [Sync()]
    return with_tokens(replace(program, code=encode(repeated)))


def measure(options: argparse.Namespace) -> Outcome:
    config = load_config(options.config)
    rows = []
    for name, build in (("layer", layer), ("random", random_stream)):
        program = build(config, options.length)
        for task, function in (("verify", verify), ("derive tokens", with_tokens)):
            seconds, _ = best_of(lambda: function(program), options.repeat)  # noqa: B023
            rows.append({"stream": name, "task": task, "instructions": len(program.code),
                         "seconds": seconds, "rate": len(program.code) / seconds})
    columns = (Column("stream", "stream"), Column("task", "task"),
               Column("instructions", "instructions", "{:,}".format),
               Column("seconds", "time", quantity("s")),
               Column("rate", "rate", quantity("instr/s")))
    return Outcome(benchmark="verifier", title="Stream verifier", columns=columns, rows=rows,
                   facts={"config": options.config})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", default="base")
    parser.add_argument("--length", type=int, default=100_000, help="instructions")
    parser.add_argument("--repeat", type=int, default=3)


if __name__ == "__main__":
    main(measure, __doc__, arguments)
