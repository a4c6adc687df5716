"""GEMM: runs micro-ops in three nested loops, one tile product a cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.config import Config
from ...isa.faults import Fault
from ...isa.instructions import LOOPS, WINDOW_ROWS, Buffer, Engine, Gemm, GemmFlags, MicroOp, Window
from ..accumulator import READ_LATENCY, addend_port, group_bits, request, sum_port
from ..interfaces import events, index, read_port, tokens
from ..layouts import POSITION_BITS, instructions_of, opcode_of, unpack, widths_of
from ..logic import delay_line, exponent
from ..sequencer import Sequencer, offset_bits
from ..start import start_next
from .forwarding import ForwardingAdder
from .gemm_decode import JUDGED, counts_of
from .mac import MacArray, tree_stages

assert instructions_of(Engine.GEMM) == (Gemm, Window), "another instruction needs hardware here"

# Flags that restrict where a sum starts, each with the loop that must be in its first iteration.
FIRSTS = {GemmFlags.FIRST_UOP: "step", GemmFlags.FIRST_INNER: "inner",
          GemmFlags.FIRST_MIDDLE: "middle", GemmFlags.FIRST_OUTER: "outer"}
assert {*FIRSTS, GemmFlags.DEPTHWISE, GemmFlags.START, GemmFlags.BIAS,
        GemmFlags.OUT} == {*GemmFlags}, (
    "another flag needs hardware here")

# Pipeline stages, in cycles from the issue of a slot: the micro-op is valid, tiles are read,
# `stopped` is set, tiles are valid, products are valid.
MICRO_OP, READ, STOP, TILES, PRODUCT = 2, 3, 4, 5, 7

# Fields of an instruction that travel with its slots; only the last slot posts and ends.
TASK = data.StructLayout({"post": len(Engine), "position": POSITION_BITS})


def tag_layout(config: Config) -> data.StructLayout:
    """Fields of an instruction that all its slots share."""
    return data.StructLayout({"flags": widths_of(Gemm)["flags"], "uop": index(), "task": TASK,
                              **_with_windows(config, "window")})


def _with_windows(config: Config, *fields: str) -> dict[str, int]:
    """One-bit fields that exist only in configurations with windows."""
    return {name: 1 for name in fields if config.has_windows}


def _with_bits(fields: dict[str, int]) -> dict[str, int]:
    """Drop fields of zero bits."""
    return {name: bits for name, bits in fields.items() if bits}


def write_stage(config: Config) -> int:
    """The cycle of a slot's write, counted from its issue."""
    return PRODUCT + tree_stages(config) + 1


def start_to_end(config: Config, slots: int) -> int:
    """Cycles from the start of a gemm of `slots` tile products to its end."""
    return write_stage(config) + max(1, slots)


def operands(config: Config) -> dict[str, int]:
    """The operands that step with the loops, with the bits of their offsets. Offsets may count
    groups of lanes, and rows of weight tiles."""
    tiles = {"dst": config.tiles(Buffer.ACC) * config.acc_groups,
             "src": max(config.tiles(Buffer.INP), config.gemm_out_tiles) * config.inp_groups,
             "wgt": config.tiles(Buffer.WGT) * config.block_out}
    return {name: offset_bits(count) for name, count in tiles.items()}


def issued_layout(config: Config) -> data.StructLayout:
    """A slot whose micro-op is being read."""
    offsets = {name: signed(bits) for name, bits in operands(config).items()}
    return data.StructLayout({
        "valid": 1,                     # there is a product to compute
        "ends": 1,                      # the last slot of its instruction
        "outside": 1,                   # the micro-op's index is out of range
        "start": 1, "bias": 1,          # a new sum starts; it starts from the bias tile
        "depthwise": 1,
        "out": 1,                       # activations come from `out`
        "offsets": data.StructLayout(offsets),
        **_with_windows(config, "window", "adds"),      # completes a sum, as in gemms
    })


