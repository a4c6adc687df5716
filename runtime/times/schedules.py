"""Exact cycles of many schedules of a form, for tuners: no data, no result cache, no process each.

Candidates are built and simulated on threads. The simulator, which is machine code, runs beside the
Python that builds the next candidate; what candidates have in common is built once a process.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from ...base.errors import MicrotronError
from ...base.keywords import check_keywords
from ...compiler.garbage import collect_rarely
from ...compiler.operators.catalogue import operator_of
from ...compiler.operators.form import Form, TensorForm
from ...compiler.operators.kernel import Options, build_nest, emit_kernel
from ...compiler.operators.knob_checks import check_knobs
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ...sim.arguments import check_memory, check_positive, check_type
from ...sim.parallel import count_processors
from ...sim.simulate import Ready


@check_keywords
def evaluate(form: Form, knobs: Iterable[object], memory: MemoryTiming | None = None, *,
             threads: int | None = None) -> list[int]:
    """The exact cycles of a form with each of some knobs, in their order.

        space = list(schedules_of(layer, "base"))
        form = space[0][0]
        cycles = evaluate(form, [knobs for each, knobs in space if each is form])

    form        one of `schedules_of`, for the configuration that it is for
    knobs       of that form: each is one candidate
    memory      timing of the DRAM; the reference system unless given
    threads     that work at once; one for each processor unless given

    Cycles are those of `compile_op` with the same form and knobs. The first candidate that cannot
    be compiled, in order, ends everything with an error that gives its number.
    """
    check_type("form", form, Form, "a Form, as schedules_of gives them")
    check_type("knobs", knobs, Iterable, "a sequence of knobs")
    check_memory(memory)
    workers = count_processors() if threads is None else check_positive("threads", threads)
    def cycles_of(numbered: tuple[int, object]) -> int:
        number, given = numbered
        try:
            return Ready(_build(form, given), form.config, is_proven=True).count_cycles(memory)
        except MicrotronError as error:
            raise type(error)(f"knobs {number}: {error}") from None

    candidates = list(enumerate(knobs))
    with collect_rarely():
        if workers == 1 or len(candidates) < 2:
            return list(map(cycles_of, candidates))
        pool = ThreadPoolExecutor(min(workers, len(candidates)), "evaluate")
        try:
            return list(pool.map(cycles_of, candidates))
        finally:
            pool.shutdown(cancel_futures=True)


def _build(form: Form, given: object) -> Program:
    """The program of a candidate."""
    operator = operator_of(form.description)
    if operator.compile is not None:            # in a way of its own
        return operator.compile_spec(form.description, form.config,
                                     Options(form=form, knobs=given)).program
    assert isinstance(form, TensorForm), "templates are for these"
    knobs = check_knobs(operator.template, form, given)
    return emit_kernel(form, build_nest(operator.template, form, knobs))
