"""Bytes as an LLVM module, so that one tool writes the objects of every processor."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...isa.config import PAGE_BYTES
from .stages import ALIGNMENT

PLAIN = {each: chr(each) if 32 <= each < 127 and each not in b'"\\' else f"\\{each:02X}"
         for each in range(256)}


def data_module(blocks: Mapping[str, bytes], pages: Collection[str] = ()) -> str:
    """A module with a constant of each name, aligned for whoever reads it. Those in `pages` begin
    on one, as the accelerator wants what it reads: where memory is shared, they stay there."""
    return "".join(f'@{name} = constant [{len(block)} x i8] c"{_text(block)}", '
                   f"align {PAGE_BYTES if name in pages else ALIGNMENT}\n"
                   for name, block in blocks.items())


def _text(block: bytes) -> str:
    return block.decode("latin-1").translate(PLAIN)
