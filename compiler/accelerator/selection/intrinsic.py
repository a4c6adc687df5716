"""Hardware intrinsics, declared as the tensor expressions that they compute.

An intrinsic computes one tensor from placeholders, for one tile. Schedules name it
(`Stage.tensorize`), `tensorize` finds out whether loops are the same, and its rule gives the
instructions for all loops around it. A new datapath is a new declaration:

    x, w = placeholder("x", (1, 16), "int8"), placeholder("w", (16, 16), "int8")
    k = reduce_axis("k", 16)
    y = compute("y", (1, 16), lambda i, j: total(
        x[i, k].cast("int32") * w[j, k].cast("int32"), k))
    Intrinsic("gemm", y, {y: Scope.ACC, x: Scope.INP, w: Scope.WGT}, Engine.GEMM, rules.gemm,
              begins=True)

What follows are those of the accelerator; their rules are in `rules`. One of somebody else is
declared in the same way (examples/new_intrinsic.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ....base.arrays import Array
from ....base.classes.dataclass import dataclass
from ....isa.arithmetic import requantize_array, scale_array
from ....isa.config import Config
from ....isa.instructions import (
    AluOp,
    Engine,
    GemmFlags,
    Requantize,
    RequantizeFlags,
    Rounding,
    lookup_flags,
)
from ...errors import CompileError
from ...expression.expression import (
    Call,
    Constant,
    Expression,
    Function,
    binary,
    largest,
    maximum,
    minimum,
    total,
)
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Scope
from . import instruction_rules

CONFIGS = 16                # whose declarations are kept
LEAST = -128                # result of 8 bits, which the first entry of a table is for
FUNCTIONS = 256             # requantizations that are the same object if they are the same
ROUNDING_FLAGS = {Rounding.TWICE: RequantizeFlags(0), Rounding.EVEN: RequantizeFlags.EVEN,
                  Rounding.AWAY: RequantizeFlags.AWAY}


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """What one step of an engine computes, where its operands lie, and the rule that gives
    instructions. Sums are started by instructions of their own, unless `begins` says that the rule
    can begin them with what is added first (see `rules.Loops`). Where a rule's instructions only
    move with their operands, `motion` says so: the rule is not asked at every visit then."""

    name: str
    tensor: Tensor
    scopes: Mapping[Tensor, Scope]
    engine: Engine
    rule: instruction_rules.Rule
    begins: bool = False
    motion: instruction_rules.Motion | None = None

    def __post_init__(self) -> None:
        for tensor in (self.tensor, *self.tensor.inputs()):
            if tensor not in self.scopes:
                raise CompileError(f"intrinsic {self.name}: no scope is given for {tensor.name}")

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The result, then what is read, in the order in which an `Invoke` has their regions."""
        return (self.tensor, *self.tensor.inputs())


Intrinsics = Mapping[str, Intrinsic]


def collect_intrinsics(config: Config, more: Iterable[Intrinsic] = ()) -> Intrinsics:
    """The intrinsics of a configuration's accelerator and others, by name."""
    return accelerator_intrinsics(config) | {each.name: each for each in more}


def find_intrinsic(name: str, intrinsics: Intrinsics) -> Intrinsic:
    """The intrinsic of a name. Refuses a name that is not among them."""
    if name not in intrinsics:
        raise CompileError(f"there is no intrinsic {name!r}; there are {', '.join(intrinsics)}")
    return intrinsics[name]


def accelerator_intrinsics(config: Config) -> dict[str, Intrinsic]:
    """Everything that the accelerator of a configuration does in a cycle, by name."""
    return {intrinsic.name: intrinsic for intrinsic in _builtin_intrinsics(config)}


@lru_cache(CONFIGS)
def _builtin_intrinsics(config: Config) -> tuple[Intrinsic, ...]:
    found = [gemm(config), depthwise(config), pool(config), pool_sum(config)]
    if config.gemm_out_tiles and config.block_in == config.block_out:
        found += [gemm_of_results(config), depthwise_of_results(config)]
    found += [element_wise(config, op) for op in (AluOp.ADD, AluOp.SUB, AluOp.MUL, AluOp.MIN,
                                                  AluOp.MAX)]
    return tuple(found)


