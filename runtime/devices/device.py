"""Devices: anything that holds a program's memory and runs it. Nothing above can tell them apart.

A program is loaded once and run as often as wanted; between runs the host exchanges inputs and
outputs by segment and offset. Devices are known by name and imported when one is asked for, so
that a board's driver needs no simulator and a simulator no driver.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ...base import arrays
from ...base.checked_values import quote
from ...base.classes.dataclass import dataclass
from ...base.errors import ExecutionError, MicrotronError
from ...base.keywords import check_keywords
from ...isa.config import Config, tiny
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Access, Program, Tensor
from ...sim.arguments import check_program, check_type, resolve_config
from ...sim.functional.memory import from_bytes, to_bytes
from ...sim.report import Report

Array = arrays.Array
if TYPE_CHECKING:
    from ...sim.functional.order import Order

# Name → module beside this one and class in it.
DEVICES = {"functional": ("functional", "FunctionalDevice"), "cycle": ("cycle", "CycleDevice"),
           "rtl": ("rtl", "RtlDevice")}
# Boards are known by what they are called and where they are: board:pynq_z2@/dev/uio0.
BOARD, BOARD_FORM = "board:", "board:NAME@ADDRESS"
PARAMETERS = {"memory": "timing"}       # options that constructors of devices call otherwise

Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Address:
    """A byte of a program's memory. Where a segment really lies is the device's own affair."""

    segment: str
    offset: int = 0


class Device(Protocol):
    """Anything that runs programs, one at a time: a simulator, the RTL, a board."""

    @property
    def name(self) -> str:
        """What it is called in `DEVICES`."""

    def load(self, program: Program) -> None:
        """Take over a program: its segments now hold what they hold at the start.

        A program for another configuration than the device's is refused.
        """

    def write(self, address: Address, data: Bytes | bytes) -> None:
        """Change memory of the loaded program. Every segment may be written by the host."""

    def read(self, address: Address, size: int) -> Bytes:
        """A copy of memory of the loaded program."""

    def run(self) -> Report:
        """Run the loaded program to its end, or raise ExecutionError."""


@check_keywords
def open_device(name: str, config: Config | str | None = None, *,
                memory: MemoryTiming | None = None, limit: int | None = None,
                order: Order | None = None, waveform: Path | str | None = None) -> Device:
    """Open a device: "functional", "cycle", "rtl" or a board, such as
    "board:ulx3s@/dev/ttyUSB0".

    config      the configuration that it has; any that a program asks for unless given
    memory      timing of the DRAM (cycle, rtl); the reference system unless given
    limit       cycles after which a run is given up; steps of the functional device
    order       in which engines take turns (functional): `Adversarial(seed)`
    waveform    .vcd or .fst file to write (rtl)

    An option that the device does not have is refused.
    """
    fixed: dict[str, str] = {}
    if isinstance(name, str) and name.startswith(BOARD):
        module, kind = ".board.board_device", "BoardDevice"
        fixed["place"] = name
    elif isinstance(name, str) and name in DEVICES:
        module, kind = DEVICES[name]
    else:
        near = difflib.get_close_matches(str(name)[:40], DEVICES, 1)
        raise MicrotronError(f"there is no device {quote(name)}; there are {', '.join(DEVICES)} "
                             f"and {BOARD_FORM}{f'; did you mean {near[0]}?' if near else ''}")
    make = getattr(import_module(f".{module}", __package__), kind)
    given = {"memory": memory, "limit": limit, "order": order, "waveform": waveform}
    known = [each for each in given if PARAMETERS.get(each, each)
             in inspect.signature(make).parameters]
    for option, value in given.items():
        if value is not None and option not in known:
            raise MicrotronError(f"the {name} device has no option {option!r}; it has "
                                 f"{', '.join(known)}")
    device: Device = make(config, **fixed, **{PARAMETERS.get(each, each): given[each]
                                              for each in known})
    return device


@check_keywords
def run(program: Program, inputs: Mapping[str, npt.ArrayLike],
        device: str | Device = "functional") -> tuple[dict[str, Values], Report]:
    """Run a program on a device: write the inputs, run, read every tensor that the accelerator
    may write.

    inputs      arrays by the names of the program's tensors; those that are not given keep what
                the image holds
    device      the name of a device, or one that `open_device` returned

    Returns the outputs by name, and a Report.
    """
    check_program(program)
    check_type("inputs", inputs, Mapping, "a mapping from tensors' names to their values")
    if isinstance(device, str):
        device = open_device(device, program.config)
    if not callable(getattr(device, "load", None)):
        raise MicrotronError(f"device is {quote(device)}, but must be a device or the name of one: "
                             f"{', '.join(DEVICES)}, {BOARD_FORM}")
    given = {name: to_bytes(program.tensor(name), _array(name, values))
             for name, values in inputs.items()}
    device.load(program)
    for name, data in given.items():
        tensor = program.tensor(name)
        device.write(Address(tensor.segment, tensor.offset), data)
    report = device.run()
    outputs = {}
    for tensor in outputs_of(program):
        data = device.read(Address(tensor.segment, tensor.offset), tensor.size)
        outputs[tensor.name] = from_bytes(tensor, data)
    return outputs, report


def outputs_of(program: Program) -> list[Tensor]:
    """The tensors that a run can change: those that lie where the accelerator may write."""
    return [tensor for tensor in program.tensors
            if program.segment(tensor.segment).access == Access.WRITE]


def check_outputs(program: Program, names: Iterable[str]) -> None:
    """Refuse to read tensors after a run that it does not write."""
    outputs = [tensor.name for tensor in outputs_of(program)]
    for name in names:
        if program.tensor(name).name not in outputs:
            raise MicrotronError(f"tensor {name!r} is no output: the accelerator may only read it; "
                                 f"outputs are {', '.join(outputs) or 'none'}")


def _array(name: str, values: npt.ArrayLike) -> Array:
    try:
        return arrays.to_array(values)
    except Exception:                   # of whatever library made it
        raise MicrotronError(f"tensor {name}: the values are no array: {quote(values)}") from None


def device_config(config: Config | str | None) -> Config | None:
    """The configuration that a device is for, also by its name or file; None if for any."""
    return None if config is None else resolve_config(config, tiny)


def device_timing(timing: MemoryTiming | None) -> MemoryTiming:
    """How memory behaves; the reference system unless told otherwise."""
    if timing is None:
        return MemoryTiming()
    check_type("memory", timing, MemoryTiming, "a MemoryTiming")
    return timing


def check_config(program: Program, config: Config | None) -> None:
    """Refuse a program compiled for another configuration than a device has, if it has one."""
    check_program(program)
    ours, theirs = (config or program.config).to_dict(), program.config.to_dict()
    differing = [f"{name} {theirs[name]} (here {ours[name]})" for name in ours
                 if ours[name] != theirs[name]]
    if differing:
        raise ExecutionError(f"the program is for another configuration than this device has: "
                             f"{', '.join(differing)}")
