"""A datapath of one's own: an intrinsic declared, scheduled, matched and run.

The average of two tensors, rounded up: the accelerator has no such instruction, but adding and
then shifting by one does it. The declaration says what one tile is, the rule which instructions
compute all tiles of some loops, and the compiler does the rest.

    python examples/new_intrinsic.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from microtron import Config, load_config, run, verify
from microtron.compiler.accelerator.lower_schedule import build
from microtron.compiler.accelerator.selection.instruction_rules import Loops
from microtron.compiler.accelerator.selection.instructions import alus
from microtron.compiler.accelerator.selection.intrinsic import Intrinsic
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.tensor import compute, placeholder
from microtron.compiler.nest.nest import Scope
from microtron.compiler.schedule.schedule import Schedule
from microtron.isa.instructions import AluI, AluOp, Engine, Instruction

TILES = 24


def average(config: Config) -> Intrinsic:
    """(left + right + 1) >> 1, lane by lane."""
    shape = (config.batch, config.block_out)
    left, right = placeholder("left", shape, "int32"), placeholder("right", shape, "int32")
    result = compute("result", shape, lambda b, o: (left[b, o] + right[b, o] + 1) >> 1)
    return Intrinsic("average", result,
                     {result: Scope.ACC, left: Scope.ACC, right: Scope.ACC}, Engine.ALU, rule)


def rule(loops: Loops) -> Iterator[Instruction]:
    """Add, then halve: `shr` rounds to nearest, ties up."""
    result, left, right = loops.tiles
    for add in alus(loops.axes, AluOp.ADD, result, left, right):
        yield add
        yield AluI(op=AluOp.SHR, dst=add.dst, src=add.dst, loops=add.loops, immediate=1,
                   dst_stride=add.dst_stride, src_stride=add.dst_stride)


def main() -> None:
    config = load_config("tiny")
    shape = (TILES, config.batch, config.block_out)
    x, y = placeholder("x", shape, "int32"), placeholder("y", shape, "int32")
    z = compute("z", shape, lambda t, b, o: (x[t, b, o] + y[t, b, o] + 1) >> 1)

    schedule = Schedule(z)
    inside = schedule.cache_write(z, Scope.ACC)
    copies = [schedule.cache_read(each, Scope.ACC, schedule.replacement_of(inside))
              for each in (x, y)]
    inside, outside = schedule.replacement_of(inside), schedule.replacement_of(z)
    step, _ = schedule[outside].split(schedule[outside].leaves[0], TILES // 4)
    for each in (*copies, inside):                  # a quarter at a time, in buffers by turns
        schedule[each].compute_at(schedule[outside], step)
        schedule[each].double_buffer(step)
    schedule[inside].tensorize(schedule[inside].leaves[1], "average")

    _, program = build(schedule, config, [average(config)])
    verify(program)

    rng = np.random.default_rng(0)
    values = {name: rng.integers(-1000, 1000, shape, dtype=np.int32) for name in ("x", "y")}
    outputs, report = run(program, values, "cycle")
    assert (outputs["z"] == evaluate(z, {x: values["x"], y: values["y"]})).all()
    print(f"{len(program.code)} instructions, {report.cycles} cycles, as NumPy says")


if __name__ == "__main__":
    main()
