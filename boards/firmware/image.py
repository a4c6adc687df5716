"""A network as an image for a board's memory: objects, driver and tables, linked at its beginning.

    header │ code, tables, constants, instructions, weights │ tensors, segments, stack
           └────────────── the file ───────────────────────┘└── behind it, in memory ──┘
"""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import MicrotronError
from ...base.processor import target
from ...isa.c_header import c_header as isa_header
from ...isa.config import PAGE_BYTES
from ...isa.registers import identity_of, offset_of
from ...runtime.aot.names import symbol_of
from ...runtime.aot.objects import write_objects
from ...runtime.models.compiled_model import CompiledModel, ProgramStep
from ...runtime.monitor.protocol import c_header as protocol_header
from ..facts.board import Board
from ..facts.errors import BoardError
from ..facts.fit import check_fits
from ..facts.processors import processor_of
from .riscv_gcc import CPU, SOURCE, c_library_flags, compile_sources, extract_binary, link

MAGIC = 0x4D49544D
BASE = 0x4000_0000              # of memory in every system (boards/soc/litex_system.py)
HEADER = struct.Struct("<8I")
SOURCES = ("image.c", "accelerator.c", "bytes.c")


@dataclass(frozen=True)
class Image:
    """What is loaded, and the ELF it was made from, for a debugger."""

    content: bytes
    elf: bytes

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory, with what lies behind the file."""
        return int(HEADER.unpack_from(self.content)[3])

    @property
    def memory(self) -> int:
        """The address of the network's tensors."""
        return int(HEADER.unpack_from(self.content)[7])


def build_image(model: CompiledModel, board: Board) -> Image:
    """The image of a network for a board with a soft processor."""
    if board.memory.kind == "processor":
        raise BoardError(f"{board.name}: firmware is for boards with a soft processor; this one "
                         f"has a hard one, {board.cpu}")
    processor = processor_of(board)
    check_fits(board, model.config)
    with tempfile.TemporaryDirectory(prefix="microtron-image-") as name:
        folder = Path(name)
        written = write_objects(model, target(CPU), folder)
        (folder / "network.h").write_text(network_header(model))
        (folder / "microtron_isa.h").write_text(isa_header())
        (folder / "protocol.h").write_text(protocol_header())
        objects = compile_sources(folder, [*(SOURCE / each for each in SOURCES),
                                    *(path for path in written if path.suffix == ".c")],
                           data_cache=processor.data_cache)
        objects += [path.name for path in written if path.suffix == ".o"]
        link(folder, "network.elf", "network.ld", objects, {"IMAGE_BASE": BASE}, *c_library_flags())
        extract_binary(folder, "network.elf", "network.bin")
        image = Image((folder / "network.bin").read_bytes(),
                      (folder / "network.elf").read_bytes())
    if image.memory_bytes > board.memory.bytes:
        raise MicrotronError(f"{model.name}: needs {image.memory_bytes:,} bytes of memory, but "
                             f"{board.name} has {board.memory.bytes:,}")
    return image


def network_header(model: CompiledModel) -> str:
    """Which network it is, and what the accelerator must be."""
    symbol = symbol_of(model.name)
    expected = ", ".join(f"{{ {offset_of(name):#x}, {value:#x}u }}"
                         for name, value in identity_of(model.config).items())
    return (f'#include "{symbol}.h"\n'
            f"#define NETWORK {symbol}\n"
            f"#define NETWORK_MEMORY_BYTES {symbol.upper()}_MEMORY_BYTES\n"
            f"#define NETWORK_ARENA_BYTES {arena_bytes(model)}u\n"
            f"#define NETWORK_EXPECTED {expected}\n"
            f"#define IMAGE_BASE {BASE:#x}u\n")


def arena_bytes(model: CompiledModel) -> int:
    """Memory for what does not lie in the file as the accelerator wants it: for each program a page
    with the list of its segments, and these in whole pages, if they are small or not all known."""
    pages = 0
    for step in model.steps:
        if isinstance(step, ProgramStep):
            segments = step.program.segments
            outside = [each.size for each in segments if each.data is None
                       or len(each.data) != each.size or each.size < PAGE_BYTES]
            if step.program.code.nbytes < PAGE_BYTES:
                outside.append(step.program.code.nbytes)
            pages += 1 + sum(-(-size // PAGE_BYTES) for size in outside)
    return max(1, pages) * PAGE_BYTES
