"""Cases for units that take operands in every cycle and answer a fixed number of cycles later."""

from collections import deque

from microtron.isa.arithmetic import INT32_HIGH, INT32_LOW, wrap

from ..simulate import simulate


def check_lane(unit, operands, settings, cases, expected):
    """Put a case in every cycle and expect its result when it has passed all stages.

    A case is a setting, then the values of `operands`, which are named. `settings` is the unit's
    input that has the setting of each stage, the last of which has no register behind it.
    `expected` makes the right result of a case.
    """
    layout, settings_held = settings.shape().elem_shape, settings.shape().length
    stages = settings_held - 1
    results = deque()

    async def testbench(ctx):
        packed = 0
        for case in [*cases, *[cases[-1]] * stages]:
            setting, *values = case
            bits = layout.const(setting).as_value().value
            packed = (packed << layout.size | bits) & (1 << settings_held * layout.size) - 1
            ctx.set(settings.as_value(), packed)
            for name, value in zip(operands, values, strict=True):
                ctx.set(getattr(unit, name), value)
            if len(results) == stages:
                found, (entered, right) = ctx.get(unit.result), results.popleft()
                if entered[0].get("scaling", entered[0])["narrow"]:
                    found = (found + 128) % 256 - 128       # only these bits count
                assert found == right, f"{entered} gave {found} instead of {right}"
            results.append((case, expected(*case)))
            await ctx.tick()

    simulate(unit, testbench, limit=len(cases) + 2 * stages)


def near_a_corner(rng, edges):
    """A number of 32 bits: an edge, near a power of two, small, or anything."""
    match rng.randrange(4):
        case 0:
            return rng.choice(edges)
        case 1:
            return wrap((rng.choice((1, -1)) << rng.randrange(32)) + rng.randrange(-2, 3))
        case 2:
            return rng.randrange(-300, 300)
        case _:
            return rng.randrange(INT32_LOW, INT32_HIGH + 1)
