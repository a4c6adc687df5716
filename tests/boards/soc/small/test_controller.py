"""The memory controller: random bursts and words against a chip that checks how it is used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from microtron.boards.facts.catalogue import find_board
from microtron.boards.facts.errors import BoardError
from microtron.boards.soc.small.controller import DECERR, OKAY
from microtron.boards.soc.small.controller_ports import check_chip
from microtron.boards.soc.small.sdr_chip import read_chip

from .memory_bench import BASE, BUS, CHIPS, TANG, Bench, until
from .sdram import ACTIVATE, PRECHARGE, READ, REFRESH


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak)
                                       for seed in range(1, 8))])
def test_bursts_and_words_reach_memory_whoever_waits(name, seed):
    bench = Bench(name, seed)
    bench.fill(0)
    bench.run(*bench.reader(40), *bench.writer(40), *bench.host(60))
    bench.check()
    assert bench.sdram.counts[REFRESH] > 8


@pytest.mark.parametrize("name", CHIPS)
def test_a_word_a_cycle_while_nobody_stalls(name):
    """A burst takes its words, and a few cycles to open a row and for its latency."""
    bench = Bench(name, 0, stalls=0)
    bench.fill(0)
    bus, taken = bench.unit.reads, []

    async def master(ctx):
        ctx.set(bus.rready, 1)
        ctx.set(bus.araddr, BASE)
        ctx.set(bus.arlen, 15)
        ctx.set(bus.arvalid, 1)
        for _ in range(6):
            cycle = 0
            while True:
                *_, last, ready = await ctx.tick().sample(bus.rlast & bus.rvalid, bus.arready)
                cycle += 1
                if last:
                    assert ready
                    taken.append(cycle)
                    break

    bench.run(master)
    chip = bench.chip
    words = 16 * 64 // chip.data_bits
    refresh = chip.refresh + 2 * chip.precharge + chip.row_to_column + chip.row_open + 3
    least = words + chip.latency + chip.row_to_column + 2
    assert least <= min(taken[1:]) <= least + 1
    assert max(taken[1:]) <= least + 3 * refresh


def test_a_beat_that_is_not_taken_stays_and_those_behind_it_come_again():
    bench = Bench("tang", 1)
    bench.fill(0)
    bus = bench.unit.reads

    async def master(ctx):
        ctx.set(bus.araddr, BASE)
        ctx.set(bus.arlen, 7)
        ctx.set(bus.arvalid, 1)
        for beat in range(8):
            ctx.set(bus.rready, 0)
            while not (await ctx.tick().sample(bus.rvalid))[-1]:
                pass
            for _ in range(3000 if beat == 3 else 20):      # refreshes go on
                *_, valid, data = await ctx.tick().sample(bus.rvalid, bus.rdata)
                assert valid
                assert data == bench.value(8 * beat, 8)
            ctx.set(bus.rready, 1)
            await ctx.tick()
        ctx.set(bus.arvalid, 0)

    bench.run(master)
    assert bench.sdram.counts[READ] >= 16


def test_an_answer_stays_until_it_is_taken():
    bench = Bench("tang", 0)
    bus = bench.unit.writes

    async def bursts(ctx):
        ctx.set(bus.wlast, 1)
        for address in (BASE - 8, BASE):
            ctx.set(bus.awaddr, address)
            ctx.set(bus.awvalid, 1)
            ctx.set(bus.wvalid, 1)
            await until(ctx, bus.awready)
        ctx.set(bus.awvalid, 0)
        ctx.set(bus.wvalid, 0)

    async def answers(ctx):
        for right in (DECERR, OKAY):
            while not (await ctx.tick().sample(bus.bvalid))[-1]:
                pass
            for _ in range(100):
                assert (await ctx.tick().sample(bus.bvalid, bus.bresp))[2:] == (1, right)
            ctx.set(bus.bready, 1)
            await ctx.tick()
            ctx.set(bus.bready, 0)

    bench.run(bursts, answers)


def test_memory_is_at_rest_when_nobody_asks():
    bench = Bench("tang", 0)

    async def idle(ctx):
        await ctx.tick().repeat(20_000 + 3 * 512)
        assert not ctx.get(bench.unit.busy)

    bench.run(idle)
    assert ACTIVATE not in bench.sdram.counts
    assert bench.sdram.counts[PRECHARGE] == 1
    assert bench.sdram.counts[REFRESH] >= 8 + 2


def test_rows_that_are_shorter_than_bursts_or_too_long_are_refused():
    with pytest.raises(BoardError, match="a row of memory has 256 bytes, but a burst up to 512"):
        check_chip(BUS, replace(TANG, column_bits=6))
    with pytest.raises(BoardError, match="a row of memory has 2048 words, but there is a contr"):
        check_chip(BUS, replace(TANG, column_bits=11))


def test_a_chip_that_is_not_as_large_as_the_board_says_is_refused():
    tang = find_board("tang_nano_20k")
    wrong = replace(tang, memory=replace(tang.memory, bytes=1 << 20))
    with pytest.raises(BoardError, match="bytes is 1,048,576, but M12L64322A with 32 wires has 8,"):
        read_chip(wrong)
    fast = replace(tang, memory=replace(tang.memory, rate="1:2"))
    with pytest.raises(BoardError, match="sdr at 1:2, but a system without a processor has sdr"):
        read_chip(fast)
