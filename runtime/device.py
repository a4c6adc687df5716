"""Devices: anything that holds a program's memory and runs it. Nothing above can tell them apart.

A program is loaded once and run as often as wanted; between runs the host exchanges inputs and
outputs by segment and offset. Devices are known by name and imported when one is asked for, so
that a board's driver needs no simulator and a simulator no driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..isa.config import Config
from ..isa.errors import ExecutionError, MicrotronError
from ..isa.program import Access, Program, Tensor
from ..sim.functional.memory import from_bytes, to_bytes
from ..sim.report import Report

# Name → module beside this one and class in it.
DEVICES = {"functional": ("functional", "FunctionalDevice"), "cycle": ("cycle", "CycleDevice"),
           "rtl": ("rtl", "RtlDevice")}

Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Address:
    """A byte of a program's memory. Where a segment really lies is the device's own affair."""

    segment: str
    offset: int = 0


class Device(Protocol):
    """Runs one program at a time."""

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


def open_device(name: str, config: Config | None = None) -> Device:
    """The device of that name, for one configuration (or, where it can be, for any)."""
    if name not in DEVICES:
        raise MicrotronError(f"there is no device {name!r}; there are {', '.join(DEVICES)}")
    module, kind = DEVICES[name]
    device: Device = getattr(import_module(f".{module}", __package__), kind)(config)
    return device


def run(program: Program, inputs: Mapping[str, npt.ArrayLike],
        device: str | Device = "functional") -> tuple[dict[str, Values], Report]:
    """Write inputs, run, and read every tensor that lies where the accelerator may write.

    Inputs that are not given keep what the program's image holds.
    """
    if isinstance(device, str):
        device = open_device(device, program.config)
    device.load(program)
    for name, values in inputs.items():
        tensor = program.tensor(name)
        device.write(Address(tensor.segment, tensor.offset), to_bytes(tensor, values))
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


def check_config(program: Program, config: Config) -> None:
    """Refuse a program compiled for another configuration than a device has."""
    ours, theirs = config.to_dict(), program.config.to_dict()
    differing = [f"{name} {theirs[name]} (here {ours[name]})" for name in ours
                 if ours[name] != theirs[name]]
    if differing:
        raise ExecutionError(f"the program is for another configuration than this device has: "
                             f"{', '.join(differing)}")
