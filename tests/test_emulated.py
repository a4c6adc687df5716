"""The emulator that machine code of both families is tested in: it notices what it is for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from microtron.base.processor import TARGETS
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.indexing import Gather
from microtron.compiler.graph.operations.pointwise.unary import Cast
from microtron.compiler.graph.types import TensorType

from .emulated import EMULATED, Emulated, Worker, given, run_part, unknown

BOTH = ("x86-64-v1", "aarch64")
MAKEFILE = Path(__file__).parents[1] / "Makefile"


def casts(count=37):
    builder = Builder("casts")
    builder.input("x", TensorType((count,), "float64"))
    for dtype in ("float16", "float32", "int8", "uint64"):
        builder.add(dtype, Cast(x="x", dtype=dtype))
    return builder.graph(("float16", "float32", "int8", "uint64"))


@pytest.mark.parametrize("name", [
    name if name in BOTH else pytest.param(name, marks=pytest.mark.soak) for name in EMULATED])
def test_casts_are_what_they_mean(name):
    x = np.random.default_rng(3).normal(size=37) * 100
    x[:5] = np.nan, np.inf, -np.inf, 65520.0, -1e30
    graph, processor = casts(), EMULATED[name]
    found = run_part(compile_part(graph, processor.target), {"x": x}, processor)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found["float16"], x.astype(np.float16))
        np.testing.assert_array_equal(found["float32"], x.astype(np.float32))
        whole = np.trunc(np.nan_to_num(x))
        np.testing.assert_array_equal(found["int8"], whole.clip(-128, 127).astype(np.int8))
    assert found["uint64"][:5].tolist() == [0, (1 << 64) - 1, 0, 65520, 0]


def test_all_processors_are_part_of_the_long_campaigns():
    listed = next(line for line in MAKEFILE.read_text(encoding="utf-8").splitlines()
                  if line.startswith("EMULATED = "))
    assert listed.split()[2:] == list(EMULATED)


def test_an_instruction_that_a_processor_lacks_ends_the_program():
    graph, target = casts(), TARGETS["x86-64"]
    old = Emulated(replace(target, name="too much"), EMULATED["x86-64-v1"].emulator)
    with pytest.raises(AssertionError, match="the emulated program ended with -4"):
        run_part(compile_part(graph, target), {"x": np.ones(37)}, old)


def test_what_is_written_beside_a_buffer_is_found():
    text = """define i32 @poke(ptr %table, i64 %place, i64 %last) {
  %x = load ptr, ptr %table
  %there = getelementptr i8, ptr %x, i64 %place
  store i8 1, ptr %there
  ret i32 0 }"""
    worker = Worker(EMULATED["aarch64"])
    for place, fits in ((0, True), (3, True), (4, False), (-1, False)):
        buffers = [unknown("int8", (4,)), given(np.ones(2, np.float32))]
        if fits:
            found = worker.call(text, "poke", buffers, 0, [(place, 0)])[1][0]
            assert (found[place], found.count(0xA5)) == (1, 3)
        else:
            with pytest.raises(AssertionError, match="something was written around buffer 0"):
                worker.call(text, "poke", buffers, 0, [(place, 0)])


def test_an_index_outside_its_axis_is_reported():
    builder = Builder("outside")
    builder.input("x", TensorType((3,), "float32"))
    builder.input("i", TensorType((2,), "int32"))
    builder.add("y", Gather(x="x", indices="i"))
    processor = EMULATED["aarch64"]
    part = compile_part(builder.graph(("y",)), processor.target)
    x = np.arange(3, dtype=np.float32)
    assert run_part(part, {"x": x, "i": np.array([2, -3], np.int32)}, processor)[
        "y"].tolist() == [2, 0]
    with pytest.raises(AssertionError, match="y: an index from data is outside its axis"):
        run_part(part, {"x": x, "i": np.array([2, 3], np.int32)}, processor)
