"""Networks that remember: frames one after the other, and states in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict

import typer

from ..base.errors import MicrotronError
from .tensors import output_files, read_inputs

if TYPE_CHECKING:
    from ..compiler.graph.types import Array, TensorType
    from ..isa.memory_timing import MemoryTiming
    from ..runtime.models.model import Model
    from ..runtime.models.result import Result
    from ..sim.functional.order import Order


class DeviceOptions(TypedDict, total=False):
    """What a device is told, as `open_device` and `session` take it."""

    memory: MemoryTiming
    limit: int | None
    order: Order
    waveform: Path


class RunOptions(DeviceOptions, total=False):
    """What a run of a network is told."""

    allow_nan: bool


AllFrames = Annotated[bool, typer.Option(
    "--frames", help="Of a network: each input has an axis of frames before its own, all as many. "
                     "They are run one after the other, states are kept, and outputs have that "
                     "axis too.")]

StatesIn = Annotated[list[str] | None, typer.Option(
    "--state-in", metavar="STATE=FILE.npy",
    help="What a state of a network holds first, instead of what the model begins with.")]

StatesOut = Annotated[list[str] | None, typer.Option(
    "--state-out", metavar="STATE=FILE.npy", help="Save a state after the last frame.")]


class FrameOptions(NamedTuple):
    """What `microtron run` was told about frames and states."""

    all_frames: bool = False
    states_in: list[str] | None = None
    states_out: list[str] | None = None

    def check_unused(self, reason: str) -> None:
        """Refuse these options where there is no network."""
        for option, given in zip(("--frames", "--state-in", "--state-out"), self, strict=True):
            if given:
                raise MicrotronError(f"{option} is for networks; {reason}")

    def files_out(self, states: Mapping[str, TensorType]) -> dict[str, Path]:
        return output_files(self.states_out, states, "--state-out")

    def read_states(self, states: Mapping[str, TensorType]) -> dict[str, Array]:
        return read_inputs(self.states_in, states, "--state-in")

    def read_frames(self, inputs: list[str] | None,
                    types: Mapping[str, TensorType]) -> tuple[int, dict[str, Array]]:
        """How many frames there are, and the inputs: with an axis of frames, or of the only one."""
        given = read_inputs(inputs, types, frames=self.all_frames)
        if not self.all_frames:
            return 1, given
        counts = {name: len(array) for name, array in given.items()}
        if not given or min(counts.values()) == 0 or len(set(counts.values())) > 1:
            from ..base.checked_values import list_names, show_name
            found = list_names([f"{show_name(name)} has {count}" for name, count in counts.items()])
            raise MicrotronError(f"--frames: {found or 'no input is given'}, but all inputs must "
                                 f"have as many frames, from 1 on")
        return next(iter(counts.values())), given

    def split(self, count: int, given: dict[str, Array]) -> Iterator[dict[str, Array]]:
        """The inputs of each frame."""
        for number in range(count):
            yield {name: array[number] if self.all_frames else array
                   for name, array in given.items()}


class Frames(NamedTuple):
    """What a sequence of frames gave."""

    last: Result
    outputs: dict[str, Array]               # with an axis of frames if inputs have one
    states: dict[str, Array]                # after the last one
    cycles: int | None                      # of all frames


def run_frames(model: Model, device: str, options: RunOptions, chosen: FrameOptions,
               given: tuple[int, dict[str, Array]], tell: Callable[[str], None]) -> Frames:
    """Run all frames in a session."""
    import numpy as np

    types = {name: each.type for name, each in model.states.items()}
    states = chosen.read_states(types)
    outputs: dict[str, list[Array]] = {name: [] for name in model.outputs}
    cycles: int | None = 0
    with model.session(device, **options) as session:
        for name, array in states.items():
            session.state[name] = array
        for number, frame in enumerate(chosen.split(*given), 1):
            if chosen.all_frames:
                tell(f"running on {device}, frame {number} of {given[0]}")
            last = session.run(frame)
            for name, found in outputs.items():
                found.append(last[name])
            cycles = None if cycles is None or last.cycles is None else cycles + last.cycles
        after = dict(session.state)
    return Frames(last, {name: np.stack(found) if chosen.all_frames else found[0]
                         for name, found in outputs.items()}, after, cycles)
