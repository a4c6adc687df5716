"""The command for a network on a board's soft processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .cli_boards import BoardName
from .cli_files import AsJson
from .cli_model import ModelFile, is_model, opened
from .cli_options import ModelConfig, ModelShapes
from .isa.errors import MicrotronError


def firmware(model: ModelFile, board: BoardName, name: ModelConfig = "",
             shapes: ModelShapes = None,
             output: Annotated[Path | None, typer.Option(
                 "--output", "-o", metavar="FILE.elf",
                 help="The program; beside it, the same name with .bin is what the board's monitor "
                      "loads. Unless given, the model with .elf.")] = None,
             as_json: AsJson = False) -> None:
    """Build a network for a board with a soft processor: kernels, driver and programs in an image.

    A .tflite or .onnx file is compiled for the board's preset, unless --config is given, and its
    memory. Needs gcc and picolibc for RISC-V. Example: microtron firmware model.mt --board ulx3s
    """
    from .boards.catalogue import board as board_of
    from .boards.firmware.image import build_image
    from .boards.speed import memory_option
    from .isa.atomic import write_together
    from .isa.progress import watched

    target = output or model.with_suffix(".elf")
    if target.suffix != ".elf":
        raise MicrotronError(f"{target}: firmware is an .elf file, with a .bin file beside it")
    chosen = board_of(board)
    if is_model(model) and model.suffix == ".mt":
        network = opened(model, name, shapes, "")
    else:
        memory = memory_option(chosen) if chosen.memory.timing else ""
        network = opened(model, name or chosen.preset, shapes, memory)
    with watched(f"building firmware for {chosen.name}"):
        image = build_image(network, chosen)
    binary = target.with_suffix(".bin")
    write_together({target: image.elf, binary: image.content})
    if as_json:
        typer.echo(json.dumps({"elf": str(target), "image": str(binary),
                               "bytes": len(image.content), "memory": image.needed}))
    else:
        typer.echo(f"{binary}: {len(image.content):,} bytes, {image.needed:,} of "
                   f"{chosen.memory.bytes:,} bytes of memory")
