"""DRAM as a program sees it: segments of bytes, boxes of rows for DMA, tensors for the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...base.errors import ExecutionError
from ...isa.instructions import Load, Store
from ...isa.program import Access, Program, Segment, Tensor

Bytes = npt.NDArray[np.uint8]


class Memory:
    """The segments of one program, initialized with its data, otherwise zero.

    The host reads and writes everything by segment and offset or by a tensor's name. DMA accesses
    boxes of rows through windows, which are read-only if the segment is; `isa.verification.bounds`
    checks beforehand that a box is inside its segment.
    """

    def __init__(self, program: Program):
        self.program = program
        self.segments = tuple(_initial_content(segment) for segment in program.segments)
        self.windows = tuple(_window(segment, data) for segment, data
                             in zip(program.segments, self.segments, strict=True))

    def read(self, segment: str, offset: int, size: int) -> Bytes:
        """A copy of some bytes of a segment."""
        return self._slice(segment, offset, size).copy()

    def write(self, segment: str, offset: int, data: Bytes | bytes) -> None:
        content = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        self._slice(segment, offset, content.size)[:] = content.ravel().view(np.uint8)

    def _slice(self, name: str, offset: int, size: int) -> Bytes:
        segment = self.program.segment(name)
        if offset < 0 or size < 0 or offset + size > segment.size:
            raise ExecutionError(f"segment {name}: {size} bytes at {offset} end at byte "
                                 f"{offset + size}, but it has {segment.size}")
        return self.segments[self.program.segments.index(segment)][offset:offset + size]

    def read_tensor(self, name: str) -> npt.NDArray[np.integer]:
        tensor = self.program.tensor(name)
        return from_bytes(tensor, self.read(tensor.segment, tensor.offset, tensor.size))

    def write_tensor(self, name: str, values: npt.ArrayLike) -> None:
        tensor = self.program.tensor(name)
        self.write(tensor.segment, tensor.offset, to_bytes(tensor, values))

    def load_box(self, load: Load, tile_bytes: int) -> Bytes:
        """A copy of the rows that a load reads: planes × rows × bytes."""
        return self._box(load, tile_bytes).copy()

    def store_box(self, store: Store, rows: Bytes) -> None:
        """Write the rows of a store in order: where they overlap, the last one wins."""
        box = self._box(store, rows.shape[2] // max(store.shape[2], 1))
        if _is_disjoint(rows.shape, store.stride):
            box[...] = rows
            return
        for plane in range(rows.shape[0]):
            for row in range(rows.shape[1]):
                box[plane, row] = rows[plane, row]

    def _box(self, transfer: Load | Store, tile_bytes: int) -> Bytes:
        z, y, x = transfer.shape
        if 0 in transfer.shape:
            return np.empty((z, y, x * tile_bytes), np.uint8)
        window = self.windows[transfer.segment]
        return np.ndarray((z, y, x * tile_bytes), np.uint8, window, transfer.offset,
                          (*transfer.stride, 1))


def to_bytes(tensor: Tensor, values: npt.ArrayLike) -> Bytes:
    """A tensor's values as bytes in memory. Shape and type must be the tensor's."""
    array = np.asarray(values)
    if array.shape != tensor.shape or array.dtype != np.dtype(tensor.dtype):
        raise ExecutionError(f"tensor {tensor.name} is {tensor.dtype} of shape {tensor.shape}, "
                             f"but the values are {array.dtype} of shape {array.shape}")
    little_endian = np.dtype(tensor.dtype).newbyteorder("<")
    return np.frombuffer(array.astype(little_endian).tobytes(), np.uint8)


def from_bytes(tensor: Tensor, data: Bytes) -> npt.NDArray[np.integer]:
    """The values of a tensor, from its bytes in memory."""
    little_endian = np.dtype(tensor.dtype).newbyteorder("<")
    return data.view(little_endian).reshape(tensor.shape).astype(tensor.dtype, copy=False)


def _initial_content(segment: Segment) -> Bytes:
    try:
        data = np.zeros(segment.size, np.uint8)     # pages are allocated on first access
    except MemoryError:
        raise ExecutionError(f"segment {segment.name}: its {segment.size} bytes do not fit in "
                             f"this host's memory") from None
    if segment.data is not None:
        data[:len(segment.data)] = segment.data
    return data


def _window(segment: Segment, data: Bytes) -> Bytes:
    window = data.view()
    window.flags.writeable = segment.access == Access.WRITE
    return window


def _is_disjoint(shape: tuple[int, ...], strides: tuple[int, int]) -> bool:
    """Whether no byte of a box of rows is accessed twice (conservative)."""
    reach = shape[2]
    for stride, count in sorted((abs(stride), count) for stride, count
                                in zip(strides, shape[:2], strict=True) if count > 1):
        if stride < reach:
            return False
        reach += stride * (count - 1)
    return True
