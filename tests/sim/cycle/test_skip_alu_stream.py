"""What the ALU does on its way to the output scratchpad: in stretches as cycle by cycle."""

import random
from dataclasses import replace

import pytest

from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, AluOp, Buffer, Gemm, Load, Requantize, Sync
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.sim.cycle import loop
from microtron.sim.cycle.run import run_cycles
from microtron.sim.twins.alu import alu
from microtron.testing.compare import Case

from ..llvm.interpreted import interpret
from .test_skip_repeats import assert_equal

ACC, OUT = 1024, 1024       # tiles
CONFIG = replace(tiny, acc_bytes=ACC * tiny.tile_bytes(Buffer.ACC),
                 out_bytes=OUT * tiny.tile_bytes(Buffer.OUT))
SIZE = 1 << 14


def program_of(config, *code):
    return Program(config, encode([*code, Sync()]), (
        Segment("input", SIZE, Access.READ), Segment("output", SIZE, Access.WRITE)))


def random_loops(rng, most):
    loops = [1, 1, 1]
    for each in rng.sample(range(3), rng.randint(1, 3)):
        loops[each] = rng.choice((2, 3, 5, 7, 24, 60))
    while loops[0] * loops[1] * loops[2] > most:
        loops[rng.randrange(3)] = 1
    return tuple(loops)


def random_walk(rng, loops, tiles):
    """A first tile and strides, forwards or backwards, that stay inside."""
    stride = [rng.choice((0, 1, 1, 2, -1, 16, -16)) for _ in range(3)]
    for _ in range(3):
        ends = [(count - 1) * each for count, each in zip(loops, stride, strict=True)]
        low, high = sum(min(each, 0) for each in ends), sum(max(each, 0) for each in ends)
        if high - low < tiles:
            return rng.randrange(-low, tiles - high), tuple(stride)
        stride[rng.randrange(3)] = 0
    return 0, (0, 0, 0)


def random_alu(rng):
    loops = random_loops(rng, 1500)
    (dst, dst_stride), (src, src_stride) = (random_walk(rng, loops, each) for each in (OUT, ACC))
    walk = {"loops": loops, "dst": dst, "dst_stride": dst_stride, "src": src,
            "src_stride": src_stride}
    if rng.random() < 0.6:
        outer = rng.choice((0, 3, 6))
        return Requantize(params=rng.randrange(ACC - 6 * loops[0] - 3), params_stride=outer, **walk)
    op = rng.choice((AluOp.ADD, AluOp.MAX, AluOp.MOVE))     # the last one reads nothing
    return AluI(op=op, target=Buffer.OUT, **walk)


def random_case(seed):
    """Several instructions of the ALU, beside sums in banks that they may read."""
    rng = random.Random(seed)
    config = replace(CONFIG, vector_cycles=rng.choice((1, 1, 2, 4)),
                     acc_banks=rng.choice((1, 2, 4)), queue_depth=rng.choice((2, 16)))
    code = [Load(buffer=Buffer.UOP, shape=(1, 1, 4))]
    for _ in range(rng.randint(2, 6)):
        code += [random_alu(rng) for _ in range(rng.randint(0, 2))]
        if rng.random() < 0.7:
            loops = random_loops(rng, 900)
            reach = sum(each - 1 for each in loops)
            if reach < ACC // 2:
                code.append(Gemm(count=rng.randint(1, 3), loops=loops, dst_stride=rng.choice((
                    (0, 0, 1), (1, 1, 1), (0, 1, 0), (0, 0, 0)))))
        if rng.random() < 0.3:
            code.append(Load(sram=0, shape=(1, 2, 20)))
    return Case(program=program_of(config, *code))


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_random_walks_beside_gemm(first):
    for seed in range(first, first + 60):
        assert_equal(random_case(seed))


@pytest.mark.parametrize("vector_cycles", [1, 4])
@pytest.mark.parametrize("loops", [(1, 1, 300), (1, 60, 5), (4, 5, 15)])
def test_few_cycles_are_stepped_through(loops, vector_cycles, monkeypatch):
    stepped = 0

    def count_step(*given):
        nonlocal stepped
        stepped += 1
        return step(*given)
    step = alu.step
    monkeypatch.setattr(alu, "step", count_step)
    monkeypatch.setattr(loop, "compiled", interpret(loop.compiled))
    walk = Requantize(loops=loops, params=900, dst_stride=(75, 5, 1), src_stride=(75, 5, 1))
    cycles = run_cycles(program_of(replace(CONFIG, vector_cycles=vector_cycles), walk)).cycles
    assert stepped < 100 < 300 * vector_cycles < cycles
