"""Decodes the ALU's instructions into loop nests of one form."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import INDEX_BITS, Config
from ...isa.instructions import (
    LOOPS,
    TABLE_SHIFT,
    TABLE_WORDS,
    TABLES,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Engine,
    Instruction,
    Requantize,
    RequantizeFlags,
    Rounding,
    Table,
)
from ..interfaces import commands
from ..layouts import OPCODE_BITS, POSITION_BITS, instructions_of, opcode_of, unpack
from ..logic import exponent, narrow, reach_bits, require_entries
from ..sequencer import judge_counts, nest_layout
from .alu_lane import wraps
from .alu_lanes import WORK

WIDEST = reach_bits(1 << INDEX_BITS)    # of any index
OUT_LOW, OUT_HIGH = -128, 127           # what fits in a lane of out


def task_layout(config: Config) -> data.StructLayout:
    """The part of an instruction that is the same for all its steps; the sequencer passes it on
    with each slot."""
    return data.StructLayout({
        "reads_left": 1,
        "reads_right": 1,               # in every step; parameters are fetched apart from that
        "to_out": 1,                    # else to acc, or to a table
        **({"to_table": 1, "lookup": 1, "table": exponent(TABLES)} if config.tables else {}),
        "work": WORK,
        "post": len(Engine),
        "position": POSITION_BITS,
    })


def operands(config: Config) -> dict[str, int]:
    """Operands that the sequencer steps through, with the bits of their indices. Parameters of a
    requantize are its right operand, words of a table its destination."""
    acc = config.tiles(Buffer.ACC)
    targets = max(acc, config.tiles(Buffer.OUT), config.tables * TABLE_WORDS)
    return {"dst": reach_bits(targets), "left": reach_bits(acc), "right": reach_bits(acc)}


def decoded_layout(config: Config) -> data.StructLayout:
    """A decoded instruction as the ALU's queue stores it: its tokens and its loop nest."""
    return data.StructLayout({
        "wait": len(Engine), "nest": nest_layout(
            operands(config), task_layout(config), steps=False)})


class AluDecoder(Component):
    """Decodes commands into loop nests ahead of the ALU's queue, so that the head of the queue
    needs no further logic.

    Rate: one a cycle. Combinational: a command passes in the cycle in which it is taken.

    Members
    -------
    commands : In(stream of COMMAND)
        The ALU's instructions, in order.
    decoded : Out(stream of decoded_layout)
        The same, decoded.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__({"commands": In(commands),
                          "decoded": Out(stream.Signature(decoded_layout(config)))})

    def elaborate(self, platform):
        m = Module()
        command, decoded = self.commands.payload, self.decoded.payload
        wide = Signal(nest_layout(dict.fromkeys(operands(self.config), WIDEST),
                                  task_layout(self.config), steps=False))
        _decode(m, command, wide, self.config)
        _narrow(m, wide, decoded.nest, operands(self.config))
        m.d.comb += [decoded.wait.eq(unpack(Instruction, command.word).wait),
                     self.decoded.valid.eq(self.commands.valid),
                     self.commands.ready.eq(self.decoded.ready)]
        return m


def _narrow(m: Module, wide: data.View, nest: data.View, operands: dict[str, int]) -> None:
    """Drive a nest from one with fields as wide as those of instructions."""
    for name in nest.shape().members:
        if name not in ("bases", "strides"):
            m.d.comb += nest[name].eq(wide[name])
    for name, bits in operands.items():
        m.d.comb += nest.bases[name].eq(narrow(wide.bases[name], bits))
        for loop in LOOPS:
            m.d.comb += nest.strides[name][loop].eq(narrow(wide.strides[name][loop], bits))


def _decode(m: Module, command: data.View, nest: data.View, config: Config) -> None:
    """Drive a loop nest from a command with one of the ALU's opcodes."""
    word, task = command.word, nest.tag
    m.d.comb += task.position.eq(command.position)
    _assume(m, word, nest)
    fillers = require_entries(instructions_of(Engine.ALU), {
        Alu: _alu, AluI: _alui, Requantize: _requantize, Table: _table})
    if not config.tables:
        del fillers[Table]
    patterns = _patterns([instruction.opcode for instruction in fillers])
    with m.Switch(opcode_of(word)):
        for (instruction, fill), pattern in zip(fillers.items(), patterns, strict=True):
            with m.Case(pattern):
                fields = unpack(instruction, word)
                if instruction is Table:
                    _words(fields, config)
                fill(m, fields, nest, task)
                m.d.comb += [
                    *judge_counts(nest, dict(zip(LOOPS, fields.loops, strict=True))),
                    task.post.eq(fields.post),
                    nest.bases.dst.eq(fields.dst),
                    *(nest.loops[loop].eq(count)
                      for loop, count in zip(LOOPS, fields.loops, strict=True)),
                    *_walks(nest.strides.dst, fields.dst_stride),
                ]


