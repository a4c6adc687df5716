"""The simulator as plain Python, which checks every index and every number, does the same."""

import pytest

from microtron.isa.config import tiny
from microtron.sim.cycle import decode_program, loop
from microtron.sim.cycle.prepared_program import prepare
from microtron.sim.cycle.run import run_cycles
from microtron.testing.campaign import valid_case, wrong_case

from ..llvm.interpreted import interpret


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize(("make", "seed"), [(valid_case, 2), (valid_case, 4), (wrong_case, 1),
                                            (wrong_case, 2), (wrong_case, 4)])
def test_compiled_code_does_what_python_does(make, seed, skip, monkeypatch):
    case = make(tiny, seed)
    options = {"timing": case.timing, "failing": case.failing, "limit": case.limit, "skip": skip}
    ours = run_cycles(case.program, **options)
    monkeypatch.setattr(loop, "compiled", interpret(loop.compiled))
    theirs = run_cycles(case.program, **options)
    assert (ours.cycles, ours.counters, ours.fault, ours.stuck, ours.most_tokens) == (
        theirs.cycles, theirs.counters, theirs.fault, theirs.stuck, theirs.most_tokens)
    for name in ("dispatched", "start", "end", "waits"):
        assert (getattr(ours.timeline, name) == getattr(theirs.timeline, name)).all(), name


@pytest.mark.parametrize(("make", "seed"), [(valid_case, 2), (valid_case, 4), (wrong_case, 1),
                                            (wrong_case, 2), (wrong_case, 4)])
def test_programs_are_decoded_as_python_does(make, seed, monkeypatch):
    program = make(tiny, seed).program
    ours = prepare(program, tiny)
    for name in ("_fill", "_list"):
        monkeypatch.setattr(decode_program, name, interpret(getattr(decode_program, name)))
    theirs = prepare(program, tiny)
    assert ours.code.tobytes() == theirs.code.tobytes()
    for one, other in ((ours.positions, theirs.positions),
                       (ours.micro_ops.tile, theirs.micro_ops.tile),
                       (ours.micro_ops.span, theirs.micro_ops.span)):
        assert one.tolist() == other.tolist()
    assert make is wrong_case or ours.code["legal"].all()
