"""Where programs lie in DRAM: apart, aligned, and only where addresses reach."""

from dataclasses import replace

import pytest

from microtron.isa.config import tiny
from microtron.isa.errors import ExecutionError
from microtron.isa.instructions import Sync
from microtron.isa.program import Program, Segment
from microtron.isa.stream import encode
from microtron.sim.placement import placed


def with_segments(*sizes, config=tiny):
    return Program(config, encode([Sync()]), tuple(
        Segment(f"s{number}", size) for number, size in enumerate(sizes)))


def test_windows_are_apart_and_aligned():
    program = with_segments(1, 4096, 70_000)
    bases = placed(program)
    assert all(base % 4096 == 0 and base > 0 for base in bases)
    for base, following, size in zip(bases, bases[1:], (32, 1, 4096), strict=False):
        assert following - (base + size) >= 1 << 16
    wide = replace(tiny, bus_bits=256, address_bits=40)
    assert min(placed(replace(program, config=wide))) == 1 << 39


def test_memory_that_cannot_be_addressed_is_refused():
    with pytest.raises(ExecutionError, match=r"segment s3 does not fit: .* addresses have 32 bits"):
        placed(with_segments(*[1 << 30] * 4))
    with pytest.raises(ExecutionError, match=r"segment s0 does not fit: .* addresses have 32 bits"):
        placed(with_segments((1 << 32) - 1))
    assert placed(with_segments((1 << 32) - 1, config=replace(tiny, address_bits=40)))
    narrow = replace(tiny, address_bits=24)
    assert placed(with_segments(15 << 20, config=narrow))
    with pytest.raises(ExecutionError, match=r"segment s0 does not fit: .* addresses have 24 bits"):
        placed(with_segments(16 << 20, config=narrow))
