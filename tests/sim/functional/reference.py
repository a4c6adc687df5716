"""The instruction set once more, as simply as it can be said: plain integers, one lane at a time.

Shares nothing with the simulator but the instruction records. Slow, and meant to be.
"""

from fractions import Fraction
from math import floor

from microtron.isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Table,
    Window,
)


class OutsideError(Exception):
    """An index or address that does not exist."""


def wrap(value):
    return (value + 2**31) % 2**32 - 2**31


def clamp(value, low, high):
    return low if value < low else high if value > high else value


def half_away(exact):
    return floor(exact + Fraction(1, 2)) if exact >= 0 else -floor(-exact + Fraction(1, 2))


def scale(value, multiplier, shift, flags):
    shift %= 64
    exact = Fraction(value * multiplier)
    if flags & RequantizeFlags.EVEN:
        result = round(exact / 2**shift)                # Python rounds ties to even
    elif flags & RequantizeFlags.AWAY:
        result = half_away(exact / 2**shift)
    else:
        first = min(shift, 31)
        high = clamp(floor(exact / 2**first + Fraction(1, 2)), -2**31, 2**31 - 1)
        result = half_away(Fraction(high, 2**(shift - first)))
    return clamp(result, -2**31, 2**31 - 1)


def operate(op, left, right):
    amount = right % 32
    return wrap({
        AluOp.ADD: left + right, AluOp.SUB: left - right, AluOp.MUL: left * right,
        AluOp.MIN: min(left, right), AluOp.MAX: max(left, right), AluOp.MOVE: right,
        AluOp.SHR: floor(Fraction(left, 2**amount) + (Fraction(1, 2) if amount else 0)),
        AluOp.SHL: left * 2**amount}[op])


def counters(loops):
    return [(outer, middle, inner) for outer in range(loops[0]) for middle in range(loops[1])
            for inner in range(loops[2])]


def walk(base, strides, at):
    return base + sum(stride * counter for stride, counter in zip(strides, at, strict=True))


