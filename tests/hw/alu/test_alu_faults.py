"""The ALU engine when an index is outside, and when it is told to halt."""

from dataclasses import replace

import pytest

from microtron.hw.alu.alu import start_to_end
from microtron.isa.config import tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import Alu, AluI, AluOp, Buffer, Requantize, RequantizeFlags

from ..simulate import simulate
from .alu_bench import Bench
from .decoding_alu import DecodingAlu

SMALL = replace(tiny, block_out=1, acc_bytes=64, out_bytes=8, acc_banks=2)     # 16 and 8 tiles
WIDEST = replace(tiny, block_out=1, acc_bytes=4 << 16, out_bytes=1 << 16)
START_TO_END = start_to_end(SMALL)
ALONG, BACK = (0, 0, 1), (0, 0, -1)
BEFORE = AluI(op=AluOp.MOVE, loops=(1, 1, 3), dst_stride=ALONG, immediate=9)
BEHIND = AluI(op=AluOp.MOVE, loops=(1, 1, 8), dst_stride=ALONG, immediate=-7)
ACC = RequantizeFlags.ACC

# Each fails somewhere after its first step.
FAULTY = {
    "dst above acc": AluI(dst=13, loops=(1, 1, 5), dst_stride=ALONG),
    "dst below acc": AluI(dst=2, loops=(1, 1, 5), dst_stride=BACK),
    "dst above out": AluI(dst=6, loops=(1, 1, 5), dst_stride=ALONG, target=Buffer.OUT),
    "dst below out": Alu(dst=1, lhs=9, rhs=3, loops=(1, 3, 1), dst_stride=(0, -1, 0),
                         target=Buffer.OUT),
    "src above": AluI(src=14, loops=(1, 1, 3), src_stride=ALONG),
    "src below": AluI(src=1, loops=(3, 1, 1), src_stride=(-1, 0, 0)),
    "lhs above": Alu(lhs=12, loops=(2, 2, 2), dst_stride=(2, 2, 1)),
    "lhs below": Alu(dst=9, lhs=1, loops=(1, 1, 4), dst_stride=BACK),
    "rhs above": Alu(rhs=15, loops=(1, 2, 2), rhs_stride=(0, 1, 0)),
    "rhs below": Alu(rhs=0, loops=(1, 2, 2), rhs_stride=(0, -1, 0)),
    "rhs of a move": Alu(op=AluOp.MOVE, rhs=15, loops=(1, 1, 2), rhs_stride=ALONG),
    "requantize dst": Requantize(dst=7, loops=(2, 1, 1), dst_stride=(1, 0, 0)),
    "requantize acc dst": Requantize(flags=ACC, dst=15, loops=(2, 1, 1), dst_stride=(1, 0, 0)),
    "requantize src": Requantize(src=0, loops=(1, 2, 2), src_stride=(0, -1, 0)),
    "first parameter": Requantize(params=10, params_stride=6, loops=(2, 1, 2)),
    "second parameter": Requantize(params=13, params_stride=2, loops=(2, 1, 2)),
    "third parameter": Requantize(params=13, params_stride=1, loops=(2, 2, 1)),
}
# These touch the edges, or have an operand that is not used.
FAULTLESS = [
    AluI(dst=15, src=0, loops=(1, 1, 16), dst_stride=BACK, src_stride=ALONG),
    AluI(dst=0, src=15, loops=(1, 1, 8), dst_stride=ALONG, src_stride=BACK, target=Buffer.OUT),
    Requantize(params=13, src=15, dst=7),
    Requantize(params=65535, src=65535, dst=65535, loops=(3, 0, 1)),
    Alu(op=AluOp.MOVE, lhs=65535, rhs=15, dst=0, loops=(1, 1, 2), dst_stride=ALONG),
    AluI(op=AluOp.MOVE, src=65535, loops=(1, 1, 3), src_stride=(0, 0, 32767)),
    AluI(dst=65535, src=65535, loops=(1, 1, 0)),
]


def stop(config, *instructions, position, **settings):
    """Run up to the fault; everything before it has happened, and nothing behind."""
    bench = Bench(config, list(instructions), **settings).run()
    assert bench.fault == (Fault.INDEX, position)
    assert len(bench.ends) == position
    assert not bench.model.execute(instructions[position])
    bench.compare()
    return bench


@pytest.mark.parametrize("name", FAULTY)
def test_an_index_outside_stops_the_engine_at_its_step(name):
    stop(SMALL, BEFORE, FAULTY[name], BEHIND, BEHIND, position=1, refusal=0.2)


def test_no_instruction_starts_behind_the_faulty_step():
    bench = stop(SMALL, BEFORE, AluI(dst=16), *[AluI()] * 20, position=1)
    assert len(bench.starts) == 3           # one was taken in the cycle in which the step entered
    bench = stop(SMALL, AluI(dst=16), AluI(), position=0, refusal=0.8)
    assert len(bench.starts) == 1


def test_what_is_not_touched_may_be_outside():
    bench = Bench(SMALL, FAULTLESS).run()
    assert bench.fault is None
    assert len(bench.ends) == len(FAULTLESS)


@pytest.mark.parametrize("stride", [32767, -32768])
def test_the_longest_strides_do_not_wrap_into_the_scratchpad(stride):
    far = (0, 0, stride)
    start = 0 if stride > 0 else 65535
    stop(WIDEST, AluI(op=AluOp.MOVE, dst=start, loops=(1, 1, 65535), dst_stride=far), BEHIND,
         position=0)
    stop(SMALL, AluI(src=0, loops=(65535, 65535, 65535), src_stride=(stride,) * 3), position=0)


def test_parameters_beyond_sixteen_bits_are_outside():
    stop(WIDEST, Requantize(params=65500, params_stride=255, loops=(5, 1, 1)), BEHIND, position=0)


@pytest.mark.parametrize("halt_at", [3, START_TO_END + 1, START_TO_END + 4, START_TO_END + 10])
def test_a_halt_stops_writes_and_posts_at_once(halt_at):
    bench = Bench(SMALL, [BEFORE, BEHIND, BEFORE, BEHIND], halt_at=halt_at).run()
    assert all(cycle < halt_at for cycle in bench.starts + bench.ends + bench.writes)
    assert len(bench.writes) == max(halt_at - START_TO_END, 0)


@pytest.mark.parametrize("later", range(1, 6))
def test_nothing_starts_once_a_step_was_outside_even_if_the_sequencer_is_idle(later):
    unit = DecodingAlu(SMALL)
    words = [int.from_bytes(each.encode(), "little") for each in (AluI(dst=20), AluI(dst=3))]
    starts = []

    async def testbench(ctx):
        ctx.set(unit.tokens.granted, 1)
        for cycle in range(later + 8):          # the first in cycle 0, and the second from `later`
            ctx.set(unit.commands.valid, cycle == 0 or (cycle >= later and len(starts) == 1))
            ctx.set(unit.commands.payload, {"word": words[min(len(starts), 1)], "position": cycle})
            if ctx.get(unit.events.start):
                starts.append(cycle)
            barred = ctx.get(unit.tokens.bars)
            await ctx.tick()
            ctx.set(unit.tokens.granted, not barred)

    simulate(unit, testbench)
    assert starts == ([0, 1] if later == 1 else [0])
