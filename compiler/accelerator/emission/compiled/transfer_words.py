"""Words of loads and stores, without a record for each.

Transfers of one kind differ in their shape and strides alone. A record is made, and checked, once
for each kind; the rest is written into its word, as far as it fits.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error

from .....isa.instructions import Buffer, Instruction, Load, Store
from ...selection.hardware_loops import REMEMBERED
from ..transfers import Piece


class UnsupportedError(Exception):
    """What only `emit.Emitter` can emit, or refuses to and says why."""


def offset_of(kind: type[Instruction], name: str) -> int:
    """The byte of a word with which a field begins."""
    return int(kind.dtype().fields[name][1])            # type: ignore[index]


def _format_of(kind: type[Instruction], *names: str) -> list[tuple[Struct, int]]:
    """How some fields are packed, and where."""
    found = []
    for name in names:
        scalar, count = kind.dtype()[name].base, kind.dtype()[name].shape
        found.append((Struct(f"<{count[0] if count else 1}{scalar.char}"), offset_of(kind, name)))
        assert found[-1][0].size == kind.dtype()[name].itemsize, "NumPy and struct have one size"
    return found


(_shape, _shape_at), (_pitch, _pitch_at), (_stride, _stride_at), (_pad, _pad_at) = _format_of(
    Load, "shape", "sram_pitch", "stride", "pad")
_stored = _format_of(Store, "shape", "stride", "sram_pitch")


@lru_cache(REMEMBERED)
def _load(buffer: Buffer, segment: int, pad_value: int) -> bytes:
    return Load(buffer=buffer, segment=segment, pad_value=pad_value).encode()


@lru_cache(REMEMBERED)
def _store(buffer: Buffer, segment: int) -> bytes:
    return Store(buffer=buffer, segment=segment).encode()


def load_word(piece: Piece, buffer: Buffer, segment: int, pad_value: int) -> bytes:
    """The load of a piece, which starts at the beginning of scratchpad and segment."""
    word = bytearray(_load(buffer, segment, pad_value))
    try:
        _shape.pack_into(word, _shape_at, *piece.shape)
        _pitch.pack_into(word, _pitch_at, piece.sram_pitch[0])
        _stride.pack_into(word, _stride_at, *piece.stride)
        _pad.pack_into(word, _pad_at, *piece.pad)
    except error:
        raise UnsupportedError from None
    return bytes(word)


def store_word(piece: Piece, buffer: Buffer, segment: int) -> bytes:
    """The store of a piece."""
    word = bytearray(_store(buffer, segment))
    try:
        for (form, at), value in zip(_stored, (piece.shape, piece.stride, piece.sram_pitch),
                                     strict=True):
            form.pack_into(word, at, *value)
    except error:
        raise UnsupportedError from None
    return bytes(word)
