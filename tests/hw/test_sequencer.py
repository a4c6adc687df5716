"""The sequencer against nested Python loops, under random stalls, to the cycle."""

import random

import pytest

from microtron.hw.sequencer import LOOP_BITS, Sequencer, offset_bits

from .simulate import kept, simulate

OPERANDS = {"dst": 18, "wgt": 21}
LOOPS = ("outer", "middle", "inner")


def random_nest(rng, *, steps=True):
    most = rng.choice((1, 2, 3, 4))
    return {
        "loops": {loop: rng.randint(0 if rng.random() < 0.2 else 1, most) for loop in LOOPS},
        **({"count": rng.randint(0 if rng.random() < 0.2 else 1, most)} if steps else {}),
        "bases": {operand: rng.choice((0, 1, 500, 65535)) for operand in OPERANDS},
        "strides": {operand: {loop: random_stride(rng) for loop in LOOPS} for operand in OPERANDS},
        "announces": rng.randrange(2), "tag": rng.randrange(256),
    }


def random_stride(rng):
    return rng.choice((0, 1, -1, 7, 300, -300, -32768, 32767))


def judged(nest):
    counts = nest["loops"] | ({"step": nest["count"]} if "count" in nest else {})
    return {"once": {name: count == 1 for name, count in counts.items()},
            "never": {name: count == 0 for name, count in counts.items()}}


def slots_of(nest):
    """What the hardware must say, from loops as one writes them."""
    loops, slots = nest["loops"], []
    for outer in range(loops["outer"]):
        for middle in range(loops["middle"]):
            for inner in range(loops["inner"]):
                for step in range(nest.get("count", 1)):
                    at = {"outer": outer, "middle": middle, "inner": inner}
                    slots.append({
                        "at": {name: nest["bases"][name] + sum(walk[loop] * at[loop]
                                                               for loop in LOOPS)
                               for name, walk in nest["strides"].items()},
                        "step": step, "first": {**{loop: at[loop] == 0 for loop in LOOPS},
                                                "step": step == 0},
                        "begins": nest["announces"] and (middle, inner, step) == (0, 0, 0),
                        "last": False, "empty": False, "tag": nest["tag"]})
    if not slots:
        return [{"begins": False, "last": True, "empty": True, "tag": nest["tag"]}]
    slots[-1]["last"] = True
    return slots


def wrap(value, bits):
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def check_slot(slot, expected):
    assert slot.last == expected["last"]
    assert slot.empty == expected["empty"]
    assert slot.tag == expected["tag"]
    assert slot.begins == expected["begins"]
    if expected["empty"]:
        return
    if "step" in slot.shape().members:
        assert slot.step == expected["step"]
    for name, bits in OPERANDS.items():
        assert slot.at[name] == wrap(expected["at"][name], bits)
    for name in slot.first.shape().members:
        assert slot.first[name] == expected["first"][name], name


def sequencer(steps):
    return Sequencer(OPERANDS, 8, steps=steps)


def run(nests, rng, *, offered=0.6, ready=0.6, steps=True):
    """Drive nests through the unit, each slot compared. Returns the cycles slots were taken in."""
    unit = kept(sequencer, steps)
    wanted = [slot for nest in nests for slot in slots_of(nest)]
    taken = []

    async def testbench(ctx):
        cycle = number = 0
        while len(taken) < len(wanted):
            if number < len(nests):
                ctx.set(unit.nests.payload, nests[number] | judged(nests[number]))
            is_offered = number < len(nests) and rng.random() < offered
            is_ready = rng.random() < ready
            ctx.set(unit.nests.valid, is_offered)
            ctx.set(unit.slots.ready, is_ready)
            ctx.set(unit.takes, is_ready)
            if ctx.get(unit.slots.valid):
                check_slot(ctx.get(unit.slots.payload), wanted[len(taken)])
                taken.extend([cycle] * is_ready)
            number += is_offered and ctx.get(unit.nests.ready)
            cycle += 1
            await ctx.tick()
        assert number == len(nests)
        assert not ctx.get(unit.slots.valid)

    simulate(unit, testbench, limit=50_000)
    return taken


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [True, False])
def test_slots_are_those_of_nested_loops_under_random_stalls(seed, steps):
    rng = random.Random(seed)
    run([random_nest(rng, steps=steps) for _ in range(25)], rng, steps=steps)


def test_consecutive_nests_have_no_bubble_between_them():
    rng = random.Random(1)
    nests = [random_nest(rng) for _ in range(20)]
    taken = run(nests, rng, offered=1, ready=1)
    assert taken == list(range(1, len(taken) + 1))


def test_counts_of_16_bits_are_not_shortened():
    for place in ("count", *LOOPS):
        nest = {"loops": {loop: 1 for loop in LOOPS}, "count": 1, "announces": 1, "tag": 5,
                "bases": {operand: 0 for operand in OPERANDS},
                "strides": {operand: {loop: 1 for loop in LOOPS} for operand in OPERANDS}}
        if place == "count":
            nest["count"] = 300
        else:
            nest["loops"][place] = 300
        taken = run([nest], random.Random(0), offered=1, ready=1)
        assert taken == list(range(1, 301))
    assert LOOP_BITS == 16


@pytest.mark.parametrize("tiles", [2, 4096, 1 << 16, 1 << 17, 1 << 22])
def test_offset_bits_hold_one_stride_beyond_any_index_inside(tiles):
    bits = offset_bits(tiles)
    half = 1 << bits - 1
    assert -half <= -(2**16 - 1) - 2**15
    assert max(tiles, 2**16) - 1 + 2**15 - 1 < half
    assert bits == 18 or tiles > 1 << 16
