"""The program image: a whole program in one file that can be mapped and loaded from strangers.

    image = sections meta (JSON), code (instructions), segment.0 … segment.7 (their content)

Micro-ops, weights and other constants are content of segments. docs/program.md describes every
byte. Loading checks everything it returns: a program from a file is as sound as one just built.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...base.atomic_files import write_atomically
from ...base.errors import ImageError, MicrotronError
from .. import stream
from ..instructions import INSTRUCTION_BYTES, SEGMENTS
from ..program import Program, Segment
from . import metadata, sections
from .sections import Octets, Section

META = "meta"               # the section that only images of programs have


def save(program: Program, path: str | Path) -> None:
    """Write the image. What was at `path` stays until the new file is complete."""
    write_atomically(Path(path), to_bytes(program))


def load(path: str | Path, *, mapped: bool = True) -> Program:
    """The program in a file.

    Instructions and segments are read-only views of the mapped file. Nothing is copied, so who
    replaces the file must do it by renaming, as `save` does, and not write into it. Without
    `mapped` they are views of a private copy.
    """
    path = Path(path)
    try:
        return _read(read_image_bytes(path, mapped))
    except OSError as error:
        raise ImageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except MicrotronError as error:
        raise ImageError(f"{path}: {error}") from None


def from_bytes(data: bytes | bytearray | memoryview, *, place: str = "image") -> Program:
    """The program in an image in memory, as views of it. An error names `place`."""
    try:
        return _read(np.frombuffer(data, np.uint8))
    except MicrotronError as error:
        raise ImageError(f"{place}: {error}") from None


def to_bytes(program: Program) -> bytes:
    """The image of a program. The same program always gives the same bytes."""
    try:
        description = metadata.describe(program)
        code = _code(program)
        contents = {index: _content(segment) for index, segment in enumerate(program.segments)
                    if segment.data is not None}
        _program(description, code, contents)       # what could not be read is not written
        text = metadata.text_of(description)
    except MicrotronError as error:
        raise ImageError(f"the program cannot be stored: {error}") from None
    return sections.pack([
        Section(META, np.frombuffer(text, np.uint8), alignment=1),
        Section("code", code),
        *(Section(f"segment.{index}", content) for index, content in contents.items())])


def first_section(path: Path) -> str:
    """The name of a file's first section, which tells what kind of image it is; nothing, if it is
    none. Nobody else has looked at the file yet."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
        with path.open("rb") as file:
            start = file.read(sections.HEADER.size + sections.ENTRY.size)
    except (OSError, ValueError):           # also a path with a zero byte
        return ""
    name = start[sections.HEADER.size:][:sections.NAME_BYTES].rstrip(b"\0")
    return name.decode("ascii", "replace") if start.startswith(sections.MAGIC) else ""


def _code(program: Program) -> Octets:
    code = program.code
    if code.ndim != 1 or code.dtype.itemsize != INSTRUCTION_BYTES:
        raise ImageError(f"its code has shape {code.shape} and {code.dtype.itemsize} bytes an "
                         f"element, but must be a row of instructions of {INSTRUCTION_BYTES}")
    # As plain bytes first: NumPy's copy of a record leaves out what lies between its fields.
    return np.ascontiguousarray(code.view(f"V{INSTRUCTION_BYTES}")).view(np.uint8)


def _content(segment: Segment) -> Octets:
    data = segment.data
    if not isinstance(data, np.ndarray) or data.ndim != 1 or data.dtype != np.uint8:
        raise ImageError(f"the data of segment {segment.name} must be a one-dimensional array "
                         f"of uint8")
    return data


def read_image_bytes(path: Path, mapped: bool) -> Octets:
    """All bytes of a file that begins as an image does."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):        # a pipe would block, a device never ends
        raise ImageError("is not a regular file")
    with path.open("rb") as file:
        # Before all of it is read or mapped: it may be huge and something else entirely.
        sections.check_header(file.read(sections.HEADER.size), status.st_size)
        if mapped:
            return np.asarray(np.memmap(file, np.uint8, mode="r"))
        file.seek(0)
        return np.frombuffer(file.read(), np.uint8)


def _read(data: Octets) -> Program:
    data = data.view()
    data.flags.writeable = False
    found = {section.name: section for section in sections.unpack(data)}
    if META not in found and "model" in found:
        raise ImageError("holds a model, not a single program: microtron.load reads it")
    text = take_section(found, META, alignment=1)
    code = take_section(found, "code")
    contents = {index: take_section(found, f"segment.{index}") for index in range(SEGMENTS)
                if f"segment.{index}" in found}
    check_rest(found)
    return _program(metadata.parse(text), code, contents)


def check_rest(found: Mapping[str, Section]) -> None:
    """Refuse an image with a section that nobody took, but whoever uses it must know."""
    for section in found.values():
        if section.required:
            raise ImageError(f"needs its section {section.name}, which this program does not know")


def take_section(found: dict[str, Section], name: str, alignment: int = sections.PAGE) -> Octets:
    """The content of a section we know, which is taken out of those found."""
    if name not in found:
        raise ImageError(f"has no section {name}")
    section = found.pop(name)
    if section.alignment != alignment or not section.required:
        raise ImageError(f"section {name} has alignment {section.alignment} and is "
                         f"{'required' if section.required else 'optional'}, but must have "
                         f"alignment {alignment} and be required")
    return section.content


def _program(description: object, code: Octets, contents: Mapping[int, Octets]) -> Program:
    if len(code) % INSTRUCTION_BYTES:
        raise ImageError(f"section code has {len(code)} bytes, which is not a multiple of "
                         f"{INSTRUCTION_BYTES}")
    words = code.view(stream.WORD)
    stream.check(words)
    return metadata.build(description, words, contents)
