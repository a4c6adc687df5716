"""The control registers, declared once: hardware, drivers, simulators and the manual ask here.

Registers are 32 bits wide and four bytes apart. Numbers of 64 bits take two, the low half first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import IntFlag
from functools import cache

from ..base.classes.dataclass import dataclass
from .config import Config
from .instructions import ISA_VERSION, POSITION_BITS, SEGMENTS, Engine

IDENTITY = 0x4D54524E       # "MTRN"
REGISTER_BYTES = 4
WINDOW_BYTES = 4096         # of address space that the registers take


class Control(IntFlag):
    """What writing the control register does."""

    START = 1 << 0          # clear status, faults, tokens and counters, then run the program
    INTERRUPT_ENABLE = 1 << 1   # raise the interrupt line whenever a program stops


class Status(IntFlag):
    """What reading the status register tells."""

    RUNNING = 1 << 0
    DONE = 1 << 1           # the program reached its end
    FAILED = 1 << 2         # the program was stopped by a fault
    INTERRUPT = 1 << 3      # the line is raised; writing this bit lowers it


@dataclass(frozen=True)
class Register:
    """One register at its byte offset."""

    name: str
    offset: int
    doc: str
    writable: bool = False


COUNTER_DOCS = {
    "busy": "cycles in which it worked on an instruction",
    **{f"wait_{engine.name.lower()}": f"cycles in which it waited for a token from "
                                      f"{engine.name.lower()}" for engine in Engine},
    "wait_memory": "cycles in which it waited for DRAM",
    "bytes": "bytes moved to or from DRAM",
}


@cache
def counter_names() -> tuple[str, ...]:
    """Every performance counter: the total, then those of each engine."""
    names = ["cycles", "instructions"]
    for engine in Engine:
        names += [f"{engine.name.lower()}_{counter}" for counter in COUNTER_DOCS
                  if counter != f"wait_{engine.name.lower()}"
                  and (counter not in ("wait_memory", "bytes")
                       or engine in (Engine.LOAD, Engine.STORE))]
    return tuple(names)


def counters_of(config: Config) -> tuple[str, ...]:
    """Those that the accelerator has; the registers of others read zero."""
    return ("cycles",) if config.cycles_only else counter_names()


def _head() -> list[Register]:
    return [
        Register("identity", 0x000, f"{IDENTITY:#x}, \"MTRN\""),
        Register("isa_version", 0x004, "version of the instruction set"),
        Register("control", 0x008, "start, interrupt enable", writable=True),
        Register("status", 0x00C, "running, done, failed, interrupt", writable=True),
        Register("fault", 0x010, "cause of a failure"),
        Register("fault_position", 0x014, "number of the instruction that failed"),
        Register("program_low", 0x020, "address of the first instruction", writable=True),
        Register("program_high", 0x024, "", writable=True),
        Register("program_count", 0x028,
                 f"instructions in the program: fewer than 2**{POSITION_BITS}", writable=True),
    ]


def _segment_registers() -> list[Register]:
    registers = []
    for number in range(SEGMENTS):
        start = 0x040 + 16 * number
        registers += [
            Register(f"segment{number}_low", start, "base address, a multiple of 4096",
                     writable=True),
            Register(f"segment{number}_high", start + 4, "", writable=True),
            Register(f"segment{number}_size", start + 8, "bytes; 0: no segment", writable=True),
            Register(f"segment{number}_access", start + 12, "bit 0: stores allowed",
                     writable=True),
        ]
    return registers


def register_map() -> tuple[Register, ...]:
    """All registers in order of their offsets. Counters are 64 bits: `_low`, `_high`."""
    registers = _head() + _segment_registers()
    for number, field in enumerate(dataclasses.fields(Config)):
        registers.append(Register(f"config_{field.name}", 0x100 + 4 * number,
                                  str(field.metadata["doc"])))
    for number, name in enumerate(counter_names()):
        registers += [Register(f"{name}_low", 0x200 + 8 * number, "counter"),
                      Register(f"{name}_high", 0x204 + 8 * number, "")]
    return tuple(registers)


def identity_of(config: Config) -> dict[str, int]:
    """What the registers read by which an accelerator describes itself. One that hardware does not
    have reads zero: that of a default without one."""
    fields = {f"config_{field.name}": getattr(config, field.name)
              for field in dataclasses.fields(Config)}
    absent = {f"config_{field.name}": 0 for field in dataclasses.fields(Config)
              if not field.metadata["has_register"]
              and getattr(config, field.name) == field.default}
    return {"identity": IDENTITY, "isa_version": ISA_VERSION, **fields, **absent}


def read_config_fields(read: Callable[[str], int]) -> dict[str, int]:
    """The fields of the configuration, by what their registers read; others have their default."""
    fields = {field: read(f"config_{field.name}") for field in dataclasses.fields(Config)}
    return {field.name: value for field, value in fields.items()
            if value or field.metadata["has_register"]}


def offset_of(name: str) -> int:
    """The byte offset of a register."""
    return _OFFSETS[name]


_OFFSETS = {register.name: register.offset for register in register_map()}
