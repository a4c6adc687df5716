"""What one exact candidate costs a tuner, step by step: ResNet-18's layers, many schedules each.

    python benchmarks/tuning.py --batch 64

The first candidate of a layer is cold: nothing that candidates share has been made. The others are
a batch. Emission as objects, which is the definition of what is emitted, is measured beside it, and
every stream is compared with it. `microtron.evaluate` takes the same candidates at once, on all
processors; its cycles are compared, too. All times are processor time.

With `--search FILE` it is searches that are measured (benchmarks/schedule_search.py), with
`--workers N` points on several workers (benchmarks/worker_rates.py).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cases.known_layers import RESNET_18
from common import Column, Outcome, Row, main
from schedule_search import measure_searches
from worker_rates import compare_workers

from microtron import evaluate
from microtron.compiler.accelerator.emission.assemble_program import dram_of, program_of
from microtron.compiler.accelerator.emission.compiled import plans
from microtron.compiler.accelerator.emission.compiled.build import emit_words
from microtron.compiler.accelerator.emission.emit import Emitter
from microtron.compiler.accelerator.emission.interleave_buffers import interleave_buffers
from microtron.compiler.accelerator.emission.placed_nest import PlacedNest
from microtron.compiler.accelerator.lower_schedule import lower_to_intrinsics
from microtron.compiler.accelerator.selection.hardware_loops import MOST_INSTRUCTIONS
from microtron.compiler.accelerator.selection.intrinsic import collect_intrinsics
from microtron.compiler.garbage import collect_rarely
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.choice import Candidate, rank_candidates
from microtron.compiler.operators.description import Description
from microtron.compiler.operators.form import AnyTemplate
from microtron.isa.config_files import load_config
from microtron.sim.simulate import Ready

STEPS = ("schedule", "lower", "emit", "tokens", "decode", "simulate")
OLD = "objects"             # emission with an object for each instruction
AT_ONCE = "evaluate"


class Stopwatch:
    """Processor time of each step, in milliseconds."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys((*STEPS, OLD), 0.0)

    @contextmanager
    def time(self, step: str) -> Iterator[None]:
        begin = time.process_time()
        yield
        self.spent[step] += 1e3 * (time.process_time() - begin)


def measure_candidate(template: AnyTemplate, candidate: Candidate[Any, Any],
                      clock: Stopwatch) -> tuple[int, int]:
    """Build and simulate a candidate. Returns its instructions and its cycles."""
    form = candidate.form
    config, intrinsics = form.config, form.intrinsics
    with clock.time("schedule"):
        schedule = template.schedule(form, candidate.knobs)
    with clock.time("lower"):
        nest = lower_to_intrinsics(schedule, config, intrinsics)
    with clock.time("emit"):
        placed = PlacedNest(config, interleave_buffers(nest, form.interleaves, config),
                            collect_intrinsics(config, intrinsics))
        dram = dram_of(placed.nest, placed.bits)
        found = emit_words(placed, MOST_INSTRUCTIONS)
    with clock.time(OLD):
        code, micro_ops = Emitter(placed).emit_objects()
    if found is not None:
        assert found[0].tobytes() == code.tobytes(), "both emitters give the same stream"
        assert found[1].tolist() == list(map(list, micro_ops))
        code, words = found
    with clock.time("tokens"):
        program = program_of(config, dram, code, words if found else micro_ops, hide_latency=True)
    with clock.time("decode"):
        ready = Ready(program, config, is_proven=True)
        _ = ready.prepared
    with clock.time("simulate"):
        cycles = ready.count_cycles(None)
    return len(program.code), cycles


def measure_at_once(some: Sequence[Candidate[Any, Any]], cycles: list[int]) -> float:
    """Milliseconds of each of some candidates if they are given together."""
    begin = time.process_time()
    found: dict[int, int] = {}
    for form in dict.fromkeys(each.form.number for each in some):
        same = [number for number, each in enumerate(some) if each.form.number == form]
        taken = evaluate(some[same[0]].form, [some[number].knobs for number in same])
        found.update(zip(same, taken, strict=True))
    assert [found[number] for number in range(len(some))] == cycles, "together as alone"
    return 1e3 * (time.process_time() - begin) / max(1, len(some))


def measure_layer(name: str, shape: str, spec: Description,
                  options: argparse.Namespace) -> list[Row]:
    """A row for the first candidate, and one for the mean of the others."""
    config, operator = load_config(options.config), operator_of(spec)
    ranked = rank_candidates(operator.template, operator.forms_of(spec, config))
    rows = []
    plans.STORES[:] = [plans.PlanStore()]
    for label, some in (("cold", ranked[:1]), ("batch", ranked[1:options.batch])):
        clock = Stopwatch()
        with collect_rarely():          # as `evaluate` does
            done = [measure_candidate(operator.template, each, clock) for each in some]
        instructions = sum(each for each, _ in done)
        spent = {step: each / max(1, len(some)) for step, each in clock.spent.items()}
        spent[AT_ONCE] = measure_at_once(some, [cycles for _, cycles in done])
        rows.append({"layer": f"{name} {label}", "shape": shape, "kind": label,
                     "instructions": instructions / max(1, len(some)), **spent,
                     "total": sum(spent[step] for step in STEPS)})
    return rows


def measure(options: argparse.Namespace) -> Outcome:
    if options.search:
        return measure_searches(options)
    if options.workers > 1:
        return compare_workers(options)
    layers = [each for each in RESNET_18 if each.offloaded]
    warm = layers[0]
    measure_layer(warm.vta, warm.shape, warm.spec, argparse.Namespace(
        config=options.config, batch=2))            # loads what is compiled
    rows = [row for each in layers
            for row in measure_layer(each.vta, each.shape, each.spec, options)]
    for kind in ("cold", "batch"):
        some = [row for row in rows if row["kind"] == kind]
        rows.append({"layer": f"mean, {kind}", "shape": "", "kind": f"mean {kind}", **{
            key: sum(row[key] for row in some) / len(some)
            for key in ("instructions", *STEPS, OLD, AT_ONCE, "total")}})

    def milliseconds(value: float) -> str:
        return f"{value:.2f}"
    return Outcome(
        benchmark="tuning", title="Milliseconds of a candidate, one processor",
        columns=(Column("layer", "layer"), Column("instructions", "words", lambda n: f"{n:.0f}"),
                 *(Column(step, step, milliseconds) for step in STEPS),
                 Column("total", "total", milliseconds),
                 Column(AT_ONCE, "evaluate", milliseconds),
                 Column(OLD, "emit as objects", milliseconds)),
        rows=rows, facts={"config": options.config, "batch": options.batch})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", default="base", help="a preset or a file (base)")
    parser.add_argument("--batch", type=int, default=64, help="candidates of each layer (64)")
    parser.add_argument("--search", metavar="FILE", help="compare searches instead; measurements "
                                                         "go to this store")
    parser.add_argument("--points", type=int, default=2000,
                        help="with --search: schedules of each layer; with --workers: points "
                             "(2000)")
    parser.add_argument("--workers", type=int, default=1,
                        help="compare so many workers with one process instead")
    parser.add_argument("--drawn", type=int, default=2,
                        help="with --search: configurations that are drawn, beside base (2)")


if __name__ == "__main__":
    main(measure, __doc__.splitlines()[0] if __doc__ else "", arguments)
