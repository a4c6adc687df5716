"""The ALU's instructions as one kind of loop nest."""

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import data, stream
from amaranth.lib.wiring import Component, In, Out

from ...isa.config import Config
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
from ..logic import exponent, require_entries
from ..sequencer import judge_counts, nest_layout, offset_bits
from .alu_lane import wraps
from .alu_lanes import WORK

OUT_LOW, OUT_HIGH = -128, 127           # what fits in a lane of out


def task_layout(config: Config) -> data.StructLayout:
    """What all steps of an instruction have in common; the sequencer hands it on with each."""
    return data.StructLayout({
        "reads_left": 1,
        "reads_right": 1,               # in every step; parameters are another matter
        "to_out": 1,                    # else to acc, or to a table
        **({"to_table": 1, "lookup": 1, "table": exponent(TABLES)} if config.tables else {}),
        "work": WORK,
        "post": len(Engine),
        "position": POSITION_BITS,
    })


def operands(config: Config) -> dict[str, int]:
    """What the sequencer walks: the parameters of a requantize are its right operand, the words of
    a table its destination."""
    out, acc = offset_bits(config.tiles(Buffer.OUT)), offset_bits(config.tiles(Buffer.ACC))
    return {"dst": max(out, acc), "left": acc, "right": acc}


def decoded_layout(config: Config) -> data.StructLayout:
    """An instruction of the ALU as its queue keeps it: what it waits for, and its loops."""
    return data.StructLayout({
        "wait": len(Engine), "nest": nest_layout(
            operands(config), task_layout(config), steps=False)})


class AluDecoder(Component):
    """Turns commands into loops on their way into the ALU's queue: when one comes to its head,
    there is nothing left to find out about it.

    Rate: one a cycle. Latency: none; a command passes in the cycle in which it is taken.

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
        _decode(m, command, decoded.nest, self.config)
        m.d.comb += [decoded.wait.eq(unpack(Instruction, command.word).wait),
                     self.decoded.valid.eq(self.commands.valid),
                     self.commands.ready.eq(self.decoded.ready)]
        return m


def _decode(m: Module, command: data.View, nest: data.View, config: Config) -> None:
    """Drive a nest of the sequencer from a command with one of the ALU's opcodes."""
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
    """What an instruction leaves open is as another one has it: to make it zero would take logic,
    on a long path. An alui has no right operand, and the parameters of a requantize are looked at
    where an outer iteration begins, wherever other strides lead."""
    right, left = unpack(Alu, word), unpack(AluI, word)
    m.d.comb += [
        nest.bases.left.eq(left.src), *_walks(nest.strides.left, left.src_stride),
        nest.bases.right.eq(right.rhs), *_walks(nest.strides.right, right.rhs_stride),
        nest.tag.work.immediate.eq(left.immediate),
    ]


def _patterns(opcodes):
    """For each opcode a pattern of the bits in which they differ; FETCH sends no others."""
    differing = 0
    for opcode in opcodes:
        differing |= opcode ^ opcodes[0]
    return ["".join(str(opcode >> bit & 1) if differing >> bit & 1 else "-"
                    for bit in reversed(range(OPCODE_BITS))) for opcode in opcodes]


def _walks(walk, strides):
    return (walk[loop].eq(stride) for loop, stride in zip(LOOPS, strides, strict=True))


def _alu(m, fields, nest, task):
    """The left operand walks with the destination."""
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
    """The loops that a table stands for: its words, lane by lane of one tile after another."""
    lanes = min(TABLE_WORDS, config.batch * config.block_out)
    fields.loops = tuple(Const(count, 16) for count in (1, TABLE_WORDS // lanes, lanes))
    fields.dst = Cat(Const(0, exponent(TABLE_WORDS)), fields.table[:exponent(TABLES)])
    fields.dst_stride = (0, lanes, 1)


def _table(m, fields, nest, task):
    """Words are moved; they never wait to be written."""
    m.d.comb += [
        nest.bases.right.eq(fields.src), *_walks(nest.strides.right, (0, 1, 0)),
        task.reads_right.eq(1), task.to_table.eq(1),
        task.work.control.op.eq(AluOp.MOVE),
        task.work.control.scaling.rounding.eq(Rounding.TWICE),
    ]
