"""What the tests of the functional simulator share: configurations, programs, comparisons."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Buffer, Sync
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.sim.functional.simulator import Functional

from .reference import Reference

SMALL = {"uop_bytes": 512, "inp_bytes": 1 << 10, "wgt_bytes": 4 << 10, "acc_bytes": 8 << 10,
         "out_bytes": 2 << 10}
CONFIGS = {
    "tiny": replace(tiny, tables=8),
    "batch": Config(batch=2, block_in=4, block_out=4, window_taps=3, **SMALL),
    "int4": Config(block_in=8, block_out=4, wgt_bits=4, **SMALL),
    "more_out_than_in": Config(block_in=4, block_out=16, window_taps=3, **SMALL),
    "batch_int4_more_in_than_out": Config(batch=4, block_in=16, block_out=2, wgt_bits=4,
                                          **{**SMALL, "inp_bytes": 4 << 10}),
    "one_lane_out": Config(block_in=32, block_out=1, tables=8, **{**SMALL, "inp_bytes": 2 << 10}),
}
configs = st.sampled_from(list(CONFIGS.values()))
PADS = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)
CORNERS = (-2**31, -2**31 + 1, -129, -128, -1, 0, 1, 127, 128, 2**30, 2**31 - 1)
seeds = st.integers(0, 2**32 - 1)


def program(config, *instructions, **segments):
    """A program that ends. Segments: a size that may be written, or an array to be read."""
    made = tuple(Segment(name, content, Access.WRITE) if isinstance(content, int)
                 else Segment(name, content.nbytes, Access.READ, content.view(np.uint8).ravel())
                 for name, content in segments.items())
    return Program(config, encode([*instructions, Sync()]), made)


def random_lanes(rng, dtype, shape, config):
    """Numbers of which a third are corners; weights of four bits stay in four bits."""
    if dtype == np.int32:
        corner = rng.choice(CORNERS, shape)
    else:
        corner = rng.choice((-128, -127, -1, 0, 1, 127), shape)
    limits = np.iinfo(dtype)
    drawn = rng.integers(limits.min, limits.max, shape, endpoint=True)
    return np.where(rng.random(shape) < 1 / 3, corner, drawn).astype(dtype)


def fill(machine, seed):
    """Random content for every scratchpad but the micro-ops'."""
    rng, pads = np.random.default_rng(seed), machine.scratchpads
    for array in (pads.inp, pads.wgt, pads.acc, pads.out):
        array[:] = random_lanes(rng, array.dtype, array.shape, machine.config)
    if machine.config.wgt_bits == 4:
        pads.wgt[:] = pads.wgt << 4 >> 4


def same_as_reference(config, instruction, seed, uops=(), segments=None):
    """Execute one instruction on random scratchpads, in one step and in two, and compare."""
    for in_two_steps in (False, True):
        image = program(config, instruction, **(segments or {}))
        machine = Functional(image)
        fill(machine, seed)
        machine.scratchpads.uop[:len(uops)] = np.array(uops, np.uint16).reshape(-1, 4)
        reference = Reference(config, image.segments)
        for buffer in PADS:
            reference.set(buffer, machine.scratchpads.of(buffer))
        if in_two_steps:
            machine.begin(0)()
        else:
            machine.execute(0)
        reference.execute(instruction)
        assert_same(machine, reference)


def assert_same(machine, reference):
    for buffer in PADS:
        ours = machine.scratchpads.of(buffer)
        theirs = reference.before.get(buffer, np.zeros_like(ours)).reshape(ours.shape).copy()
        for tile, lanes in reference.pads[buffer].items():
            theirs[tile] = np.reshape(list(lanes.values()), theirs.shape[1:])
        np.testing.assert_array_equal(ours, theirs, err_msg=buffer.name)
    for ours, theirs in zip(machine.memory.segments, reference.dram, strict=True):
        assert ours.tobytes() == bytes(theirs)
