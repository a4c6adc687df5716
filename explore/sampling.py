"""Samples of configurations and memories, by a stated design: scrambled Sobol points, or a Latin
hypercube, over what is legal.

A sample is a point of the unit cube, with a coordinate for each field. Fields are chosen in order,
and each from those values that are legal with the fields before it, so every point of the cube is
a configuration and none is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ..base.checked_values import near_misses, quote
from ..base.errors import ConfigError, MicrotronError
from ..isa.config import PRESETS, VECTOR_CYCLES_LIMIT, Config
from ..isa.instructions import TABLE_WORDS, TABLES, WINDOW_ROWS, WINDOW_TAPS, Buffer
from ..isa.memory_timing import MemoryTiming

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DESIGNS = ("sobol", "lhs")
MOST_MACS = 1024            # of a cycle
LANES = 64                  # of a vector: batch × block_out
LEAST_TILES, MOST_TILES = 16, 8192      # of a scratchpad
KIB = 1024
Value = TypeVar("Value")
Choices = dict[str, Callable[[dict[str, int]], Sequence[int]]]


def _powers(low: int, high: int) -> list[int]:
    """Powers of two from one to another, both included."""
    return [1 << bit for bit in range(low.bit_length() - 1, high.bit_length())]


def _sizes(tile: int, most: int) -> list[int]:
    """Sizes of a scratchpad that holds enough tiles of so many bytes."""
    return _powers(max(2 * KIB, LEAST_TILES * tile), min(most, MOST_TILES * tile))


# What each field may be, once those before it are chosen.
CONFIG_FIELDS: Choices = {
    "block_in": lambda chosen: _powers(2, 32),
    "block_out": lambda chosen: _powers(2, 32),
    "batch": lambda chosen: _powers(1, min(4, LANES // chosen["block_out"], MOST_MACS // (
        chosen["block_in"] * chosen["block_out"]))),
    "uop_bytes": lambda chosen: _powers(4 * KIB, 32 * KIB),
    "inp_bytes": lambda chosen: _sizes(chosen["batch"] * chosen["block_in"], 128 * KIB),
    "wgt_bytes": lambda chosen: _sizes(chosen["block_in"] * chosen["block_out"], 512 * KIB),
    "acc_bytes": lambda chosen: _sizes(4 * chosen["batch"] * chosen["block_out"], 256 * KIB),
    "out_bytes": lambda chosen: _sizes(chosen["batch"] * chosen["block_out"], 128 * KIB),
    "acc_banks": lambda chosen: (1, 2, 4, 8),
    "bus_bits": lambda chosen: (64, 128, 256),
    "queue_depth": lambda chosen: _powers(2, 32),
    "reads_in_flight": lambda chosen: _powers(2, 32),
    "writes_in_flight": lambda chosen: _powers(2, 16),
    "vector_cycles": lambda chosen: _powers(1, min(
        4, VECTOR_CYCLES_LIMIT, chosen["batch"] * chosen["block_out"])),
    "out_readers": lambda chosen: (1, 2),
    "window_taps": lambda chosen: (1, WINDOW_TAPS) if min(
        chosen["block_in"], chosen["block_out"]) >= WINDOW_ROWS else (1,),
    "tables": lambda chosen: (0, TABLES) if chosen["acc_bytes"] >= 4 * TABLE_WORDS else (0,),
}
# One field after another is changed, from a centre: configurations that differ in a field share
# most of their units, and synthesis of a unit that another one has already takes no time.
STAR_VALUES: dict[str, tuple[int, ...]] = {
    "vector_cycles": (1, 2, 4), "acc_banks": (1, 2, 4, 8), "block_out": (2, 4, 8, 16),
    "block_in": (2, 4, 8, 16), "batch": (1, 2), "bus_bits": (64, 128), "out_readers": (1, 2),
    "window_taps": (1, WINDOW_TAPS), "tables": (0, TABLES), "queue_depth": (4, 16, 32),
    "reads_in_flight": (4, 16), "writes_in_flight": (2, 8), "cycles_only": (0, 1),
    "acc_bytes": (8 * KIB, 32 * KIB), "wgt_bytes": (4 * KIB, 32 * KIB),
    "inp_bytes": (2 * KIB, 16 * KIB), "out_bytes": (2 * KIB, 16 * KIB),
    "uop_bytes": (2 * KIB, 16 * KIB),
}
STAR_MACS, STAR_LANES = 256, 16         # of mixed configurations, at most
CENTRES = (PRESETS["tiny"], replace(PRESETS["tiny"], block_in=8, block_out=8, vector_cycles=2,
                                    acc_banks=2, wgt_bytes=16 * KIB, tables=TABLES),
           replace(PRESETS["tiny"], batch=2, block_in=8, bus_bits=128, acc_banks=1,
                   window_taps=WINDOW_TAPS, out_readers=1))
# Configurations to place and route, which takes minutes if they are small.
CLOCK_FIELDS: Choices = {
    "block_in": lambda chosen: (2, 4, 8),
    "block_out": lambda chosen: (2, 4, 8),
    "batch": lambda chosen: (1, 2),
    "vector_cycles": lambda chosen: _powers(1, min(8, chosen["batch"] * chosen["block_out"])),
    "acc_banks": lambda chosen: (1, 2, 4, 8),
    "bus_bits": lambda chosen: (64, 128),
    "out_readers": lambda chosen: (1, 2),
    "window_taps": lambda chosen: (1, WINDOW_TAPS) if min(
        chosen["block_in"], chosen["block_out"]) >= WINDOW_ROWS else (1,),
    "tables": lambda chosen: (0, TABLES),
    "queue_depth": lambda chosen: (4, 8, 16, 32),
    "uop_bytes": lambda chosen: _powers(2 * KIB, 8 * KIB),
    "inp_bytes": lambda chosen: _powers(2 * KIB, 16 * KIB),
    "wgt_bytes": lambda chosen: _powers(4 * KIB, 32 * KIB),
    "acc_bytes": lambda chosen: _powers(8 * KIB, 32 * KIB),
    "out_bytes": lambda chosen: _powers(2 * KIB, 16 * KIB),
}
MEMORY_FIELDS: Choices = {
    "read_latency": lambda chosen: (8, 16, 24, 32, 48, 64, 96, 128),
    "write_latency": lambda chosen: (8, 16, 32, 64),
    "cycles_per_beat": lambda chosen: (1, 1, 1, 2),
    "turn": lambda chosen: (0, 0, 4, 8),
    "shared": lambda chosen: (1, 1, 1, 0),
}


def sample_configs(count: int, seed: int, design: str = "sobol") -> list[Config]:
    """Different legal configurations, the same for the same seed. The first ones of a longer Sobol
    list are those of a shorter one."""
    found: dict[Config, None] = {}
    for row in unit_points(design, len(CONFIG_FIELDS), count, seed):
        chosen = _choose(CONFIG_FIELDS, row)
        config = Config(**chosen)
        assert config.tiles(Buffer.ACC) >= 2 * config.acc_banks, "sizes leave room for banks"
        found[config] = None
        if len(found) == count:
            break
    return list(found)


def star_configs(count: int) -> list[Config]:
    """Configurations to synthesize: the first centre and those that differ from it in one field;
    then those of the other centres in turn with ones that mix the values of all fields."""
    first, *others = ([centre, *_neighbours(centre)] for centre in CENTRES)
    found: dict[Config, None] = dict.fromkeys(first)
    mixed = _mixed_configs()
    for config in (each for star in others for each in star):
        found.setdefault(config)
        found.setdefault(next(mixed))
    while len(found) < count:
        found.setdefault(next(mixed))
    return list(found)[:count]


def _neighbours(centre: Config) -> Iterator[Config]:
    """Configurations that differ from a centre in one field."""
    for field, values in STAR_VALUES.items():
        for value in values:
            with suppress(ConfigError):
                yield replace(centre, **{field: value})


def _mixed_configs() -> Iterator[Config]:
    """Any of the values for each field, by Sobol points: no larger than is synthesized soon."""
    for row in unit_points("sobol", len(STAR_VALUES), 64, 0):
        chosen = {field: pick(values, float(at))
                  for (field, values), at in zip(STAR_VALUES.items(), row, strict=True)}
        with suppress(ConfigError):
            config = replace(CENTRES[0], **chosen)
            if config.macs_per_cycle <= STAR_MACS and config.alu_lanes <= STAR_LANES:
                yield config


def small_configs(count: int, seed: int, design: str,
                  is_small: Callable[[Config], bool]) -> list[Config]:
    """Configurations to place and route: `tiny`, then samples of up to 8 × 8, of which those are
    left out that are not small."""
    found = dict.fromkeys([PRESETS["tiny"]])
    for row in unit_points(design, len(CLOCK_FIELDS), count, seed):
        if len(found) >= count:
            break
        config = Config(**_choose(CLOCK_FIELDS, row))
        if is_small(config):
            found.setdefault(config)
    return list(found)[:count]


def choose_config(row: Sequence[float]) -> Config:
    """The configuration at a point of the unit cube."""
    return Config(**_choose(CONFIG_FIELDS, row))


def locate_config(config: Config) -> list[float] | None:
    """A point at which `choose_config` finds these values; None if one is not among the choices."""
    chosen: dict[str, int] = {}
    row = []
    for name, legal in CONFIG_FIELDS.items():
        chosen[name] = getattr(config, name)
        values = list(legal(chosen))
        if chosen[name] not in values:
            return None
        row.append((values.index(chosen[name]) + 0.5) / len(values))
    return row


def sample_memories(count: int, seed: int, design: str = "sobol") -> list[MemoryTiming]:
    """Timings of memory, not all of them different. The first is the reference system."""
    rows = unit_points(design, len(MEMORY_FIELDS), count, seed)
    found = [MemoryTiming()]
    for _ in range(count - 1):
        chosen = _choose(MEMORY_FIELDS, next(rows))
        shared = bool(chosen.pop("shared"))
        found.append(MemoryTiming(shared=shared, **chosen))
    return found


def _choose(choices: Choices, row: Sequence[float] | npt.NDArray[np.float64]) -> dict[str, int]:
    chosen: dict[str, int] = {}
    for (name, legal), coordinate in zip(choices.items(), row, strict=True):
        chosen[name] = pick(legal(chosen), float(coordinate))
    return chosen


def pick(values: Sequence[Value], coordinate: float) -> Value:
    """The value at a place between 0 and 1."""
    return values[min(len(values) - 1, int(coordinate * len(values)))]


def unit_points(design: str, dimensions: int, count: int,
          seed: int) -> Iterator[npt.NDArray[np.float64]]:
    """Points of the unit cube, by a design; without end, since some samples may be equal."""
    if design not in DESIGNS:
        raise MicrotronError(f"design is {quote(design)}, but must be {' or '.join(DESIGNS)}"
                             f"{near_misses(design, DESIGNS)}")
    try:
        from scipy.stats import qmc
    except ImportError:
        raise MicrotronError("samples need scipy, which is not installed: "
                             "pip install 'microtron[tune]'") from None
    if design == "lhs":
        while True:
            yield from qmc.LatinHypercube(dimensions, rng=seed).random(max(1, count))
            seed += 1
    points = qmc.Sobol(dimensions, rng=seed)
    while True:
        yield from points.random(64)            # a power of two: the sequence stays balanced

