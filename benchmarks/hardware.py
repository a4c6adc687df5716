"""Rates of the hardware, measured on its Verilog: each engine alone, and all four at once."""

from __future__ import annotations

import argparse

import numpy as np
from common import Column, Outcome, main

from microtron.isa.config import PRESETS, Config
from microtron.isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    Instruction,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode, encode_micro_ops
from microtron.runtime.devices.rtl import RtlDevice

STEPS = 100         # of an instruction; a multiple of what shares a beat
UOPS, MEMORY = range(2)


def program(config: Config, *instructions: Instruction) -> Program:
    """The instructions after a load of the one micro-op that gemms use."""
    data = np.frombuffer(encode_micro_ops([MicroOp()]).tobytes(), np.uint8)
    segments = (Segment("micro_ops", len(data), Access.READ, data),
                Segment("memory", 1 << 20, Access.WRITE))
    code = [Load(buffer=Buffer.UOP), Sync(action=SyncAction.BARRIER), *instructions, Sync()]
    return Program(config, encode(code), segments)


def span(device: RtlDevice, *instructions: Instruction) -> tuple[int, int]:
    """Cycles from the first start to the last end, and the cycles in which all engines worked."""
    device.load(program(device.config, *instructions))          # type: ignore[arg-type]
    timeline = device.run().timeline
    assert timeline is not None
    mine = slice(2, 2 + len(instructions))
    start, end = timeline.start[mine], timeline.end[mine]
    engines = {type(each): (first, last) for each, first, last in zip(
        instructions, start.tolist(), end.tolist(), strict=True)}
    together = min(last for _, last in engines.values()) - max(
        first for first, _ in engines.values()) + 1
    return int(end.max() - start.min()), max(0, together)


def cases(config: Config) -> dict[str, tuple[Instruction, int]]:
    """An instruction of `STEPS` steps for each thing that should run at full rate, and the cycles
    that its steps are due."""
    bank = config.acc_bank_tiles
    loops = {"loops": (1, 1, min(STEPS, bank)), "dst_stride": (0, 0, 1)}
    steps = min(STEPS, bank)
    vectors = steps * config.vector_cycles

    def beats(buffer: Buffer) -> int:
        return -(-_tiles(config, buffer) * config.tile_bytes(buffer) // config.bus_bytes)

    def load(buffer: Buffer) -> tuple[Instruction, int]:
        return Load(buffer=buffer, segment=MEMORY, shape=(1, 1, _tiles(config, buffer))), beats(
            buffer)

    def store(buffer: Buffer) -> tuple[Instruction, int]:
        return Store(buffer=buffer, segment=MEMORY, shape=(1, 1, _tiles(config, buffer))), beats(
            buffer)

    return {
        "gemm": (Gemm(loops=(1, 1, steps), dst_stride=(0, 0, 1), src_stride=(0, 0, 1)), steps),
        "gemm, one sum": (Gemm(loops=(1, 1, steps), src_stride=(0, 0, 1)), steps),
        "alu immediate": (AluI(op=AluOp.ADD, src_stride=(0, 0, 1), **loops), vectors),  # type: ignore[arg-type]
        "alu tensor": (Alu(op=AluOp.ADD, lhs=0, rhs=bank % config.tiles(Buffer.ACC),
                           rhs_stride=(0, 0, 1), **loops), vectors),  # type: ignore[arg-type]
        "requantize": (Requantize(src_stride=(0, 0, 1), params=config.tiles(Buffer.ACC) - 3,
                                  **loops), vectors + 3),  # type: ignore[arg-type]
        **{f"load {buffer.name.lower()}": load(buffer)
           for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC)},
        **{f"store {buffer.name.lower()}": store(buffer) for buffer in (Buffer.OUT, Buffer.ACC)},
    }


def _tiles(config: Config, buffer: Buffer) -> int:
    """Enough tiles for some hundreds of beats."""
    return min(config.tiles(buffer), max(STEPS, 512 * config.bus_bytes
                                         // config.tile_bytes(buffer)))


def measure(options: argparse.Namespace) -> Outcome:
    rows = []
    for name in options.configs:
        config = PRESETS[name]
        device = RtlDevice(config)
        for title, (instruction, due) in cases(config).items():
            once, _ = span(device, instruction)
            twice, _ = span(device, instruction, instruction)
            rows.append({"config": name, "what": title, "due": due, "cycles": once,
                         "constant": once - due, "again": twice - once,
                         "rate": due / (twice - once)})
        rows.append(_all_at_once(name, device))
    columns = (Column("config", "config"), Column("what", "what"), Column("due", "due"),
               Column("cycles", "cycles"), Column("constant", "more"),
               Column("again", "second"), Column("rate", "rate", "{:.3f}".format))
    return Outcome(benchmark="hardware", title="Rates of the hardware", columns=columns, rows=rows,
                   facts={"memory": "one beat a cycle, 32 cycles of latency",
                          "due": "steps or beats of one instruction",
                          "second": "cycles that a second one adds, or all engines are busy"})


def _all_at_once(name: str, device: RtlDevice) -> dict[str, object]:
    """LOAD, GEMM, ALU and STORE on banks of their own, without tokens: they must overlap.

    GEMM and ALU are due the same number of cycles; LOAD and STORE share the bus for as long.
    """
    config = PRESETS[name]
    bank = config.acc_bank_tiles
    steps = min(STEPS, bank)
    due = 4 * steps

    def tiles(buffer: Buffer) -> int:
        return due // 2 * config.bus_bytes // config.tile_bytes(buffer)

    work: list[Instruction] = [
        Load(buffer=Buffer.WGT, segment=MEMORY, sram=1, shape=(1, 1, tiles(Buffer.WGT))),
        Store(buffer=Buffer.OUT, segment=MEMORY, offset=1 << 19, shape=(1, 1, tiles(Buffer.OUT))),
        Gemm(loops=(4, 1, steps), dst_stride=(0, 0, 1), src_stride=(0, 0, 1)),
        AluI(op=AluOp.ADD, dst=bank, src=bank, loops=(4, 1, steps // config.vector_cycles),
             dst_stride=(0, 0, 1), src_stride=(0, 0, 1)),
    ]
    cycles, together = span(device, *work)
    return {"config": name, "what": "all four engines", "due": due, "cycles": cycles,
            "constant": cycles - due, "again": together, "rate": together / cycles}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("configs", nargs="*", default=list(PRESETS), metavar="config",
                        help=f"presets to measure: {', '.join(PRESETS)}")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