def _assume(m, word, nest):
    """Defaults for fields that an instruction does not have: those of another instruction, since
    forcing them to zero would add logic to a long path. An alui ignores its right operand, and a
    requantize reads parameters only where an outer iteration begins, so its inner strides do not
    matter."""
    right, left = unpack(Alu, word), unpack(AluI, word)
    m.d.comb += [
        nest.bases.left.eq(left.src), *_walks(nest.strides.left, left.src_stride),
        nest.bases.right.eq(right.rhs), *_walks(nest.strides.right, right.rhs_stride),
        nest.tag.work.immediate.eq(left.immediate),
    ]


def _patterns(opcodes):
    """A `Case` pattern for each opcode, of the bits in which they differ; FETCH sends no other
    opcodes."""
    differing = 0
    for opcode in opcodes:
        differing |= opcode ^ opcodes[0]
    return ["".join(str(opcode >> bit & 1) if differing >> bit & 1 else "-"
                    for bit in reversed(range(OPCODE_BITS))) for opcode in opcodes]


def _walks(walk, strides):
    return (walk[loop].eq(stride) for loop, stride in zip(LOOPS, strides, strict=True))


def _alu(m, fields, nest, task):
    """The left operand steps with the destination."""
    m.d.comb += [
        nest.bases.left.eq(fields.lhs), *_walks(nest.strides.left, fields.dst_stride),
        task.reads_right.eq(1),
    ]
    _operation(m, fields, task)


def _alui(m, fields, nest, task):
    m.d.comb += task.work.constant.eq(1)
    _operation(m, fields, task)


def _operation(m, fields, task):
    scaling = task.work.control.scaling
    m.d.comb += [
        task.reads_left.eq(~fields.op.matches(*(op for op in AluOp if not op.reads_left))),
        task.to_out.eq(fields.target == Buffer.OUT),
        task.work.control.op.eq(fields.op),
        scaling.rounding.eq(Rounding.TWICE), scaling.wrap.eq(wraps(fields.op)),
        scaling.narrow.eq(task.to_out), scaling.low.eq(OUT_LOW), scaling.high.eq(OUT_HIGH),
    ]


def _requantize(m, fields, nest, task):
    scaling = task.work.control.scaling
    acc, wide, even, away, lookup, *_ = (
        (fields.flags & int(each)) != 0 for each in RequantizeFlags)
    if "lookup" in task.shape().members:
        m.d.comb += [task.lookup.eq(lookup), task.table.eq(fields.flags[TABLE_SHIFT:])]
    m.d.comb += [
        nest.bases.left.eq(fields.src), *_walks(nest.strides.left, fields.src_stride),
        nest.bases.right.eq(fields.params), nest.strides.right.outer.eq(fields.params_stride),
        nest.announces.eq(1),
        task.reads_left.eq(1),
        task.to_out.eq(~acc),
        task.work.control.requantize.eq(1),
        scaling.rounding.eq(Mux(even, Rounding.EVEN, Mux(away, Rounding.AWAY, Rounding.TWICE))),
        scaling.narrow.eq(~wide), scaling.zero_point.eq(fields.zero_point),
        scaling.low.eq(fields.low), scaling.high.eq(fields.high),
    ]


def _words(fields, config):
    """Give a table the loops that it stands for: over its words, lane by lane and tile by tile."""
    lanes = min(TABLE_WORDS, config.batch * config.block_out)
    fields.loops = tuple(Const(count, 16) for count in (1, TABLE_WORDS // lanes, lanes))
    fields.dst = Cat(Const(0, exponent(TABLE_WORDS)), fields.table[:exponent(TABLES)])
    fields.dst_stride = (0, lanes, 1)


def _table(m, fields, nest, task):
    """A table instruction moves words; their writes never stall."""
    m.d.comb += [
        nest.bases.right.eq(fields.src), *_walks(nest.strides.right, (0, 1, 0)),
        task.reads_right.eq(1), task.to_table.eq(1),
        task.work.control.op.eq(AluOp.MOVE),
        task.work.control.scaling.rounding.eq(Rounding.TWICE),
    ]