class Reference:
    """Scratchpads as {tile: {(row, lane): number}}, DRAM as one bytearray a segment.

    A tile that is not in the dictionary has never been written: it is as `before` has it, or zero.
    """

    def __init__(self, config, segments=()):
        self.config = config
        self.dram = [bytearray(segment.size) for segment in segments]
        for content, segment in zip(self.dram, segments, strict=True):
            if segment.data is not None:
                content[:len(segment.data)] = segment.data.tobytes()
        self.pads = {buffer: {} for buffer in Buffer}
        self.pads[Buffer.ACC8] = self.pads[Buffer.ACC]
        self.before = {}
        self.tables = {}            # (table, result): entry
        self.shape = {
            Buffer.UOP: (1, 4), Buffer.INP: (config.batch, config.block_in),
            Buffer.WGT: (config.block_out, config.block_in),
            Buffer.ACC: (config.batch, config.block_out),
            Buffer.ACC8: (config.batch, config.block_out),
            Buffer.OUT: (config.batch, config.block_out)}
        self.bits = {Buffer.UOP: 16, Buffer.INP: 8, Buffer.WGT: config.wgt_bits, Buffer.ACC: 32,
                     Buffer.ACC8: 8, Buffer.OUT: 8}

    def set(self, buffer, array):
        self.before[buffer] = array.reshape(-1, *self.shape[buffer]).copy()

    def tile(self, buffer, index):
        buffer = Buffer.ACC if buffer == Buffer.ACC8 else buffer
        if not 0 <= index < self.config.tiles(buffer):
            raise OutsideError(buffer, index)
        if index in self.pads[buffer]:
            return dict(self.pads[buffer][index])
        if buffer not in self.before:
            return dict.fromkeys(self.places(buffer), 0)
        return dict(zip(self.places(buffer), self.before[buffer][index].ravel().tolist(),
                        strict=True))

    def places(self, buffer):
        """Rows and lanes of a tile in the order in which they lie: some lanes of all rows, then the
        next, where tiles of another buffer have fewer."""
        rows, lanes = self.shape[buffer]
        group = lanes if buffer in (Buffer.UOP, Buffer.WGT) else self.lanes
        return [(row, first + lane) for first in range(0, lanes, group) for row in range(rows)
                for lane in range(group)]

    def put(self, buffer, index, lanes):
        self.pads[buffer][index] = {**self.tile(buffer, index), **lanes}

    def execute(self, instruction):
        {Load: self.load, Store: self.store, Gemm: self.gemm, Window: self.window, Alu: self.alu,
         AluI: self.alui, Requantize: self.requantize, Table: self.table}[type(instruction)](
             instruction)

    def load(self, load):
        top, bottom, left, right = load.pad
        (z, y, x), pad = load.shape, load.pad_value
        rows, width = top + y + bottom, left + x + right
        if load.buffer == Buffer.WGT and not -2**(self.bits[Buffer.WGT] - 1) <= pad < 2**(
                self.bits[Buffer.WGT] - 1):
            raise OutsideError("pad_value", pad)
        self.check_alignment(load)
        for plane in range(z):
            for row in range(rows):
                for column in range(width):
                    to = load.sram + plane * load.sram_pitch + row * width + column
                    if top <= row < top + y and left <= column < left + x:
                        at = walk(load.offset, load.stride, (plane, row - top)) + (
                            column - left) * self.config.tile_bytes(load.buffer)
                        tile = self.tile_in_dram(load.buffer, load.segment, at)
                    else:
                        tile = dict.fromkeys(self.tile(load.buffer, to), pad)
                    self.put(load.buffer, to, tile)

    def tile_in_dram(self, buffer, segment, at):
        """Lanes follow each other from the lowest bit of the lowest byte."""
        size, bits = self.config.tile_bytes(buffer), self.bits[buffer]
        number = int.from_bytes(self.bytes(segment, at, size), "little")
        tile = {}
        for place in self.places(buffer):
            value, number = number % 2**bits, number >> bits
            signed = buffer != Buffer.UOP and value >= 2**(bits - 1)
            tile[place] = value - 2**bits if signed else value
        return tile

    def store(self, store):
        self.check_alignment(store)
        for plane in range(store.shape[0]):
            for row in range(store.shape[1]):
                for column in range(store.shape[2]):
                    source = walk(store.sram, store.sram_pitch, (plane, row)) + column
                    at = walk(store.offset, store.stride, (plane, row)) + (
                        column * self.config.tile_bytes(store.buffer))
                    width = self.bits[store.buffer] // 8
                    tile = self.tile(store.buffer, source)
                    for number, place in enumerate(self.places(store.buffer)):
                        start, value = at + number * width, tile[place]
                        self.bytes(store.segment, start, width)
                        self.dram[store.segment][start:start + width] = value.to_bytes(
                            width, "little", signed=True)

    def check_alignment(self, transfer):
        for value in (transfer.offset, *transfer.stride):
            if value % self.config.tile_bytes(transfer.buffer):
                raise OutsideError("alignment", value)

    def bytes(self, segment, at, size):
        if segment >= len(self.dram) or at < 0 or at + size > len(self.dram[segment]):
            raise OutsideError(segment, at)
        return self.dram[segment][at:at + size]

    def gemm(self, gemm):
        for at in counters(gemm.loops):
            for step in range(gemm.count):
                uop = self.tile(Buffer.UOP, gemm.uop + step)
                dst = walk(uop[0, 0], gemm.dst_stride, at)
                index = walk(uop[0, 1], gemm.src_stride, at)
                weight = walk(uop[0, 2], gemm.wgt_stride, at)
                if gemm.flags & GemmFlags.DEPTHWISE:
                    src = self.group_of(gemm, index)
                    groups = self.config.block_out // self.lanes
                    dst, first = dst // groups, dst % groups * self.lanes
                    total = {(row, lane): each for (row, lane), each in self.start_of_sum(
                        gemm, dst, uop[0, 3], at, step).items()
                        if first <= lane < first + self.lanes}
                    wgt = self.tile(Buffer.WGT, weight // self.config.block_out)
                    line = weight % self.config.block_out
                    for row, lane in total:
                        total[row, lane] += src[row, lane - first] * wgt[line, lane - first]
                else:
                    src = self.activations(gemm, index)
                    total = self.start_of_sum(gemm, dst, uop[0, 3], at, step)
                    wgt = self.tile(Buffer.WGT, weight)
                    for row, column in total:
                        for lane in range(self.config.block_in):
                            total[row, column] += src[row, lane] * wgt[column, lane]
                self.put(Buffer.ACC, dst, {place: wrap(each) for place, each in total.items()})

    @property
    def lanes(self):
        return min(self.config.block_in, self.config.block_out)

    def activations(self, product, index):
        """A tile of inp, or as many lanes of out."""
        if GemmFlags.OUT not in product.flags:
            return self.tile(Buffer.INP, index)
        wanted, there = self.places(Buffer.INP), self.places(Buffer.OUT)
        first = index * len(wanted)
        return {place: self.tile(Buffer.OUT, at // len(there))[there[at % len(there)]]
                for at, place in enumerate(wanted, first)}

    def group_of(self, product, index):
        """Some lanes of such a tile, counted from its first."""
        groups = self.config.block_in // self.lanes
        tile, first = self.activations(product, index // groups), index % groups * self.lanes
        return {(row, lane - first): each for (row, lane), each in tile.items()
                if first <= lane < first + self.lanes}

    def window(self, window):
        """The slot of every iteration looks at its operands, and the third and all after it end the
        sum that began two slots before."""
        if self.config.window_taps != 3:
            raise OutsideError("window_taps", self.config.window_taps)
        uop = self.tile(Buffer.UOP, window.uop) if 0 not in window.loops else {}
        for at in counters(window.loops):
            src = self.group_of(window, walk(uop[0, 1], window.src_stride, at))
            weight = walk(uop[0, 2], window.wgt_stride, at)
            wgt = self.tile(Buffer.WGT, weight // self.config.block_out)
            if weight % 4:
                raise OutsideError("group of rows", weight)
            taps = [{(row, lane): value * wgt[weight % self.config.block_out + tap, lane]
                     for (row, lane), value in src.items()} for tap in range(3)]
            if at[2] == 0:
                begun, done = {}, {}            # sums of one product, of two
            total = {place: done.get(place, 0) + each for place, each in taps[2].items()}
            done = {place: begun.get(place, 0) + each for place, each in taps[1].items()}
            begun = taps[0]
            if at[2] >= 2:
                dst = walk(uop[0, 0], window.dst_stride, (*at[:2], at[2] - 2))
                groups = self.config.block_out // self.lanes
                dst, first = dst // groups, dst % groups * self.lanes
                before = self.start_of_sum(window, dst, uop[0, 3], at, 0)
                self.put(Buffer.ACC, dst, {
                    (row, lane + first): wrap(before[row, lane + first] + each)
                    for (row, lane), each in total.items()})

    def start_of_sum(self, gemm, dst, bias, at, step):
        masks = (GemmFlags.FIRST_OUTER, GemmFlags.FIRST_MIDDLE, GemmFlags.FIRST_INNER,
                 GemmFlags.FIRST_UOP)
        moved_on = any(gemm.flags & mask and counter > 0
                       for mask, counter in zip(masks, (*at, step), strict=True))
        current = self.tile(Buffer.ACC, dst)
        if not gemm.flags & GemmFlags.START or moved_on:
            return current
        if gemm.flags & GemmFlags.BIAS:
            return self.tile(Buffer.ACC, bias)
        return dict.fromkeys(current, 0)

    def alu(self, alu):
        for at in counters(alu.loops):
            right = self.tile(Buffer.ACC, walk(alu.rhs, alu.rhs_stride, at))
            left = right if alu.op == AluOp.MOVE else self.tile(
                Buffer.ACC, walk(alu.lhs, alu.dst_stride, at))
            self.write(alu.target, walk(alu.dst, alu.dst_stride, at),
                       {place: operate(alu.op, left[place], right[place]) for place in right})

    def alui(self, alui):
        for at in counters(alui.loops):
            rows, lanes = self.shape[Buffer.ACC]
            left = {(row, lane): 0 for row in range(rows) for lane in range(lanes)}
            if alui.op != AluOp.MOVE:
                left = self.tile(Buffer.ACC, walk(alui.src, alui.src_stride, at))
            self.write(alui.target, walk(alui.dst, alui.dst_stride, at),
                       {place: operate(alui.op, left[place], alui.immediate) for place in left})

    def requantize(self, requantize):
        if requantize.flags & RequantizeFlags.LOOKUP and not self.config.tables:
            raise OutsideError("tables", self.config.tables)
        target = Buffer.ACC if requantize.flags & RequantizeFlags.ACC else Buffer.OUT
        for at in counters(requantize.loops):
            if not any(at[1:]):         # an outer iteration begins
                first = requantize.params + requantize.params_stride * at[0]
                bias, multiplier, shift = (self.tile(Buffer.ACC, first + each)
                                           for each in range(3))
            value = self.tile(Buffer.ACC, walk(requantize.src, requantize.src_stride, at))
            result = {}
            for place in value:
                result[place] = scale(wrap(value[place] + bias[place]), multiplier[place],
                                       shift[place], requantize.flags)
                if not requantize.flags & RequantizeFlags.WIDE:
                    result[place] = clamp(result[place] + requantize.zero_point, requantize.low,
                                          requantize.high)
                if requantize.flags & RequantizeFlags.LOOKUP:
                    result[place] = self.tables.get((requantize.flags // 32, result[place]), 0)
            self.write(target, walk(requantize.dst, requantize.dst_stride, at), result)

    def table(self, table):
        """Tile by tile, lane by lane, byte by byte."""
        if not self.config.tables:
            raise OutsideError("tables", self.config.tables)
        places = self.places(Buffer.ACC)
        entries = []
        while len(entries) < 256:
            tile = self.tile(Buffer.ACC, table.src + len(entries) // (4 * len(places)))
            entries += [tile[place] >> 8 * byte & 255 for place in places for byte in range(4)]
        for result, entry in zip(range(-128, 128), entries[:256], strict=True):
            self.tables[table.table, result] = (entry + 128) % 256 - 128

    def write(self, target, index, lanes):
        if target == Buffer.OUT:
            lanes = {place: clamp(value, -128, 127) for place, value in lanes.items()}
        self.put(target, index, lanes)
