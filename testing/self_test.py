"""Whether a device does what the exact simulator says; if not, where the two part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..base.errors import ExecutionError
from ..isa.config import Config
from ..isa.instructions import Instruction, Sync, SyncAction
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Access, Program, Segment
from ..isa.stream import decode, encode
from ..isa.verification.bounds import place_of
from ..isa.verification.derive_tokens import with_tokens
from ..runtime.board.board_device import BoardDevice
from ..runtime.board.diagnosis import check_memory, check_registers
from ..runtime.board.link import LinkError
from ..runtime.devices.cycle import CycleDevice
from ..runtime.devices.device import Address, Bytes, Device
from .instruction_programs import instruction_programs

DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"
SEGMENT_BYTES = 4096 + 133          # of the memory check: more than a page, and an odd end
EDGES = ((0, 1), (1, 1), (3, 6), (64, 256), (4090, 20), (SEGMENT_BYTES - 7, 7))
EXACT = ("cycle", "rtl")            # devices whose cycles are the simulator's


@dataclass(frozen=True)
class Check:
    """One line of a self-test."""

    name: str
    problem: str = ""               # where device and simulator part; empty if they do not
    cycles: int | None = None       # of the device
    expected: int | None = None     # of the simulator

    @property
    def passed(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class Outcome:
    """What became of a program: the memory that it may write, or why it did not end."""

    said: str
    cycles: int | None
    memory: dict[str, Bytes]


def self_test(device: Device, config: Config, timing: MemoryTiming | None = None, *,
              tell: Callable[[str], None] = lambda what: None) -> Iterator[Check]:
    """Registers and memory of a board, memory through the device, every instruction, and the
    programs of a network.

    timing      of the DRAM: what the device has, if it is one with exact cycles
    tell        is told what comes next
    """
    if isinstance(device, BoardDevice):
        for name, check in (("registers", check_registers), ("memory of the board", check_memory)):
            tell(f"checking {name}")
            yield Check(name, check(device) or "")
    tell("checking memory")
    yield Check("memory", find_memory_fault(device, config) or "")
    comparison = Comparison(device, CycleDevice(config, timing=timing))
    for each in instruction_programs(config):
        tell(f"running {each.name}")
        yield comparison.check(each.name, each.program, each.instructions)
    tell("compiling the digits network")
    programs = digits_programs(config)
    for number, program in enumerate(programs, 1):
        tell(f"running program {number} of {len(programs)} of the digits network")
        name = "digits" if len(programs) == 1 else f"digits, program {number}"
        yield comparison.check(name, program, range(len(program.code) - 1))


def digits_programs(config: Config) -> tuple[Program, ...]:
    """The digits network's programs for the accelerator, with inputs of random bytes."""
    from ..runtime.models.compilation import ModelOptions, compile_model

    model = compile_model(DIGITS, config, ModelOptions(), version="")
    return tuple(fill_segments(program) for program in model.programs)


def fill_segments(program: Program) -> Program:
    """The program with random bytes where its image has none."""
    rng = np.random.default_rng(len(program.code))
    return replace(program, segments=tuple(
        each if each.data is not None else
        replace(each, data=rng.integers(0, 256, each.size, np.uint8))
        for each in program.segments))


def find_memory_fault(device: Device, config: Config) -> str | None:
    """Write and read bytes with all kinds of edges; nothing else may change."""
    rng = np.random.default_rng(0)
    segments = tuple(Segment(name, SEGMENT_BYTES, Access.WRITE) for name in ("first", "second"))
    device.load(Program(config, encode([Sync(action=SyncAction.END)]), segments))
    known = {each.name: np.zeros(SEGMENT_BYTES, np.uint8) for each in segments}
    for offset, size in EDGES:
        for name, content in known.items():
            content[offset:offset + size] = rng.integers(0, 256, size, np.uint8)
            device.write(Address(name, offset), content[offset:offset + size].copy())
    found = {name: device.read(Address(name), SEGMENT_BYTES) for name in known}
    return first_difference(found, known)


class Comparison:
    """Runs programs on a device and on the exact simulator."""

    def __init__(self, device: Device, simulator: Device):
        self.device, self.simulator = device, simulator

    def check(self, name: str, program: Program, instructions: range) -> Check:
        """Compare a program; if the two part, find the first of `instructions` that matters."""
        found, right = (outcome_of(each, program) for each in (self.device, self.simulator))
        problem = self._part(found, right)
        if problem:
            problem += self._locate(program, instructions)
        return Check(name, problem, found.cycles, right.cycles)

    def _part(self, found: Outcome, right: Outcome) -> str:
        if found.said != right.said:
            return f"it says: {found.said or 'done'}; the simulator: {right.said or 'done'}"
        difference = first_difference(found.memory, right.memory)
        if difference is not None:
            return difference
        if self.device.name in EXACT and found.cycles != right.cycles:
            return f"it takes {found.cycles} cycles, but the simulator {right.cycles}"
        return ""

    def _locate(self, program: Program, instructions: range) -> str:
        """The instruction with which the two part: they agree on the program without it and all
        that follow in `instructions`."""
        code = list(decode(program.code))
        agree, part = instructions.start, instructions.stop
        if self._do_part(program, code[:agree] + code[part:]):
            return "; they part before the first instruction that is tested"
        while part - agree > 1:
            middle = (agree + part) // 2
            if self._do_part(program, code[:middle] + code[instructions.stop:]):
                part = middle
            else:
                agree = middle
        return f"; they part at {place_of(code[part - 1], part - 1)}"

    def _do_part(self, program: Program, code: list[Instruction]) -> bool:
        shorter = with_tokens(replace(program, code=encode(code)))
        return bool(self._part(*(outcome_of(each, shorter)
                                 for each in (self.device, self.simulator))))


def outcome_of(device: Device, program: Program) -> Outcome:
    """Run a program. A board that does not answer is nobody's outcome: LinkError."""
    device.load(program)
    said, cycles = "", None
    try:
        cycles = device.run().cycles
    except LinkError:
        raise
    except ExecutionError as error:
        said = str(error)
    memory = {each.name: device.read(Address(each.name), each.size)
              for each in program.segments if each.access == Access.WRITE}
    return Outcome(said, cycles, memory)


def first_difference(found: dict[str, Bytes], right: dict[str, Bytes]) -> str | None:
    """The first byte that is not as it must be, in words."""
    for name, content in right.items():
        wrong = np.flatnonzero(found[name] != content)
        if len(wrong):
            first = int(wrong[0])
            return (f"byte {first} of segment {name} is {found[name][first]}, but must be "
                    f"{content[first]}; {len(wrong)} of {len(content)} bytes differ")
    return None
