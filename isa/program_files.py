"""Programs in files: images, and assembly text."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from ..base.argument_checks import check_path
from ..base.errors import AssemblyError
from ..base.keywords import check_keywords
from ..base.text_file import read_text
from .assembly.assembler import assemble
from .image import program_image
from .program import Program, check_program

ASSEMBLY_CHARACTERS = 1 << 28        # which take some minutes to assemble


@check_keywords
def load_program(path: str | PathLike[str]) -> Program:
    """Load a program: an image if the file is named .mt, assembly text otherwise.

    Instructions and segments of an image are mapped, not copied. Files from strangers are safe to
    load; `verify` says whether they are safe to run.
    """
    path = check_path("path", path)
    return program_image.load(path) if path.suffix == ".mt" else assemble_file(path)


@check_keywords
def save_program(program: Program, path: str | PathLike[str]) -> None:
    """Write a program image (.mt). The file is replaced atomically."""
    check_program(program)
    program_image.save(program, check_path("path", path))


def assemble_file(path: Path) -> Program:
    """The program in a file of assembly text."""
    try:
        text = read_text(path, ASSEMBLY_CHARACTERS)
    except OSError as error:
        raise AssemblyError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise AssemblyError(f"{path}: not UTF-8 text; images are named .mt") from None
    return assemble(text, place=str(path))
