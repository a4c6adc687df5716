"""What the commands have in common: programs and other files named on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import MicrotronError

ProgramFile = Annotated[Path, typer.Argument(
    metavar="PROGRAM", help="A program: an image (.mt) or assembly (any other name). Or a "
                            "network: .tflite, .onnx or a model image (.mt).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def say(text: str, *, err: bool = False) -> None:
    """Print lines for people. Names in them may come from anywhere."""
    from ..base.checked_values import printable
    typer.echo("\n".join(map(printable, text.split("\n"))), err=err)


def write_text(text: str, output: Path | None = None) -> None:
    """Write what programs read, to a file or to standard output: UTF-8 in any case."""
    if output is None:
        typer.echo(text.encode(), nl=False)
    else:
        from ..base.atomic_files import write_atomically
        write_atomically(output, text.encode())


def tensor_files(option: str, given: list[str] | None) -> dict[str, Path]:
    """Tensors and their files, as the option names them: c=c.npy."""
    found: dict[str, Path] = {}
    for each in given or []:
        name, separator, path = each.partition("=")
        if not (name and separator and path):
            raise MicrotronError(f"{option} {each!r} must be a tensor and a file, as in c=c.npy")
        if name in found:
            raise MicrotronError(f"{option} names the tensor {name!r} twice")
        found[name] = Path(path)
    return found


def check_distinct(files: Iterable[Path | None]) -> None:
    """Refuse to write two results to the same file."""
    seen: set[Path] = set()
    for path in files:
        if path is not None:
            if path.absolute() in seen:
                raise MicrotronError(f"{path} is to receive two results, but can hold one")
            seen.add(path.absolute())
