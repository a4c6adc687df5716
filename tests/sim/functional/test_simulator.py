"""The functional simulator as a whole: what a run counts, keeps and refuses."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import microtron
from microtron.base.errors import ExecutionError, IsaError
from microtron.isa.config import tiny
from microtron.isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
)
from microtron.isa.program import Program
from microtron.isa.stream import encode, encode_micro_ops
from microtron.sim.functional.order import Adversarial
from microtron.sim.functional.simulator import Functional

from .support import CONFIGS, program

STORE = Store(buffer=Buffer.ACC, segment=0, shape=(1, 1, 2))


def test_a_run_counts_its_work():
    uops = encode_micro_ops([MicroOp()] * 2)
    counts = Functional(program(
        CONFIGS["batch_int4_more_in_than_out"],
        Load(buffer=Buffer.UOP, segment=1, shape=(1, 1, 2)),
        Load(buffer=Buffer.WGT, shape=(1, 2, 3)),
        Load(buffer=Buffer.WGT, shape=(1, 2, 0), pad=(0, 0, 1, 1)),
        Load(buffer=Buffer.ACC8, shape=(0, 2, 3)),
        Load(buffer=Buffer.ACC8, shape=(1, 1, 2)),
        Gemm(count=2, loops=(1, 2, 3)), Gemm(count=2, loops=(1, 0, 3)),
        Gemm(flags=GemmFlags.DEPTHWISE, loops=(5, 1, 1)),
        Alu(loops=(2, 2, 2)), AluI(loops=(3, 1, 1)), Requantize(loops=(1, 1, 2)),
        Store(shape=(2, 1, 2), segment=0), STORE, data=4096, uops=uops)).run()
    assert counts.instructions == {"load": 5, "gemm": 3, "alu": 1, "alui": 1, "requantize": 1,
                                   "store": 2, "sync": 1}
    assert counts.tile_products == 12 + 5
    assert counts.macs == 12 * 4 * 16 * 2 + 5 * 4 * 2       # batch × in × out; batch × lanes
    assert counts.alu_vectors == 8 + 3 + 2
    assert counts.bytes_loaded == {"uop": 16, "wgt": 6 * 16, "acc8": 2 * 8}
    assert counts.bytes_stored == {"out": 4 * 8, "acc": 2 * 32}
    assert counts.most_tokens == {}


@pytest.mark.parametrize(("name", "lanes"), [
    ("more_out_than_in", 4), ("one_lane_out", 1), ("batch", 2 * 4)])
def test_depthwise_macs_are_those_of_lanes_that_both_sides_have(name, lanes):
    gemm = Gemm(flags=GemmFlags.DEPTHWISE, loops=(1, 1, 10))
    assert Functional(program(CONFIGS[name], gemm)).run().macs == 10 * lanes


def test_memory_stays_between_runs_and_scratchpads_start_from_zero():
    # Each run adds one to what memory holds; acc[1] would grow if it were kept.
    machine = Functional(program(
        tiny, Load(buffer=Buffer.ACC), AluI(immediate=1), AluI(dst=1, src=1, immediate=5), STORE,
        data=32))
    for runs in range(1, 4):
        machine.run()
        assert machine.memory.read("data", 0, 32).view("<i4").tolist() == [runs] * 4 + [5] * 4


def test_a_refused_instruction_has_no_effect_but_those_before_it_have():
    machine = Functional(program(
        tiny, AluI(op=AluOp.MOVE, immediate=3), STORE,
        AluI(op=AluOp.MOVE, dst=511, loops=(1, 1, 2), dst_stride=(0, 0, 1), immediate=9), data=32))
    with pytest.raises(ExecutionError, match=r"^instruction 2 \(alui.move\): dst reaches tile 512"):
        machine.run()
    assert (machine.scratchpads.acc[511] == 0).all()
    assert machine.memory.read("data", 0, 16).view("<i4").tolist() == [3] * 4


def test_micro_ops_are_judged_as_they_are_when_the_gemm_runs():
    uops = encode_micro_ops([MicroOp(), MicroOp(src=512)])
    code = [Load(buffer=Buffer.UOP), Gemm(), Load(buffer=Buffer.UOP, offset=8), Gemm()]
    for order in (None, Adversarial(3)):
        with pytest.raises(ExecutionError, match=r"^instruction \d \(gemm\): src reaches tile 512"):
            Functional(program(tiny, *code, uops=uops)).run(order)
    Functional(program(tiny, *code[:2], uops=uops)).run()


def test_micro_ops_that_the_host_has_changed_are_judged_again():
    machine = Functional(program(tiny, Load(buffer=Buffer.UOP), Gemm(), uops=64))
    machine.run()
    machine.memory.write("uops", 0, MicroOp(dst=512).encode())
    with pytest.raises(ExecutionError, match=r"^instruction 1 \(gemm\): dst reaches tile 512"):
        machine.run()


def test_an_error_is_found_again_in_a_second_run():
    machine = Functional(program(tiny, Load(), data=2))
    for _ in range(2):
        with pytest.raises(ExecutionError, match="offset reaches byte 3"):
            machine.run()


def test_a_program_must_end():
    with pytest.raises(ExecutionError, match="the program is empty"):
        Functional(Program(tiny, encode([])))
    with pytest.raises(ExecutionError, match=r"last instruction must be sync\.end"):
        Functional(Program(tiny, encode([Gemm()])))
    with pytest.raises(ExecutionError, match="which is instruction 1"):
        Functional(Program(tiny, encode([Sync(), Gemm()])))


def test_words_that_are_no_instructions_are_refused():
    code = encode([Gemm(), Sync()])
    code["opcode"][0] = 99
    with pytest.raises(IsaError, match="instruction 0: opcode is 99"):
        Functional(Program(tiny, code))


def test_a_program_that_only_copies_does_without_numba():
    script = """
import sys
from microtron.isa.config import tiny
from microtron.isa.instructions import Load, Store, Sync
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.sim.functional.simulator import Functional
Functional(Program(tiny, encode([Load(), Store(), Sync()]),
                   (Segment("data", 64, Access.WRITE),))).run()
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_changed_formula_is_not_answered_from_the_cache_of_compiled_kernels(tmp_path):
    package = tmp_path / "microtron"
    for part in ("base", "isa", "sim"):
        shutil.copytree(Path(microtron.__file__).parent / part, package / part,
                        ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    script = """
import numpy
from microtron.sim.functional import datapath
acc = numpy.array([40, 0], numpy.int32).reshape(2, 1, 1)
datapath.alui(acc, acc, 0, 1, 0, (1, 1, 1), (0, 0, 0), (0, 0, 0), 2)
print(acc[1, 0, 0])
"""
    arithmetic = package / "isa" / "arithmetic.py"
    for formula, result in (("left + right", "42"), ("left - right", "38")):
        arithmetic.write_text(arithmetic.read_text().replace("left + right", formula))
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True,
                              text=True, env={**os.environ, "PYTHONPATH": str(tmp_path),
                                              # Edits of one second look the same to Python.
                                              "PYTHONDONTWRITEBYTECODE": "1",
                                              "NUMBA_CACHE_DIR": str(tmp_path / "cache")})
        assert done.stdout.strip() == result