def product_slot(config: Config) -> data.StructLayout:
    """A slot with its indices. `tile` is the addend: dst or bias, or none if `clear`; `reads`: it
    must be read. A depthwise product reads the lanes of group `from_group` and writes one of the
    `groups`; others write all of them."""
    return data.StructLayout({
        "valid": 1, "ends": 1, "clear": 1, "reads": 1, "depthwise": 1, "out": 1, "row": index(),
        "src": index(), "wgt": index(), "tile": index(), "dst": index(),
        **_with_bits({"from_group": exponent(config.inp_groups), "groups": group_bits(config)}),
        **_with_windows(config, "window")})


def located_slot(config: Config) -> data.StructLayout:
    """A slot and its range checks: if any bit of `outside` is set, it must have no effect."""
    return data.StructLayout({"slot": product_slot(config), "outside": 4 + config.has_windows,
                              **_with_windows(config, "adds")})


class GemmEngine(wiring.Component):
    """Executes gemms and windows, in order, overlapping consecutive instructions.

    A slot, one iteration of one micro-op, passes through these stages, where T is `tree_stages`:

        0           issued by the sequencer; the micro-op is read
        2           the micro-op is valid; indices are added and compared
        3           activations and weights are read; a slot with an index outside is dropped
        5           they are valid; activations come from either of two scratchpads
        6           they stand in front of the multipliers
        7           products; the adder tree begins, or depthwise lanes are picked
        4 + T       the accumulator tile is read
        7 + T       it is valid, and so are the sums; they are added
        8 + T       the result is written

    Rate: a slot a cycle. The pipeline never stalls, whatever the order of tiles, and there is no
    bubble between instructions: a command is taken in the cycle in which the sequencer issues the
    last slot of the previous one.

    Latency: N slots end 8 + T + N cycles after the start (`start_to_end`). An instruction without
    iterations takes a slot that computes nothing.

    A window has the slots of a gemm with one micro-op. From the third iteration of the inner loop
    on, each slot completes the sum that started two slots before, so destination and its range
    check are those of that earlier slot. The first two slots read tiles and write nothing.

    The end of an instruction is the cycle of its last write. A slot with an index out of range has
    no effect, nor have those behind it, although they are issued; `stopped` is set in its stage 4,
    and the fault is reported until reset. Slots ahead of it in the pipeline complete. From the
    cycle after `halts` on, no command is taken, no slot issued and nothing posted; slots issued
    before complete. The sequencer keeps running, without effect.

    Registers: `halted`, `stopped`, `closed` after either, `fault_position`, `in_flight`
    (instructions started and not ended, before `started` and `ended` are counted), the slots in
    stages 1 to 8 + T, and those of Sequencer, MacArray and ForwardingAdder.

    Members
    -------
    commands : In(stream of JUDGED)
        Gemms and windows, in order. Each is taken in the cycle of its start.
    tokens : Out(tokens)
        Taken at the start of an instruction, posted at its end.
    events : Out(events)
        What the control unit counts and reports. GEMM never waits for memory.
    uop : Out(read_port)
        Micro-ops, one for each slot.
    inp, wgt : Out(read_port)
        Activation and weight tiles, one of each for a slot.
    out : Out(read_port)
        Results of the ALU used as activations, if the configuration has `gemm_out_tiles`; the data
        of this port and of inp are then `brief`.
    acc_read : Out(addend_port)
        The accumulator tile that a slot adds to. Never waits.
    acc_write : Out(sum_port)
        The accumulator tile that a slot writes. Never waits.
    halts : In(1)
        Stop taking commands, issuing slots and posting from the next cycle on.
    """

    def __init__(self, config: Config):
        self.config = config
        tile_bits = {buffer: 8 * config.tile_bytes(buffer) for buffer in Buffer}
        super().__init__({
            "commands": In(stream.Signature(JUDGED)),
            "tokens": Out(tokens),
            "events": Out(events),
            "uop": Out(read_port(tile_bits[Buffer.UOP])),
            "inp": Out(read_port(tile_bits[Buffer.INP])),
            "wgt": Out(read_port(tile_bits[Buffer.WGT])),
            **({"out": Out(read_port(tile_bits[Buffer.INP]))} if config.gemm_out_tiles else {}),
            "acc_read": Out(addend_port(config)),
            "acc_write": Out(sum_port(config)),
            "halts": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = sequencer = Sequencer(
            operands(self.config), tag_layout(self.config), steps=True)
        halted, closed = Signal(), Signal()     # after `halts`; after that or a bad index
        with m.If(self.halts):
            m.d.sync += [halted.eq(1), closed.eq(1)]
        self._accept(m, sequencer.nests, closed)
        issued = self._issue(m, sequencer.slots, halted)
        stages = self._locate(m, issued, closed)
        for stage in range(STOP + 1, write_stage(self.config) + 1):
            stages[stage] = Signal(product_slot(self.config), name=f"stage_{stage}")
            m.d.sync += stages[stage].eq(stages[stage - 1])
        self._compute(m, stages)
        self._complete(m, stages, halted)
        return m

    def _accept(self, m, nests, closed):
        """Take a command and its tokens when the sequencer is ready."""
        command = self.commands.payload
        gemm, counts = unpack(Gemm, command.word), counts_of(self.config, command)
        nest, tag = nests.payload, nests.payload.tag
        m.d.comb += nests.valid.eq(start_next(m, self, nests.ready & ~closed))
        m.d.comb += [nest.count.eq(counts["step"]), nest.once.eq(command.once),
                     nest.never.eq(command.never), tag.flags.eq(gemm.flags), tag.uop.eq(gemm.uop),
                     tag.task.post.eq(gemm.post), tag.task.position.eq(command.position)]
        for number, loop in enumerate(LOOPS):
            m.d.comb += nest.loops[loop].eq(counts[loop])
            for name in operands(self.config):
                m.d.comb += nest.strides[name][loop].eq(getattr(gemm, f"{name}_stride")[number])
        if self.config.has_windows:
            m.d.comb += tag.window.eq(opcode_of(command.word) == Window.opcode)

    def _issue(self, m, slots, halted):
        """Stages 0 to 2: read the micro-op. Returns the slot in the cycle in which its micro-op is
        valid."""
        slot, flags = slots.payload, slots.payload.tag.flags
        work, start = Signal(), Signal()
        micro_op = Signal(len(slot.tag.uop) + 1)
        later = Cat(_has(flags, flag) & ~slot.first[name] for flag, name in FIRSTS.items())
        m.d.comb += [
            slots.ready.eq(1),
            work.eq(slots.valid & ~halted),
            start.eq(_has(flags, GemmFlags.START) & ~later.any()),
            micro_op.eq(slot.tag.uop + slot.step),
            self.uop.enable.eq(work & ~slot.empty),
            self.uop.index.eq(micro_op),
        ]
        issued = [Signal(issued_layout(self.config), name=f"stage_{stage}")
                  for stage in range(1, MICRO_OP + 1)]
        m.d.sync += [
            issued[0].valid.eq(work & ~slot.empty),
            issued[0].ends.eq(work & slot.last),
            issued[0].outside.eq(_is_outside(micro_op, self.config.tiles(Buffer.UOP))),
            issued[0].start.eq(start),
            issued[0].bias.eq(start & _has(flags, GemmFlags.BIAS)),
            issued[0].depthwise.eq(_has(flags, GemmFlags.DEPTHWISE)),
            issued[0].out.eq(_has(flags, GemmFlags.OUT)),
            issued[0].offsets.eq(slot.at),
            issued[1].eq(issued[0]),
        ]
        self.task = data.View(TASK, delay_line(m, slot.tag.task.as_value(), READ, "read_task"))
        if self.config.has_windows:
            self._slide(m, slot, issued[0])
        return issued[1]

    def _slide(self, m, slot, issued):
        """Complete the sums of windows. Their slots come in consecutive cycles, so two slots before
        is two cycles before; both agree on where sums start."""
        was_first = Signal()
        last, before_last = (Signal.like(slot.at.dst, name=f"dst_{name}")
                             for name in ("last", "before_last"))
        m.d.sync += [was_first.eq(slot.first.inner), last.eq(slot.at.dst), before_last.eq(last),
                     issued.window.eq(slot.tag.window),
                     issued.adds.eq(~slot.tag.window | ~(slot.first.inner | was_first))]
        with m.If(slot.tag.window):
            m.d.sync += [issued.depthwise.eq(1), issued.offsets.dst.eq(before_last)]

    def _locate(self, m, issued, closed):
        """Stages 2 to 4: compute the indices and stop at the first out of range."""
        micro_op = unpack(MicroOp, self.uop.data)
        at = {name: Signal(signed(bits + 1), name=name)
              for name, bits in operands(self.config).items()}
        for name, tile in at.items():
            m.d.comb += tile.eq(getattr(micro_op, name) + issued.offsets[name])
        row_bits = exponent(self.config.block_out)
        wgt = Mux(issued.depthwise, at["wgt"] >> row_bits, at["wgt"])
        from_bits, to_bits = exponent(self.config.inp_groups), exponent(self.config.acc_groups)
        src = Mux(issued.depthwise, at["src"] >> from_bits, at["src"]) if from_bits else at["src"]
        dst = Mux(issued.depthwise, at["dst"] >> to_bits, at["dst"]) if to_bits else at["dst"]
        tiles = {buffer: self.config.tiles(buffer) for buffer in Buffer}
        located = Signal(located_slot(self.config), name=f"stage_{READ}")
        slot = located.slot
        adds = issued.adds if self.config.has_windows else Const(1, 1)
        outside_of = [
            issued.outside | (adds & issued.bias & _is_outside(micro_op.bias, tiles[Buffer.ACC])),
            adds & _is_outside(dst, tiles[Buffer.ACC]),
            Mux(issued.out, _is_outside(src, self.config.gemm_out_tiles),
                _is_outside(src, tiles[Buffer.INP])),
            _is_outside(wgt, tiles[Buffer.WGT])]
        m.d.sync += [
            slot.valid.eq(issued.valid), slot.ends.eq(issued.ends),
            slot.clear.eq(issued.start & ~issued.bias), slot.depthwise.eq(issued.depthwise),
            slot.out.eq(issued.out), slot.row.eq(at["wgt"][:row_bits]),
            slot.src.eq(src), slot.wgt.eq(wgt),
            slot.tile.eq(Mux(issued.bias, micro_op.bias, dst)), slot.dst.eq(dst),
        ]
        if from_bits:
            m.d.sync += slot.from_group.eq(Mux(issued.depthwise, at["src"][:from_bits], 0))
        if to_bits:
            m.d.sync += slot.groups.eq(Mux(issued.depthwise, Const(1) << at["dst"][:to_bits], ~0))
        outside, works, stopped = Signal(), Signal(), Signal()
        m.d.comb += [outside.eq(slot.valid & located.outside.any()),
                     works.eq(~outside & ~stopped)]
        fault_position = Signal(POSITION_BITS)
        with m.If(~stopped):
            m.d.sync += [stopped.eq(outside), fault_position.eq(self.task.position)]
        with m.If(outside):
            m.d.sync += closed.eq(1)
        m.d.comb += [self.events.fault.cause.eq(Mux(stopped, Fault.INDEX, Fault.NONE)),
                     self.events.fault.position.eq(fault_position)]
        checked = Signal(product_slot(self.config), name=f"stage_{STOP}")
        m.d.sync += [checked.eq(slot), checked.valid.eq(slot.valid & works),
                     checked.reads.eq(slot.valid & works & ~slot.clear),
                     checked.ends.eq(slot.ends & works)]
        if self.config.has_windows:
            outside_of.append(issued.window & at["wgt"][:exponent(WINDOW_ROWS)].any())
            m.d.sync += [located.adds.eq(issued.adds), slot.window.eq(issued.window),
                         checked.valid.eq(slot.valid & works & located.adds),
                         checked.reads.eq(slot.valid & works & located.adds & ~slot.clear)]
        m.d.sync += located.outside.eq(Cat(outside_of))
        return {READ: slot, STOP: checked}

    def _compute(self, m, stages):
        """Read the tiles, multiply, add to the accumulator and write."""
        m.submodules.array = array = MacArray(self.config)
        m.submodules.adder = adder = ForwardingAdder(self.config)
        tree = tree_stages(self.config)
        read, tiles = stages[READ], stages[TILES]
        acc_read, acc_next = (stages[PRODUCT + tree - READ_LATENCY - ago] for ago in (0, 1))
        m.d.comb += [
            self.inp.enable.eq(read.valid & ~read.out), self.inp.index.eq(read.src),
            self.wgt.enable.eq(read.valid), self.wgt.index.eq(read.wgt),
            array.inp.eq(self.inp.data), array.wgt.eq(self.wgt.data),
            array.depthwise.eq(tiles.depthwise), array.row.eq(tiles.row),
            self.acc_read.next_enable.eq(acc_next.reads),
            self.acc_read.next_index.eq(acc_next.tile),
            self.acc_read.index.eq(acc_read.tile),
            self.acc_read.drop.eq(adder.drop),
            adder.tile.eq(self.acc_read.data), adder.sums.eq(array.sums),
        ]
        acc_enable = Signal(self.config.acc_banks)
        acc_spares = Signal(self.config.acc_banks, init=2**self.config.acc_banks - 1)
        wanted = request(self.config, acc_next.reads, acc_next.tile)
        m.d.sync += [acc_enable.eq(wanted), acc_spares.eq(~wanted)]
        m.d.comb += [self.acc_read.enable.eq(acc_enable), self.acc_read.spares.eq(acc_spares)]
        if self.config.inp_groups > 1:
            m.d.comb += array.group.eq(tiles.from_group)
        if self.config.has_windows:
            m.d.comb += array.window.eq(tiles.window)
        if self.config.gemm_out_tiles:
            m.d.comb += [self.out.enable.eq(read.valid & read.out), self.out.index.eq(read.src),
                         array.inp.eq(self.inp.data | self.out.data)]   # one of them is zero
        m.d.comb += [getattr(adder.reading, name).eq(getattr(acc_read, name))
                     for name in adder.reading.shape().members]
        wiring.connect(m, adder.write, wiring.flipped(self.acc_write))

    def _complete(self, m, stages, halted):
        """Post tokens with the last write; count the instructions between start and end."""
        slot, before = (stages[write_stage(self.config) - ago] for ago in (0, 1))
        ends = before.ends & ~self.halts & ~halted
        task = data.View(TASK, delay_line(
            m, self.task.as_value(), write_stage(self.config) - 1 - READ, "last_task"))
        post, position = (Signal.like(each, name=name) for name, each
                          in (("post", task.post), ("position", task.position)))
        m.d.sync += [slot.ends.eq(ends), post.eq(Mux(ends, task.post, 0)),
                     position.eq(task.position)]
        in_flight, started, ended = Signal(range(write_stage(self.config) + 2)), Signal(), Signal()
        m.d.sync += [started.eq(self.events.start), ended.eq(self.events.end)]
        with m.If(started & ~ended):                # both are counted one cycle later
            m.d.sync += in_flight.eq(in_flight + 1)
        with m.Elif(ended & ~started):
            m.d.sync += in_flight.eq(in_flight - 1)
        m.d.comb += [
            self.events.end.eq(slot.ends),
            self.events.end_position.eq(position),
            self.tokens.post.eq(post),
            self.events.busy.eq(started | (in_flight != ended)),
        ]


def _has(flags, flag):
    return flags[exponent(flag)]


def _is_outside(tile, tiles):
    """Whether an index is out of range; the number of tiles is a power of two, or zero."""
    if tiles == 0:
        return Const(1)
    return Value.cast(tile).as_unsigned()[exponent(tiles):].any()
