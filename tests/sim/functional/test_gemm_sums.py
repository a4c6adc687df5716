"""Sums in registers: `gemm` equals `gemm_by_slots` bit for bit, in every shape it is fast in."""

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from microtron.isa.instructions import GemmFlags
from microtron.sim.compiled.interruptible import NEVER
from microtron.sim.functional import datapath

SHAPES = [(1, 4, 4), (2, 4, 16), (1, 8, 8), (4, 8, 4), (2, 16, 8), (1, 16, 16), (2, 16, 64),
          (1, 32, 32), (2, 64, 16)]                 # batch, block_in, block_out
TILES = 24
MIDDLE = 12                                         # strides and loops reach 8 to either side
NEAR = st.integers(MIDDLE - 1, MIDDLE + 1)          # micro-ops meet in the same tiles
STARTS = [GemmFlags.START | GemmFlags(bits) for bits in range(0, 256, 4) if not bits & 1 << 3]
KINDS = (GemmFlags(0), GemmFlags.DEPTHWISE)
triples = st.tuples(*[st.integers(-1, 1)] * 3)


def random_pads(shape, seed):
    """acc, inp and wgt, with many lanes at their limits."""
    (batch, block_in, block_out), rng = shape, np.random.default_rng(seed)
    acc = rng.choice([-2**31, 2**31 - 1, 0, 12345], (TILES, batch, block_out)).astype(np.int32)
    inp, wgt = (rng.integers(-128, 128, (TILES, *tile), np.int8)
                for tile in ((batch, block_in), (block_out, block_in)))
    for lanes in (inp, wgt):
        lanes[rng.random(lanes.shape) < 0.5] = -128
    return acc, inp, wgt


def assert_same(shape, seed, uops, *instruction):
    acc, inp, wgt = random_pads(shape, seed)
    expected = acc.copy()
    uops = np.array(uops, np.uint16).reshape(-1, 4)
    datapath.gemm_by_slots(expected, inp, wgt, uops, *instruction, NEVER.address)
    datapath.gemm(acc, inp, wgt, uops, *instruction)
    np.testing.assert_array_equal(acc, expected)


@pytest.mark.parametrize("shape", SHAPES)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS),
       flags=st.sampled_from([GemmFlags(0), *STARTS]),
       uops=st.lists(st.tuples(NEAR, NEAR, NEAR, NEAR), max_size=5),
       loops=st.tuples(*[st.integers(0, 3)] * 3), dst=triples, src=triples, wgt=triples)
@example(seed=0, kind=KINDS[0], flags=GemmFlags.START | GemmFlags.BIAS, loops=(1, 1, 2),
         dst=(0, 0, 1), src=(0, 0, 0), wgt=(0, 0, 0), uops=[(11, 12, 12, 11), (12, 11, 12, 11)])
def test_slots_in_any_order_equal_slots_one_by_one(shape, seed, kind, flags, uops, loops, dst, src,
                                                   wgt):
    assert_same(shape, seed, uops, int(kind | flags), loops, dst, src, wgt)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_long_sum_wraps_at_32_bits(shape):
    batch, block_in, block_out = shape
    acc = np.full((1, batch, block_out), 2**31 - 1, np.int32)
    inp = np.full((1, batch, block_in), -128, np.int8)
    wgt = np.full((1, block_out, block_in), -128, np.int8)
    times = 10_000
    datapath.gemm(acc, inp, wgt, np.zeros((1, 4), np.uint16), 0, (1, 1, times), *[(0, 0, 0)] * 3)
    exact = 2**31 - 1 + times * block_in * 128**2
    assert (acc == (exact + 2**31) % 2**32 - 2**31).all()


def test_a_sum_that_is_left_and_taken_up_again_keeps_both_parts():
    uops = [(3, 0, 0, 0), (3, 1, 1, 0), (4, 2, 2, 0), (3, 3, 3, 0)]
    for shape in SHAPES:
        assert_same(shape, 1, uops, 0, (1, 1, 2), (0, 0, 0), (0, 0, 1), (0, 0, 1))


# A processor without such instructions, and LLVM as if it were older.
LESS = """
import llvmlite.binding
llvmlite.binding.llvm_version_info = (15, 0, 0)
features = llvmlite.binding.get_host_cpu_features()
import sys
import numpy as np
missing, *shapes = sys.argv[1:]
features.update((each, False) for each in features if each.startswith(missing))
llvmlite.binding.get_host_cpu_features = lambda: features
from microtron.sim.functional import datapath, gemm_sums as sums
assert not sums.PARTIAL_SUM
assert sums.AVX_512 == bool(features.get("avx512bw"))
datapath.gemm_by_slots = None                   # or it would do what there is no kernel for
for shape in shapes:
    block_in, block_out = map(int, shape.split("x"))
    rng = np.random.default_rng(0)
    inp = rng.choice([-128, -3, 127], (15, 1, block_in)).astype(np.int8)
    wgt = rng.choice([-128, -3, 127], (9, block_out, block_in)).astype(np.int8)
    acc = np.zeros((7, 1, block_out), np.int32)
    datapath.gemm(acc, inp, wgt, np.zeros((1, 4), np.uint16), 0, (1, 7, 9), (0, 1, 0), (0, 1, 1),
                  (0, 0, 1))
    for tile in range(7):
        assert (acc[tile, 0] == np.einsum("tk,tck->c", inp[tile:tile + 9, 0], wgt,
                                          dtype=np.int32)).all(), shape
    print("same", shape)
"""
WITHOUT = {"avx512": ["16x16"], "avx512vnni": ["16x16"], "nothing": ["16x16", "32x8", "8x4"]}


@pytest.fixture(scope="module")
def sums_without(tmp_path_factory):
    """All that a process says of its shapes, by what it lacks. One compiles for all of them."""
    @cache
    def say(missing):
        folder = tmp_path_factory.mktemp("kernels")
        return subprocess.run(
            [sys.executable, "-c", LESS, missing, *WITHOUT[missing]], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder)}).stdout
    return say


@pytest.mark.parametrize(("shape", "missing"), [
    pytest.param(shape, missing, marks=[] if missing == "nothing" else [pytest.mark.soak])
    for missing in WITHOUT for shape in WITHOUT[missing]])
def test_without_a_dot_product_of_bytes_the_sums_are_the_same(sums_without, shape, missing):
    assert f"same {shape}\n" in sums_without(missing), sums_without(missing)
