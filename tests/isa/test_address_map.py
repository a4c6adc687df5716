"""Where programs lie in DRAM: apart, aligned, and only where addresses reach."""

from dataclasses import replace

import pytest

from microtron.base.errors import ExecutionError
from microtron.isa.address_map import place_windows
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync
from microtron.isa.program import Program, Segment
from microtron.isa.stream import encode
from microtron.isa.verification.verifier import inspect
from microtron.runtime.devices.device import open_device


def with_segments(*sizes, config=tiny):
    return Program(config, encode([Sync()]), tuple(
        Segment(f"s{number}", size) for number, size in enumerate(sizes)))


def test_windows_are_apart_and_aligned():
    program = with_segments(1, 4096, 70_000)
    bases = place_windows(program)
    assert all(base % 4096 == 0 and base > 0 for base in bases)
    for base, following, size in zip(bases, bases[1:], (32, 1, 4096), strict=False):
        assert following - (base + size) >= 1 << 16
    wide = replace(tiny, bus_bits=256, address_bits=40)
    assert min(place_windows(replace(program, config=wide))) == 1 << 39


def test_memory_that_cannot_be_addressed_is_refused():
    with pytest.raises(ExecutionError, match=r"segment s3 does not fit: .* addresses have 32 bits"):
        place_windows(with_segments(*[1 << 30] * 4))
    with pytest.raises(ExecutionError, match=r"segment s0 does not fit: .* addresses have 32 bits"):
        place_windows(with_segments((1 << 32) - 1))
    assert place_windows(with_segments((1 << 32) - 1, config=replace(tiny, address_bits=40)))
    narrow = replace(tiny, address_bits=24)
    assert place_windows(with_segments(15 << 20, config=narrow))
    with pytest.raises(ExecutionError, match=r"segment s0 does not fit: .* addresses have 24 bits"):
        place_windows(with_segments(16 << 20, config=narrow))


@pytest.mark.parametrize(("sizes", "fits"), [
    (((1 << 32) - (1 << 20),), True), (((1 << 32) - (1 << 16),), False), (((1 << 32) - 1,), False),
    ((1 << 31, (1 << 31) - (1 << 20)), True), ((1 << 31, 1 << 31), False)])
def test_verifier_and_devices_refuse_the_same_programs(sizes, fits):
    program = with_segments(*sizes)
    said = []
    for name in ("functional", "cycle"):
        try:
            open_device(name).load(program)
        except ExecutionError as error:
            said.append(str(error))
    assert len(said) == (0 if fits else 2)
    assert set(said) == set(inspect(program).findings)
