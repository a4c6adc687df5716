"""GEMM: runs micro-ops in three loops, one tile product a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..isa.config import Config
from ..isa.faults import Fault
from ..isa.instructions import LOOPS, Buffer, Engine, Gemm, GemmFlags, MicroOp
from .forwarding import ForwardingAdder
from .interfaces import commands, events, index, read_port, tokens
from .layouts import POSITION_BITS, unpack
from .logic import exponent
from .mac import MacArray, tree_stages
from .scratchpad import write_port
from .sequencer import Sequencer, offset_bits

FLAG_BITS = 8
# Stages of the pipeline, counted in cycles from the issue of a slot.
MICRO_OP, READ, PRODUCT = 2, 3, 6       # micro-op there, tiles read, products there

# What travels with an instruction's slots; only the last one posts and ends.
TASK = data.StructLayout({"post": len(Engine), "position": POSITION_BITS})
TAG = data.StructLayout({"flags": FLAG_BITS, "uop": index(), "task": TASK})


def write_stage(config: Config) -> int:
    """The cycle of a slot's write, counted from its issue."""
    return PRODUCT + tree_stages(config) + 1


def start_to_end(config: Config, slots: int) -> int:
    """Cycles from the start of an undisturbed gemm to its end; it has `slots` tile products."""
    return write_stage(config) + max(1, slots)


def operands(config: Config) -> dict[str, int]:
    """The operands that walk, with the bits of their offsets. Weights may count rows of tiles."""
    tiles = {"dst": config.tiles(Buffer.ACC), "src": config.tiles(Buffer.INP),
             "wgt": config.tiles(Buffer.WGT) * config.block_out}
    return {name: offset_bits(count) for name, count in tiles.items()}


def issued_layout(config: Config) -> data.StructLayout:
    """A slot while its micro-op is read."""
    return data.StructLayout({
        "valid": 1,                     # there is a product to compute
        "ends": 1,                      # the last slot of its instruction
        "outside": 1,                   # the micro-op itself is outside its scratchpad
        "start": 1, "bias": 1,          # a new sum begins, from the bias tile
        "depthwise": 1,
        "offsets": data.StructLayout(operands_layout(config)),
        "task": TASK,
    })
