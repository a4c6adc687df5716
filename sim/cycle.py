"""The cycle-exact simulator: the accelerator's own cycles, without its hardware."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..isa.bounds import check
from ..isa.config import Config
from ..isa.errors import ExecutionError
from ..isa.faults import Fault
from ..isa.instructions import Buffer, Engine, Load
from ..isa.program import Program
from ..isa.registers import counter_names
from ..isa.stream import positions_of
from ..isa.timing import MemoryTiming
from .decoded import decoded
from .memory import Memory
from .placement import placed
from .scratchpads import unpack
from .timeline import Timeline

NO_LIMIT = (1 << 62)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a program did until it stopped."""

    cycles: int
    counters: dict[str, int]        # by isa.registers.counter_names
    timeline: Timeline
    fault: Fault                    # NONE if the program reached its end
    fault_position: int
    stuck: bool                     # it never stops, or had not when the limit was reached


def run_cycles(program: Program, *, config: Config | None = None,
               timing: MemoryTiming | None = None, limit: int | None = None,
               failing: range = range(0), skip: bool = True) -> Run:
    """Run a program for its time only: no tensor is touched.

    config      another accelerator than the program was made for, with the same tiles and
                scratchpads: what may differ is the bus, the queues, the banks
    timing      how memory behaves; the reference system unless told otherwise
    limit       cycles after which to give up
    failing     DRAM addresses that answer with a bus error
    skip        False: go through every single cycle, which gives the same more slowly
    """
    from . import kernel, machine
    config = config or program.config
    _check(config, program.config)
    count, bases = len(program.code), placed(program)
    code = decoded(program.code, config, program.segments, bases[1:])
    micro_ops = _micro_ops(program)
    registers = machine.at_rest()
    times, waits = np.full((count, 3), -1, np.int64), np.zeros((count, len(Engine)), np.int64)
    stuck = kernel.simulate(
        registers, np.zeros(1, machine.WIRES), code, machine.settings(config, count, bases[0]),
        machine.timing_of(timing or MemoryTiming(), config.bus_bytes, failing), _positions(code),
        np.zeros((config.tiles(Buffer.UOP), 4), np.uint16), micro_ops.tile, micro_ops.values,
        micro_ops.span, times, waits, machine.floors(config), limit or NO_LIMIT, skip)
    end = registers[0]["control"]
    return Run(cycles=int(end["now"]),
               counters={name: int(registers[0]["counts"][name]) for name in counter_names()},
               timeline=Timeline(dispatched=times[:, 0], start=times[:, 1], end=times[:, 2],
                                 waits=waits),
               fault=Fault(int(end["fault"])), fault_position=int(end["fault_position"]),
               stuck=bool(stuck))


def _check(config: Config, made_for: Config) -> None:
    """Refuse an accelerator on which the program would mean something else."""
    ours, theirs = config.to_dict(), made_for.to_dict()
    differing = [f"{name} {theirs[name]} (asked for {ours[name]})" for name in ours
                 if ours[name] != theirs[name] and name not in FREE]
    if differing:
        raise ExecutionError(f"the program is for another accelerator: {', '.join(differing)}; "
                             f"only {', '.join(FREE)} may differ")


# Fields of a configuration on which a program's meaning does not depend.
FREE = ("acc_banks", "bus_bits", "queue_depth", "token_bits", "reads_in_flight",
        "writes_in_flight")


def _positions(code: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """The positions of each engine's instructions, in order."""
    each = [np.flatnonzero((code["engine"] == engine) & (code["legal"] != 0)) for engine in Engine]
    table = np.zeros((len(Engine), max(map(len, each)) + 1), np.int64)
    for engine, positions in enumerate(each):
        table[engine, :len(positions)] = positions
    return table


@dataclass(frozen=True)
class MicroOps:
    """What loads of micro-ops bring, by instruction: the scratchpad's tiles `tile[span[0]:span[1]]`
    get these values."""

    tile: npt.NDArray[np.int64]
    values: npt.NDArray[np.uint16]
    span: npt.NDArray[np.int64]


def _micro_ops(program: Program) -> MicroOps:
    """Read them from the segments as they are now."""
    config, memory = program.config, Memory(program)
    span = np.zeros((len(program.code), 2), np.int64)
    tiles, values, count = [np.zeros(0, np.int64)], [np.zeros((0, 4), np.uint16)], 0
    positions, words = positions_of(program.code, Load)
    mine = words["buffer"] == Buffer.UOP
    for position, load in zip(positions[mine].tolist(), Load.of_all(words[mine]), strict=True):
        if not _reaches(load, program, config):
            continue            # it never ends
        loaded = unpack(memory.load_box(load, config.tile_bytes(Buffer.UOP)), Buffer.UOP, config)
        z, y, x = load.shape
        index = (load.sram + np.arange(z)[:, None] * load.sram_pitch
                 + np.arange(y * x)[None, :]).ravel()
        tiles.append(index)
        values.append(loaded.reshape(-1, 4))
        span[position] = count, count + len(index)
        count += len(index)
    return MicroOps(np.concatenate(tiles), np.concatenate(values), span)


def _reaches(load: Load, program: Program, config: Config) -> bool:
    """Whether a load touches only what there is."""
    try:
        check(load, config, program.segments, NO_MICRO_OPS)
    except ExecutionError:
        return False
    return True


NO_MICRO_OPS = np.zeros((0, 4), np.uint16)
