"""The model image: a compiled model in one file that can be mapped and loaded from strangers.

    image = sections model (JSON), programs (images of programs), arrays (constants of the CPU)

docs/model_image.md describes every byte. It is the container of program images, and as strict:
everything that is loaded has been checked, and a model has exactly one image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from ...base.atomic_files import write_atomically
from ...base.errors import ImageError, MicrotronError
from ...compiler.graph.types import Array
from ...isa.image import program_image, sections
from ...isa.image.sections import Octets, Section
from ...isa.program import Program
from .compiled_model import CompiledModel
from .model_checks import check_model
from .model_text import Sizes, arrays_of, build, describe, parse, sizes_of, text_of

MODEL, PROGRAMS, ARRAYS = "model", "programs", "arrays"
ALIGNMENTS = {MODEL: 1, PROGRAMS: sections.PAGE, ARRAYS: 64}    # of sections, and of what is inside


def save(model: CompiledModel, path: str | PathLike[str]) -> None:
    """Write the image. What was at `path` stays until the new file is complete."""
    write_atomically(Path(path), to_bytes(model))


def load(path: str | PathLike[str], *, mapped: bool = True) -> CompiledModel:
    """The model in a file. Programs and constants are read-only views of the mapped file; without
    `mapped`, of a private copy."""
    path = Path(path)
    try:
        return _read(program_image.read_image_bytes(path, mapped))
    except OSError as error:
        raise ImageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:             # also a path with a zero byte
        raise ImageError(f"{path}: {error}") from None


def from_bytes(data: bytes | bytearray | memoryview, *, place: str = "image") -> CompiledModel:
    """The model in an image in memory, as views of it. An error names `place`."""
    try:
        return _read(np.frombuffer(data, np.uint8))
    except MicrotronError as error:
        raise ImageError(f"{place}: {error}") from None


def to_bytes(model: CompiledModel) -> bytes:
    """The image of a model. The same model always gives the same bytes."""
    try:
        check_model(model)
        programs = [np.frombuffer(program_image.to_bytes(each), np.uint8)
                    for each in model.programs]
        arrays = [_encode_array(each) for each in arrays_of(model)]
        sizes = Sizes([len(each) for each in programs], [len(each) for each in arrays])
        text = text_of(describe(model, sizes))
        parse(np.frombuffer(text, np.uint8))           # what could not be read is not written
    except MicrotronError as error:
        raise ImageError(f"the model cannot be stored: {error}") from None
    contents = {MODEL: np.frombuffer(text, np.uint8), PROGRAMS: _concatenate(programs, PROGRAMS),
                ARRAYS: _concatenate(arrays, ARRAYS)}
    return sections.pack([Section(name, content, ALIGNMENTS[name])
                          for name, content in contents.items()])


def holds_model(path: str | PathLike[str]) -> bool:
    """Whether a file is the image of a model, and not of a program or something else, as far as
    its first bytes tell."""
    return program_image.first_section(Path(path)) == MODEL


def _encode_array(array: Array) -> Octets:
    """An array as bytes, little-endian, in order."""
    plain = array.astype("uint8" if array.dtype == bool else array.dtype.newbyteorder("<"),
                         copy=False)
    return np.frombuffer(np.ascontiguousarray(plain).tobytes(), np.uint8)


def _concatenate(pieces: Sequence[Octets], section: str) -> Octets:
    """Pieces one after the other, each aligned."""
    places = list(_places([len(piece) for piece in pieces], ALIGNMENTS[section]))
    content = np.zeros(places[-1].stop if places else 0, np.uint8)
    for piece, place in zip(pieces, places, strict=True):
        content[place] = piece
    return content


def _places(sizes: Sequence[int], alignment: int) -> Iterator[slice]:
    end = 0
    for size in sizes:
        start = end + -end % alignment
        end = start + size
        yield slice(start, end)


def _cut(content: Octets, sizes: Sequence[int], section: str) -> list[Octets]:
    """The pieces of a section, which fill it up, with zeros between them."""
    places = list(_places(sizes, ALIGNMENTS[section]))
    end = places[-1].stop if places else 0
    if end != len(content):
        raise ImageError(f"section {section} has {len(content)} bytes, but what it holds takes "
                         f"{end}")
    before = 0
    for place in places:
        if content[before:place.start].any():
            raise ImageError(f"section {section}: the bytes from {before} to {place.start} must "
                             f"be zero")
        before = place.stop
    return [content[place] for place in places]


def _read(data: Octets) -> CompiledModel:
    data = data.view()
    data.flags.writeable = False
    found = {section.name: section for section in sections.unpack(data)}
    if program_image.META in found and MODEL not in found:
        raise ImageError("holds a single program, not a model: "
                         "microtron.isa.image.program_image reads it")
    contents = {name: program_image.take_section(found, name, alignment)
                for name, alignment in ALIGNMENTS.items()}
    program_image.check_rest(found)
    text = parse(contents[MODEL])
    sizes = sizes_of(text)
    programs = [_program(each, number) for number, each in enumerate(
        _cut(contents[PROGRAMS], sizes.programs, PROGRAMS))]
    model = build(text, programs, _cut(contents[ARRAYS], sizes.arrays, ARRAYS))
    check_model(model)
    if text_of(describe(model, sizes)) != contents[MODEL].tobytes():
        raise ImageError("section model: not in canonical form: a field is left out, or written in "
                         "another way than it would be here")
    return model


def _program(content: Octets, number: int) -> Program:
    return program_image.from_bytes(content.data, place=f"program {number}")
