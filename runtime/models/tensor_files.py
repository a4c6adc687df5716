"""Tensors in `.npy` and `.npz` files."""

from __future__ import annotations

import io
import lzma
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, LargeZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy

from ...base import arrays
from ...base.arrays import Dtype
from ...base.checked_values import show_name
from ...base.errors import MicrotronError
from ...isa.program import Tensor

Array = arrays.Array
Sizes = tuple[int | None, ...]  # a shape, None where any size is right
ZIP = b"PK\x03\x04"             # how .npz files begin


def read_tensor(path: Path, tensor: Tensor) -> Array:
    """The values for a tensor in a file, which must have its shape and type."""
    return read_array(path, f"tensor {tensor.name}", tensor.shape, (tensor.dtype,))


def read_array(path: Path, place: str, wanted: Sizes, dtypes: tuple[str, ...]) -> Array:
    """The array in a file, which must have a shape and one of some types. That is seen before any
    data is read: a file may claim to hold more than there is memory. Sizes of None are open."""
    try:
        with path.open("rb") as file:
            return _read(file, str(path), place, wanted, dtypes)
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror or error}") from None


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in a file that holds several."""
    with _archive(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_npz_array(path: Path, name: str, place: str, wanted: Sizes,
                   dtypes: tuple[str, ...]) -> Array:
    """One array of a file that holds several, checked as `read_array` does."""
    with _archive(path) as archive:
        members = archive.namelist()
        with archive.open(f"{name}.npy" if f"{name}.npy" in members else name) as file:
            return _read(file, f"{path}: {show_name(name)}", place, wanted, dtypes)


@contextmanager
def _archive(path: Path) -> Iterator[ZipFile]:
    """A .npz file, whose damage is said in one line."""
    try:
        with ZipFile(path) as archive:
            yield archive
    except MicrotronError:
        raise
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (BadZipFile, LargeZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError,
            ValueError, struct.error, OverflowError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise MicrotronError(f"{path}: not a .npz file, or a damaged one: {reason}") from None


def _read(file: IO[bytes], origin: str, place: str, wanted: Sizes,
          dtypes: tuple[str, ...]) -> Array:
    """The array that a file holds from here on."""
    shape, column_major, dtype = _header(file, origin)
    right = dtype.newbyteorder("=") in [np.dtype(each) for each in dtypes]
    if not right or not _fits(shape, wanted):
        raise MicrotronError(f"{origin}: holds {dtype} of shape {shape}, but {place} is "
                             f"{' or '.join(dtypes)} of shape {_shape_text(shape, wanted)}")
    size = prod(shape) * dtype.itemsize
    data = file.read(size)
    if len(data) < size:
        raise MicrotronError(f"{origin}: has {len(data)} bytes of data, but {dtype} of shape "
                             f"{shape} takes {size}")
    array = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)
    return array.reshape(shape, order="F" if column_major else "C")


def _fits(shape: tuple[int, ...], wanted: Sizes) -> bool:
    return len(shape) == len(wanted) and all(
        size in (None, extent) for extent, size in zip(shape, wanted, strict=True))


def _shape_text(shape: tuple[int, ...], wanted: Sizes) -> str:
    if None in wanted:
        return f"({', '.join('frames' if size is None else str(size) for size in wanted)})"
    frames = "; --frames runs one after the other" if shape[1:] == wanted != () else ""
    return f"{wanted}{frames}"


def array_content(array: Array) -> bytes:
    """An array as a file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _header(file: IO[bytes], path: str) -> tuple[tuple[int, ...], bool, Dtype]:
    """What a file claims to hold: the shape, whether columns come first, and the type."""
    start = file.read(npy.MAGIC_LEN)
    if start.startswith(ZIP):
        raise MicrotronError(f"{path}: holds several arrays (.npz), but one .npy array is wanted")
    if not start.startswith(npy.MAGIC_PREFIX):
        raise MicrotronError(f"{path}: not a .npy file")
    read = npy.read_array_header_1_0 if start[6:] == b"\x01\x00" else npy.read_array_header_2_0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape, column_major, dtype = read(file)
    except OSError:
        raise
    except Exception:       # the header is Python's source: NumPy does not say how it can fail
        raise MicrotronError(f"{path}: the header of this .npy file is damaged") from None
    return tuple(shape), column_major, dtype