def gemm(config: Config) -> Intrinsic:
    """A product of an activation tile and a weight tile, added to an accumulator tile."""
    inp = placeholder("inp", (config.batch, config.block_in), "int8")
    wgt = placeholder("wgt", (config.block_out, config.block_in), "int8")
    k = reduce_axis("k", config.block_in)
    acc = compute("acc", (config.batch, config.block_out), lambda b, o: total(
        inp[b, k].cast("int32") * wgt[o, k].cast("int32"), k))
    return Intrinsic("gemm", acc, {acc: Scope.ACC, inp: Scope.INP, wgt: Scope.WGT}, Engine.GEMM,
                     instruction_rules.Products(), begins=True, motion=instruction_rules.PRODUCT)


def gemm_of_results(config: Config) -> Intrinsic:
    """The same with a tile of results, which has not left the chip."""
    plain = gemm(config)
    inp = plain.tensor.inputs()[0]
    return replace(plain, name="gemm.out", scopes={**plain.scopes, inp: Scope.OUT},
                   rule=instruction_rules.Products(GemmFlags.OUT))


def depthwise(config: Config) -> Intrinsic:
    """Products lane by lane, with one row of a weight tile, added to an accumulator tile; of a
    wider tile, to one of its groups of lanes. The sum has one term: sums over a window are loops
    around it."""
    inp = placeholder("inp", (config.batch, config.depthwise_lanes), "int8")
    wgt = placeholder("wgt", (config.block_in,), "int8")
    one = reduce_axis("one", 1)
    acc = compute("acc", inp.shape, lambda b, o: total(
        inp[b, o + one].cast("int32") * wgt[o].cast("int32"), one))
    return Intrinsic("depthwise", acc, {acc: Scope.ACC, inp: Scope.INP, wgt: Scope.WGT},
                     Engine.GEMM, instruction_rules.DepthwiseProducts(), begins=True,
                     motion=instruction_rules.DEPTHWISE)


def depthwise_of_results(config: Config) -> Intrinsic:
    """The same with a tile of results, which has not left the chip."""
    plain = depthwise(config)
    inp = plain.tensor.inputs()[0]
    return replace(plain, name="depthwise.out", scopes={**plain.scopes, inp: Scope.OUT},
                   rule=instruction_rules.DepthwiseProducts(GemmFlags.OUT))


def fill(config: Config, value: int) -> Intrinsic:
    """A tile of results that are all the same: a border."""
    out = compute("out", (config.batch, config.block_out), lambda b, o: Constant(value, "int8"))
    return Intrinsic(f"fill[{value}]", out, {out: Scope.OUT}, Engine.ALU,
                     instruction_rules.Fill(value), motion=instruction_rules.FILL)


def pool(config: Config) -> Intrinsic:
    """The larger of an accumulator tile and another, lane by lane: a step of a maximum."""
    source = placeholder("source", (config.batch, config.block_out), "int32")
    one = reduce_axis("one", 1)
    acc = compute("acc", source.shape, lambda b, o: largest(source[b, o + one], one))
    return Intrinsic("pool", acc, {acc: Scope.ACC, source: Scope.ACC}, Engine.ALU,
                     instruction_rules.Combine(AluOp.MAX), begins=True,
                     motion=instruction_rules.STEP)


def pool_sum(config: Config) -> Intrinsic:
    """The sum of an accumulator tile and another, lane by lane: a step of a longer sum."""
    source = placeholder("source", (config.batch, config.block_out), "int32")
    one = reduce_axis("one", 1)
    acc = compute("acc", source.shape, lambda b, o: total(source[b, o + one], one))
    return Intrinsic("pool_sum", acc, {acc: Scope.ACC, source: Scope.ACC}, Engine.ALU,
                     instruction_rules.Combine(AluOp.ADD), begins=True,
                     motion=instruction_rules.STEP)


def element_wise(config: Config, op: AluOp) -> Intrinsic:
    """An operation of two accumulator tiles, lane by lane."""
    shape = (config.batch, config.block_out)
    left, right = placeholder("left", shape, "int32"), placeholder("right", shape, "int32")

    def value(b: Expression, o: Expression) -> Expression:
        one, other = left[b, o], right[b, o]
        match op:
            case AluOp.MIN:
                return minimum(one, other)
            case AluOp.MAX:
                return maximum(one, other)
        return binary({AluOp.ADD: "+", AluOp.SUB: "-", AluOp.MUL: "*"}[op], one, other)

    result = compute("result", shape, value)
    return Intrinsic(f"alu.{op.name.lower()}", result,
                     {result: Scope.ACC, left: Scope.ACC, right: Scope.ACC}, Engine.ALU,
                     instruction_rules.ElementWise(op), motion=instruction_rules.ELEMENT_WISE)


