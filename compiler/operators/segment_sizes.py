"""Whether segments of DRAM hold the tensors of a form."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...isa.program import SEGMENT_BYTES_LIMIT
from ..errors import CompileError
from .description import Epilogue
from .form import ACCUMULATOR_BYTES, Form

OUTPUT = "output"           # what programs call their result


def fits_segments(form: Form) -> bool:
    return all(size <= SEGMENT_BYTES_LIMIT for _, size in _sizes(form))


def check_sizes(form: Form) -> None:
    """Refuse tensors that are too large for a segment, before anything is compiled."""
    for name, size in _sizes(form):
        if size > SEGMENT_BYTES_LIMIT:
            raise CompileError(f"{form.spec.operator}: {name} takes {size} bytes in tiles, but a "
                               f"segment has at most {SEGMENT_BYTES_LIMIT}")


def _sizes(form: Form) -> Iterator[tuple[str, int]]:
    """Bytes of each tensor."""
    for name, shape in form.shapes.items():
        wide = name == "parameters" or (
            name == OUTPUT and isinstance(form.spec, Epilogue) and form.spec.wide)
        yield name, prod(shape) * (ACCUMULATOR_BYTES if wide else 1)
