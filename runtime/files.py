"""Tensors in `.npy` files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..isa.atomic import write_atomically
from ..isa.errors import MicrotronError


def read_array(path: Path) -> npt.NDArray[Any]:
    """The array in a file; no pickles, whatever the file says."""
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise MicrotronError(f"{path}: not a .npy file: {str(error).splitlines()[0]}") from None
    if not isinstance(array, np.ndarray):
        raise MicrotronError(f"{path}: holds several arrays, but one .npy array is wanted")
    return array


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Save an array, whole or not at all."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())