def immediate(config: Config, op: AluOp, value: int) -> Intrinsic:
    """An operation of an accumulator tile and a constant."""
    left = placeholder("left", (config.batch, config.block_out), "int32")
    operator = {AluOp.ADD: "+", AluOp.SUB: "-", AluOp.MUL: "*", AluOp.MIN: "min",
                AluOp.MAX: "max", AluOp.SHL: "<<"}[op]
    result = compute("result", left.shape, lambda b, o: binary(operator, left[b, o], value))
    return Intrinsic(f"alui.{op.name.lower()}[{value}]", result,
                     {result: Scope.ACC, left: Scope.ACC}, Engine.ALU,
                     instruction_rules.Immediate(op, value), motion=instruction_rules.IMMEDIATE)


@dataclass(frozen=True)
class Requantization(Function):
    """A function that an instruction computes: `pattern`, without its tiles and loops."""

    pattern: Requantize


def scale_function(rounding: Rounding) -> Requantization:
    """A requantization that stays in the accumulator, with all its bits."""
    def evaluate(value: Array, bias: Array, multiplier: Array, shift: Array) -> Array:
        biased = (np.asarray(value, np.int64) + bias).astype(np.int32)
        return scale_array(biased, multiplier, shift, rounding)
    flags = ROUNDING_FLAGS[rounding] | RequantizeFlags.ACC | RequantizeFlags.WIDE
    return Requantization(f"scale.{rounding.name.lower()}", "int32", evaluate,
                          Requantize(flags=flags))


@lru_cache(FUNCTIONS)
def requantize_function(*, rounding: Rounding, zero_point: int, low: int, high: int,
                        lookup: tuple[int, ...] = ()) -> Requantization:
    """Requantization as a function of value, bias, multiplier and shift: the ISA's arithmetic. With
    a table to look results up in, that is the first of the program's."""
    table = np.array(lookup, np.int8)

    def evaluate(value: object, bias: object, multiplier: object, shift: object) -> object:
        result = requantize_array(value, bias, multiplier, shift, rounding=rounding,  # type: ignore[arg-type]
                                  zero_point=zero_point, low=low, high=high)
        return table[result.astype(np.int64) - LEAST] if lookup else result
    name = f"requantize.{rounding.name.lower()}[{zero_point},{low},{high}]"
    flags = ROUNDING_FLAGS[rounding] | (lookup_flags(0) if lookup else RequantizeFlags(0))
    return Requantization(f"{name}.lookup" if lookup else name, "int8", evaluate, Requantize(
        flags=flags, zero_point=zero_point, low=low, high=high))


def clamp_function(*, rounding: Rounding, zero_point: int, low: int, high: int) -> Requantization:
    """A requantization to 8 bits whose results stay in the accumulator."""
    narrow = requantize_function(rounding=rounding, zero_point=zero_point, low=low, high=high)

    def evaluate(*values: Array) -> Array:
        result: Array = narrow.evaluate(*values).astype(np.int32)
        return result
    return Requantization(f"{narrow.name}.acc", "int32", evaluate, replace(
        narrow.pattern, flags=narrow.pattern.flags | RequantizeFlags.ACC))


@lru_cache(FUNCTIONS)
def requantize(config: Config, function: Function, lanes: int | None = None) -> Intrinsic:
    """A tile scaled to 8 bits, or to 32 if that is what the function gives, with the parameters
    of its channels; or so many lanes of a tile."""
    if not isinstance(function, Requantization):
        raise CompileError(f"{function.name} is not a requantization: no instruction computes it")
    shape = (config.batch, lanes or config.block_out)
    acc, bias, multiplier, shift = (placeholder(name, shape, "int32") for name in
                                    ("acc", "bias", "multiplier", "shift"))
    out = compute("out", shape, lambda b, o: Call(function, (
        acc[b, o], bias[b, o], multiplier[b, o], shift[b, o])))
    scopes = {tensor: Scope.ACC for tensor in (acc, bias, multiplier, shift)}
    target = Scope.OUT if function.dtype == "int8" else Scope.ACC
    return Intrinsic(function.name, out, {out: target, **scopes}, Engine.ALU,
                     instruction_rules.Scaling(function.pattern),
                     motion=instruction_rules.REQUANTIZE)
