"""Tensors in `.npy` files."""

from __future__ import annotations

import io
import warnings
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from ..isa.errors import MicrotronError
from ..isa.program import Tensor

Array = npt.NDArray[Any]

ZIP = b"PK\x03\x04"             # how .npz files begin


def read_tensor(path: Path, tensor: Tensor) -> Array:
    """The values for a tensor in a file, which must have its shape and type."""
    return read_array(path, f"tensor {tensor.name}", tensor.shape, (tensor.dtype,))


def read_array(path: Path, place: str, wanted: tuple[int, ...], dtypes: tuple[str, ...]) -> Array:
    """The array in a file, which must have a shape and one of some types. That is seen before any
    data is read: a file may claim to hold more than there is memory."""
    try:
        with path.open("rb") as file:
            shape, column_major, dtype = _header(file, path)
            if shape != wanted or dtype not in [np.dtype(each) for each in dtypes]:
                raise MicrotronError(f"{path}: holds {dtype} of shape {shape}, but {place} is "
                                     f"{' or '.join(dtypes)} of shape {wanted}")
            size = prod(shape) * dtype.itemsize
            data = file.read(size)
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) < size:
        raise MicrotronError(f"{path}: has {len(data)} bytes of data, but {dtype} of shape {shape} "
                             f"takes {size}")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if column_major else "C")


def array_content(array: npt.NDArray[Any]) -> bytes:
    """An array as a file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _header(file: BinaryIO, path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
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
