"""A network on a board's soft processor: the command that makes its image, and what `microtron run`
does with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import MicrotronError
from .boards import BoardName
from .files import AsJson, check_distinct, name_beside, say, write_table
from .frames import FrameOptions
from .model import ModelFile, check_readable, is_model, open_model
from .options import ModelConfig, ModelInputs, ModelShapes, ModelStates, ModelValues
from .tensors import output_files

if TYPE_CHECKING:
    from ..base.arrays import Array
    from ..boards.facts.board import Board
    from ..runtime.monitor.image import NetworkImage


def firmware(model: ModelFile, board: BoardName, name: ModelConfig = "",
             shapes: ModelShapes = None,
             values: ModelValues = None,
             states: ModelStates = None,
             output: Annotated[Path | None, typer.Option(
                 "--output", "-o", metavar="FILE.elf",
                 help="ELF file to write, with a .bin beside it for the board's monitor. [default: "
                      "MODEL with .elf]")] = None,
             as_json: AsJson = False) -> None:
    """Build a network as firmware for a board's soft processor.

    Kernels, driver and programs in one image. A .tflite or .onnx file is compiled for the board's
    memory, and its preset unless --config is given. Needs gcc and picolibc for RISC-V.

    Example: microtron firmware model.mt --board ulx3s
    """
    from ..base.atomic_files import write_together
    from ..base.progress import report_progress
    from ..boards.facts.catalogue import find_board as board_of
    from ..boards.facts.speed import memory_option
    from ..boards.firmware.image import build_image

    chosen = board_of(board)
    _check_soft(chosen)
    check_readable(model)
    target = output or name_beside(model, ".elf")
    if target.suffix != ".elf":
        raise MicrotronError(f"{target}: firmware is an .elf file, with a .bin file beside it")
    fixed = ModelInputs(shapes, values, states=states)
    if is_model(model) and model.suffix == ".mt":
        network = open_model(model, name, fixed, "")
    else:
        memory = memory_option(chosen) if chosen.memory.timing else ""
        network = open_model(model, name or chosen.preset, fixed, memory)
    with report_progress(f"building firmware for {chosen.name}"):
        image = build_image(network, chosen)
    binary = name_beside(target, ".bin")
    write_together({target: image.elf, binary: image.content})
    if as_json:
        typer.echo(json.dumps({"elf": str(target), "image": str(binary),
                               "bytes": len(image.content), "memory": image.memory_bytes}))
    else:
        say(f"{binary}: {len(image.content):,} bytes, {image.memory_bytes:,} of "
            f"{chosen.memory.bytes:,} bytes of memory")


def is_image(path: Path) -> bool:
    """Whether a file is firmware and no program, as far as its name tells."""
    return path.suffix == ".bin"


def run_image(path: Path, *, device: str, limit: int | None, inputs: list[str] | None,
              outputs: list[str] | None, allow_nan: bool, table: Path | None, as_json: bool,
              frames: FrameOptions) -> None:
    """What `microtron run` does with firmware: all that can be wrong with it is found out before
    the board is asked, since loading it takes its time."""
    import numpy as np

    from ..base.atomic_files import write_together
    from ..base.progress import report_progress
    from ..runtime.board.places import place_of
    from ..runtime.devices.device import BOARD
    from ..runtime.models.tensor_files import array_content
    from ..runtime.models.tensors import convert_inputs
    from ..runtime.monitor.client import Monitor
    from ..runtime.monitor.line import BoardLine, serial_of
    from ..runtime.monitor.network import BoardNetwork
    from ..sim.limit import check_limit

    if not device.startswith(BOARD):
        raise MicrotronError(f"{path} is firmware, which runs on a board's own processor"
                             f"{f', not on {device}' if device else ''}: give --device as in "
                             f"board:ulx3s@/dev/ttyUSB0")
    place = place_of(device)
    address, speed = serial_of(place)
    image = _image_in(path)
    if image.memory_bytes > place.memory_bytes:
        raise MicrotronError(f"{path}: needs {image.memory_bytes:,} bytes of memory, but "
                             f"{place.board} has {place.memory_bytes:,}")
    wanted = output_files(outputs, image.outputs)
    held = {name: each.type for name, each in image.states.items()}
    kept, states = frames.files_out(held), frames.read_states(held)
    check_distinct((*wanted.values(), *kept.values(), table))
    types = {name: each.type for name, each in image.inputs.items()}
    count, arrays = frames.read_frames(inputs, types)
    given = [convert_inputs(types, each, allow_nan=allow_nan)
             for each in frames.split(count, arrays)]
    timeout = None if limit is None else check_limit(limit)
    with (BoardLine(address, clock_hz=place.hz, speed=speed) as line,
          report_progress(f"loading {path}") as tell):
        network = BoardNetwork(Monitor(line, address), image.content)
        for name, array in states.items():
            network.write_state(name, array, allow_nan=allow_nan)
        found: dict[str, list[Array]] = {name: [] for name in wanted}
        for number, frame in enumerate(given, 1):
            tell(f"running{f' frame {number} of {count}' if count > 1 else ''}")
            results, outcome = network.run(frame, timeout=timeout, allow_nan=allow_nan)
            for name, each in found.items():
                each.append(results[name])
        after = {name: network.read_state(name) for name in kept}
    write_together({
        **{file: array_content(np.stack(found[name]) if frames.all_frames else found[name][0])
           for name, file in wanted.items()},
        **{file: array_content(after[name]) for name, file in kept.items()}})
    facts = {"device": device, "cycles": outcome.cycles,
             "accelerator_cycles": outcome.accelerator_cycles, "frames": count,
             "clock_hz": network.clock_hz}
    write_table(table, [facts], silent=as_json)
    if as_json:
        typer.echo(json.dumps(facts))
        return
    from ..base.checked_values import show_name
    from ..runtime.reports.tables import show
    time = f"{1000 * outcome.cycles / network.clock_hz:,.3f} ms"
    show(f"{path} on {device}", [
        ("cycles", f"{outcome.cycles:,}: {time} at {network.clock_hz / 1e6:g} MHz"),
        ("on the accelerator", f"{outcome.accelerator_cycles:,}"),
        *(("output", f"{show_name(name)}: {each.type}") for name, each in image.outputs.items())])


def _image_in(path: Path) -> NetworkImage:
    from ..base.errors import ImageError
    from ..runtime.board.places import LITEX_MEMORY
    from ..runtime.monitor.image import NetworkImage

    check_readable(path)
    if not path.is_file():
        raise MicrotronError(f"{path}: a pipe or a device, but must be a file that `microtron "
                             f"firmware` wrote")
    try:
        return NetworkImage(path.read_bytes(), LITEX_MEMORY)
    except ImageError as error:
        raise MicrotronError(f"{path}: {error}") from None


def _check_soft(board: Board) -> None:
    """Refuse a board with a hard processor before a network is compiled, and say what runs there
    instead: `microtron run` has to agree."""
    from ..runtime.board.places import ON_LINUX, why_no_driver

    if board.memory.kind == "processor":
        instead = (f"on its own Linux, --device board:{board.name}@/dev/uio0 runs networks"
                   if board.flow in ON_LINUX else why_no_driver(board.flow))
        raise MicrotronError(f"{board.name}: firmware is for boards with a soft processor, and "
                             f"this one's is hard; {instead}")
