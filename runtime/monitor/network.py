"""A network in a board's memory: loaded through the monitor, and run there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...base import arrays
from ...base.checked_values import list_names, show_name
from ...base.errors import ExecutionError
from ...isa.faults import Fault
from ...isa.registers import register_map
from ..models.tensors import convert_inputs
from .client import Monitor
from .image import VERSION, NetworkImage, Place
from .protocol import Outcome, Status

Array = arrays.Array
Arrays = dict[str, Array]

HANG_SECONDS = 10               # that a program has on the accelerator
RUN_SECONDS = 600               # and the whole network, most of it perhaps on a slow processor
MOST_CYCLES = (1 << 32) - 1     # that the monitor can count to


class BoardNetwork:
    """A network in a board's memory."""

    def __init__(self, monitor: Monitor, content: bytes):
        hello = monitor.hello()
        if hello.version != VERSION:
            raise ExecutionError(f"{monitor.place}the monitor has version {hello.version}, but "
                                 f"this kit has {VERSION}; build the bitstream anew")
        self.monitor, self.clock_hz = monitor, hello.clock_hz
        self.image = NetworkImage(content, hello.memory)
        monitor.load(content, self.image.memory_bytes, hello.memory)
        self.reset()

    def reset(self) -> None:
        """Forget what was before: states are what the network begins with."""
        for name, content in self.image.initials.items():
            self.monitor.write(self.image.states[name].address, content)

    def read_state(self, name: str) -> Array:
        """What a state holds after the last inference."""
        return self._read(self._state(name))

    def write_state(self, name: str, value: object, *, allow_nan: bool = False) -> None:
        """What a state holds for the next inference, checked as an input is."""
        place = self._state(name)
        array = convert_inputs({name: place.type}, {name: value}, allow_nan=allow_nan)[name]
        self.monitor.write(place.address, array.tobytes())

    def _state(self, name: str) -> Place:
        if name not in self.image.states:
            raise ExecutionError(f"there is no state {show_name(name)}; the network has "
                                 f"{list_names(list(map(show_name, self.image.states))) or 'none'}")
        return self.image.states[name]

    def run(self, inputs: Mapping[str, Array], *, timeout: int | None = None,
            patience: int | None = None, allow_nan: bool = False) -> tuple[Arrays, Outcome]:
        """One inference. Real numbers for a quantized input are quantized by its own scale.

        timeout     cycles after which the accelerator hangs; by default ten seconds
        patience    cycles that the whole inference may take; by default ten minutes
        allow_nan   compute with inputs that hold NaN, which are refused otherwise
        """
        timeout = min(HANG_SECONDS * self.clock_hz, MOST_CYCLES) if timeout is None else timeout
        if patience is None:
            patience = max(RUN_SECONDS * self.clock_hz, 2 * timeout)
        if not 0 < timeout <= MOST_CYCLES:
            raise ExecutionError(f"timeout is {timeout} cycles, but the monitor counts from 1 to "
                                 f"{MOST_CYCLES:,}")
        types = {name: place.type for name, place in self.image.inputs.items()}
        for name, array in convert_inputs(types, inputs, allow_nan=allow_nan).items():
            self.monitor.write(self.image.inputs[name].address, array.tobytes())
        outcome = self.monitor.run(timeout, patience)
        if outcome.status is not Status.DONE:
            raise ExecutionError(self.explain(outcome))
        return {name: self._read(place) for name, place in self.image.outputs.items()}, outcome

    def _read(self, place: Place) -> Array:
        data = self.monitor.read(place.address, place.bytes)
        return np.frombuffer(data, place.dtype).reshape(place.shape)

    def explain(self, outcome: Outcome) -> str:
        """Why a run did not end well."""
        return f"{self.image.name}: {reason(outcome, self._stage(outcome.stage))}"

    def _stage(self, number: int) -> str:
        return f"stage {number} ({self.image.stage(number)})" if number < self.image.stages else ""


def reason(outcome: Outcome, stage: str) -> str:
    """The status of a run in words."""
    first, second, third, _ = outcome.details
    match outcome.status:
        case Status.NOT_AN_ACCELERATOR | Status.WRONG_CONFIGURATION:
            names = {each.offset: each.name for each in register_map()}
            return (f"the accelerator's register {names.get(first, hex(first))} is {second:#x}, "
                    f"but the network needs {third:#x}: another bitstream")
        case Status.FAULT:
            return (f"{stage}: the accelerator stopped at instruction {second}: "
                    f"{Fault(first).name.lower() if first in set(Fault) else f'fault {first}'}")
        case Status.HUNG:
            return f"{stage}: the accelerator did not end in time, and was reset"
        case Status.DEAD:
            return f"{stage}: the accelerator did not end in time, and cannot be reset"
        case Status.TRAP:
            return f"the processor met trap {first} at {second:#x}, with {third:#x}"
        case Status.KERNEL:
            return f"{stage}: kernel {first} met an index outside its axis"
        case Status.BAD_IMAGE:
            return "the image in memory is damaged; load it again"
        case _:
            return outcome.status.name.lower().replace("_", " ")
