"""Interfaces between the units of the accelerator. Data that moves is a stream."""

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import ceil_log2

from ..isa.config import INDEX_BITS, Config
from ..isa.faults import Fault
from ..isa.instructions import SEGMENTS, Engine, Load
from .layouts import COMMAND, POSITION_BITS, widths_of

BURST_BEATS_BITS = 8        # AXI4: one to 256 beats, sent as beats - 1
WIDEST_BUS_BYTES = 32
SIZE_BITS = widths_of(Load)["offset"]   # of a window into DRAM, and of an offset inside it

FAULT = data.StructLayout({"cause": Shape.cast(Fault), "position": POSITION_BITS})

commands = stream.Signature(COMMAND)


def segment_lookup(config: Config) -> Signature:
    """Looks up a segment in the control registers, combinationally. A size of 0 means there is
    none. Stable while a program runs."""
    segment = data.StructLayout({"base": config.address_bits, "size": SIZE_BITS, "writable": 1})
    return Signature({"number": Out(range(SEGMENTS)), "segment": In(segment)})


def burst_request(config: Config) -> data.StructLayout:
    """A burst that must not cross 4 KiB; `beats` is one less than their number."""
    return data.StructLayout({"address": config.address_bits, "beats": BURST_BEATS_BITS})


def read_beat(config: Config) -> data.StructLayout:
    """A beat of read data; with an `error`, the data are undefined."""
    return data.StructLayout({"data": config.bus_bits, "error": 1})


def write_beat(config: Config) -> data.StructLayout:
    """A beat of write data; bytes without a `strobe` are not written."""
    return data.StructLayout({"data": config.bus_bits, "strobe": config.bus_bytes})


# Between an engine and the token counters. A token posted in one cycle can be taken in the next.
tokens = Signature({
    "wait": Out(len(Engine)),       # engines whose tokens the next instruction needs, if any
    "granted": In(1),               # all of them are available; from a register
    "missing": In(len(Engine)),     # those that are not available
    "take": Out(1),                 # take them, if there is an instruction; only while granted
    "bars": Out(1),                 # grant nothing in the next cycle
    "post": Out(len(Engine)),       # give a token to each of these in this cycle
})

# What an engine reports to the control unit in every cycle, for its counters.
events = Signature({
    "busy": Out(1),                 # an instruction has started and is not complete
    "wait": Out(len(Engine)),       # the next could start but for tokens of these engines
    "wait_memory": Out(1),          # work waits for the bus
    "bytes": Out(range(WIDEST_BUS_BYTES + 1)),    # moved over the bus
    "start": Out(1),                # an instruction starts: its tokens are taken ...
    "start_position": Out(POSITION_BITS),
    "end": Out(1),                  # ... and is complete: its tokens are posted
    "end_position": Out(POSITION_BITS),
    "fault": Out(FAULT),            # cause is NONE without a fault
})


def index() -> Shape:
    """The index of a tile, after its range check."""
    return unsigned(INDEX_BITS)


def read_port(tile_bits: int) -> Signature:
    """Reads a tile. The data are valid two cycles after `enable` and stay until the next read, or
    for that cycle only, and zero otherwise, if they are `brief`."""
    return Signature({"enable": Out(1), "index": Out(index()), "data": In(tile_bits)})


def fill_port(config: Config, parts: int, banks: int = 0) -> Signature:
    """Writes a beat of the bus, or a whole tile of padding, into a scratchpad.

    enable      there is something to write; it stays until it is `ready`
    index       the tile
    banks       where the memory is shared: the bank of the tile, one bit for each; known before
                `enable`, and none for what is not to be written there
    part        which beat of the tile, where a tile is wider than the bus
    whole       write all parts: padding
    lanes       where several tiles share a beat: which of them to write, each to the lane of
                the scratchpad's word that has the same number
    data        the beat, or the padding repeated to the width of the bus
    widen       the lanes of the beat have 8 bits and are sign-extended, as those of padding;
                accumulator only
    ready       the write takes place; low only where the memory is shared
    """
    return Signature({
        "enable": Out(1), "index": Out(index()), "part": Out(range(max(parts, 2))),
        "whole": Out(1), "lanes": Out(config.bus_bytes), "data": Out(config.bus_bits),
        "widen": Out(1), "ready": In(1), **({"banks": Out(banks)} if banks else {})})


def bits_for(count: int) -> int:
    """Bits needed to number `count` things, at least one."""
    return max(1, ceil_log2(count))
