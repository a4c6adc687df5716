"""A program without a network, such as a kernel or assembly, in the form of one."""

from __future__ import annotations

from dataclasses import replace

from ..compiler.graph.types import TensorType
from ..compiler.network.linking.memory_plan import Plan
from ..compiler.network.network import Where
from ..compiler.operators.work import Work
from ..isa.memory_timing import MemoryTiming
from ..isa.program import Program
from ..runtime.models.compiled_model import CompiledModel, NodeReport, ProgramStep
from ..sim.counts import count

WHOLE = "program"           # the label of a program without any


def model_of_program(program: Program, name: str, work: Work | None = None) -> CompiledModel:
    """A network of one program, whose layers are what its labels divide it into. `work` is the
    least that an undivided program has to do, if that is known."""
    starts = {position: label for label, position in reversed(list(program.labels.items()))
              if position < len(program.code)}
    if 0 not in starts:
        starts[0] = WHOLE if WHOLE not in program.labels else f"{WHOLE} of {len(starts) + 1}"
    firsts = sorted(starts)
    labelled = replace(program, labels={**program.labels, starts[0]: 0})
    nodes = []
    for first, last in zip(firsts, [*firsts[1:], len(program.code)], strict=True):
        done = count(program.code[first:last], program.config, {})
        nodes.append(NodeReport(
            name=starts[first], origin=starts[first], operator="instructions",
            type=TensorType((last - first,), "int8"), where=Where.ACCELERATOR, macs=done.macs,
            step=0, label=starts[first], work=work if len(firsts) == 1 else None))
    return CompiledModel(
        name=name, config=program.config, memory=MemoryTiming(), inputs={}, outputs={},
        constants={}, steps=(ProgramStep(labelled, (), (), Plan({}, 0, 0)),), nodes=tuple(nodes),
        provenance=dict(program.provenance))
