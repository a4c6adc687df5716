"""What loads bring into the micro-op scratchpad, followed in program order.

A gemm touches what its micro-ops say, so the verifier has to know them. They come from read-only
segments whose content is part of the program. Up to 65,535 planes of a load may
overlap; each micro-op is then fetched once, from the last plane that holds it. Compiled with numba.
"""

# No postponed annotations here: numba reads the functions as they are.
import numpy as np
import numpy.typing as npt

from ...instructions import Load, MicroOp
from ...record import fields_of
from .footprints import MicroOps
from .jit import entry, helper

COLUMNS = len(fields_of(MicroOp))
UOP_BYTES = MicroOp.size
COLUMN_BYTES = UOP_BYTES // COLUMNS
FIELDS = ("segment", "sram", "sram_pitch", "offset", "shape", "stride")
FEED = np.dtype([(field.name, "i8", (field.count,) if field.axes else ())
                 for field in fields_of(Load) if field.name in FIELDS])

Feeds = npt.NDArray[np.void]
Contents = tuple[npt.NDArray[np.uint8], ...]        # of every segment, read-only


def new_micro_ops(count: int) -> MicroOps:
    return np.zeros((COLUMNS, count), np.int32)


@entry
def bring(feeds: Feeds, at: int, contents: Contents, uops: MicroOps) -> None:
    """Do what one load does. Whoever calls has checked that it stays inside its buffers."""
    feed = feeds[at]
    planes, rows, columns = feed.shape
    content = contents[feed.segment]
    if planes * rows * columns == 0:
        return
    for index in range((planes - 1) * feed.sram_pitch + rows * columns):
        plane = planes - 1
        if feed.sram_pitch > 0:
            plane = min(plane, index // feed.sram_pitch)
        rest = index - plane * feed.sram_pitch
        if rest < rows * columns:
            first = (feed.offset + plane * feed.stride[0] + rest // columns * feed.stride[1]
                     + rest % columns * UOP_BYTES)
            for column in range(COLUMNS):
                uops[column, feed.sram + index] = _number(content, first + column * COLUMN_BYTES)


@helper
def _number(content: npt.NDArray[np.uint8], at: int) -> int:
    """The little-endian number at a byte of a segment; what lies behind its content is zero."""
    value = 0
    for byte in range(COLUMN_BYTES):
        if at + byte < len(content):
            value |= int(content[at + byte]) << 8 * byte
    return value
