"""The verifier once more, as simply as it can be said: every iteration of every loop, in sets.

Shares nothing with the verifier but the instruction records. Slow, and meant to be.
"""

from itertools import product

from microtron.isa.instructions import (
    AluOp,
    Buffer,
    GemmFlags,
    Load,
    RequantizeFlags,
    Store,
)


class OutsideError(Exception):
    """A tile or a micro-op that does not exist."""


def walk(base, strides, loops):
    """The indices of an affine access, one by one."""
    for counters in product(*(range(count) for count in loops)):
        yield base + sum(stride * at for stride, at in zip(strides, counters, strict=True))


def transfer(instruction, config):
    """Pairs of a byte of DRAM and the tile it belongs to, in the order in which a load moves
    them; the tile is counted as in a load without a border."""
    z, y, x = instruction.shape
    size = config.tile_bytes(instruction.buffer)
    for plane, row, column in product(range(z), range(y), range(x)):
        at = instruction.offset + plane * instruction.stride[0] + row * instruction.stride[1]
        yield at + column * size, (plane, row, column)


class Accesses:
    """What one instruction reads and writes: sets of (space, cell), a space being a buffer or the
    name of a segment."""

    def __init__(self, instruction, config, segments, uops):
        self.config, self.segments, self.uops = config, segments, uops
        self.reads, self.writes = set(), set()
        getattr(self, f"_{instruction.mnemonic()}", lambda _: None)(instruction)

    def tiles(self, cells, buffer, indices):
        for index in indices:
            if not 0 <= index < self.config.tiles(buffer):
                raise OutsideError
            cells.add((Buffer.ACC if buffer == Buffer.ACC8 else buffer, index))

    def bytes(self, cells, instruction):
        segment = self.segments[instruction.segment]
        size = self.config.tile_bytes(instruction.buffer)
        for at, _ in transfer(instruction, self.config):
            cells.update((segment.name, byte) for byte in range(at, at + size))

    def _load(self, load):
        top, bottom, left, right = load.pad
        width, height = left + load.shape[2] + right, top + load.shape[1] + bottom
        self.tiles(self.writes, load.buffer, walk(
            load.sram, (load.sram_pitch, width, 1), (load.shape[0], height, width)))
        self.bytes(self.reads, load)

    def _store(self, store):
        self.tiles(self.reads, store.buffer, walk(store.sram, (*store.sram_pitch, 1),
                                                    store.shape))
        self.bytes(self.writes, store)

    def _gemm(self, gemm):
        if 0 in gemm.loops:
            return
        used = range(gemm.uop, gemm.uop + gemm.count)
        self.tiles(self.reads, Buffer.UOP, used)
        depthwise = gemm.flags & GemmFlags.DEPTHWISE
        config, lanes = self.config, min(self.config.block_in, self.config.block_out)
        rows = config.block_out if depthwise else 1
        counted = {Buffer.ACC: lanes if depthwise else config.block_out,
                   Buffer.INP: lanes if depthwise else config.block_in}
        for number, (dst, src, wgt, bias) in enumerate(self.uops[each] for each in used):
            self.tiles(self.writes, Buffer.ACC, [
                index * counted[Buffer.ACC] // config.block_out
                for index in walk(dst, gemm.dst_stride, gemm.loops)])
            for index in walk(src, gemm.src_stride, gemm.loops):
                first = index * counted[Buffer.INP]             # lane, from the first tile on
                if gemm.flags & GemmFlags.OUT:
                    self.tiles(self.reads, Buffer.OUT, [
                        lane // config.block_out
                        for lane in range(first, first + counted[Buffer.INP])])
                else:
                    self.tiles(self.reads, Buffer.INP, [first // config.block_in])
            self.tiles(self.reads, Buffer.WGT, [
                index // rows for index in walk(wgt, gemm.wgt_stride, gemm.loops)])
            first_only = gemm.flags & GemmFlags.FIRST_UOP and number
            if gemm.flags & GemmFlags.BIAS and not first_only:
                self.tiles(self.reads, Buffer.ACC, [bias])

    def _alu(self, alu):
        if alu.op != AluOp.MOVE:
            self.tiles(self.reads, Buffer.ACC, walk(alu.lhs, alu.dst_stride, alu.loops))
        self.tiles(self.reads, Buffer.ACC, walk(alu.rhs, alu.rhs_stride, alu.loops))
        self.tiles(self.writes, alu.target, walk(alu.dst, alu.dst_stride, alu.loops))

    def _alui(self, alui):
        if alui.op != AluOp.MOVE:
            self.tiles(self.reads, Buffer.ACC, walk(alui.src, alui.src_stride, alui.loops))
        self.tiles(self.writes, alui.target, walk(alui.dst, alui.dst_stride, alui.loops))

    def _requantize(self, requantize):
        outer, middle, inner = requantize.loops
        target = Buffer.ACC if requantize.flags & RequantizeFlags.ACC else Buffer.OUT
        self.tiles(self.reads, Buffer.ACC, walk(requantize.src, requantize.src_stride,
                                                  requantize.loops))
        if middle and inner:
            self.tiles(self.reads, Buffer.ACC, walk(
                requantize.params, (requantize.params_stride, 1), (outer, 3)))
        self.tiles(self.writes, target, walk(requantize.dst, requantize.dst_stride,
                                               requantize.loops))

    def _table(self, table):
        lanes = self.config.batch * self.config.block_out
        self.tiles(self.reads, Buffer.ACC, [table.src + word // lanes for word in range(64)])

    def conflicts(self, other):
        """The cells for which two instructions must not run at the same time."""
        return (self.writes & (other.reads | other.writes)) | (self.reads & other.writes)


def has_bad_address(instructions, config, segments):
    """Whether a transfer leaves its segment, which is found out before all else."""
    return any(at < 0 or at + config.tile_bytes(each.buffer) > segments[each.segment].size
               for each in instructions if isinstance(each, Load | Store)
               for at, _ in transfer(each, config))


def accesses_of(instructions, config, segments):
    """Of each instruction, following what loads bring into the micro-op scratchpad; up to the
    first that reaches outside."""
    uops = [(0, 0, 0, 0)] * config.tiles(Buffer.UOP)
    found = []
    for instruction in instructions:
        try:
            found.append(Accesses(instruction, config, segments, uops))
        except OutsideError:
            return found
        if isinstance(instruction, Load) and instruction.buffer == Buffer.UOP:
            content = bytes(segments[instruction.segment].data).ljust(4096, b"\0")
            for at, (plane, row, column) in transfer(instruction, config):
                to = (instruction.sram + plane * instruction.sram_pitch
                      + row * instruction.shape[2] + column)
                uops[to] = tuple(int.from_bytes(content[at + 2 * each:at + 2 * each + 2], "little")
                                 for each in range(4))
    return found


def orders_of(instructions):
    """For each instruction, which earlier ones are complete before it starts; up to the first
    that starves. The k-th wait takes the k-th post, and a barrier waits for all."""
    before, posts, last, all_complete = [], {}, {}, set()
    for now, instruction in enumerate(instructions):
        engine = instruction.engine
        if engine is None:
            before.append(set(range(now)))
            all_complete = set(range(now))
            continue
        known = set(all_complete)
        if engine in last:
            known |= before[last[engine]] | {last[engine]}
        for other in range(4):
            if instruction.wait >> other & 1:
                queue = posts.get((other, engine), [])
                if not queue:
                    return before
                poster = queue.pop(0)
                known |= before[poster] | {poster}
        before.append(known)
        last[engine] = now
        for other in range(4):
            if instruction.post >> other & 1:
                posts.setdefault((engine, other), []).append(now)
    return before


def races_of(instructions, config, segments):
    """{(earlier, later): cells} of all pairs in conflict that nothing puts in order; and how many
    instructions were looked at before one starved or reached outside."""
    accesses, before = accesses_of(instructions, config, segments), orders_of(instructions)
    looked_at = min(len(accesses), len(before))
    races = {}
    for later in range(looked_at):
        for earlier in range(later):
            cells = accesses[earlier].conflicts(accesses[later])
            if cells and earlier not in before[later] and (
                    instructions[earlier].engine != instructions[later].engine):
                races[earlier, later] = cells
    return races, looked_at
