"""What the commands have in common: programs and other files named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .isa.errors import MicrotronError

if TYPE_CHECKING:
    from .isa.program import Program

ProgramFile = Annotated[Path, typer.Argument(
    metavar="PROGRAM", help="A program: an image (.mt) or assembly (any other name).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]


def load_program(path: Path) -> Program:
    from .isa import image
    return image.load(path) if path.suffix == ".mt" else assembled(path)


def assembled(path: Path) -> Program:
    from .isa.assembly import assemble
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MicrotronError(f"{path}: not UTF-8 text; images are named .mt") from None
    return assemble(text, place=str(path))


def pairs(options: list[str]) -> dict[str, Path]:
    found = {}
    for option in options:
        name, separator, path = option.partition("=")
        if not (name and separator and path):
            raise MicrotronError(f"{option!r} must be a tensor and a file, as in c=c.npy")
        found[name] = Path(path)
    return found
