"""The C table of a network: its tensors, stages and programs, and where they lie in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from ...compiler.graph.types import TensorType
from ...compiler.network.linking.memory_plan import Plan
from ...isa.program import Access, Program
from ..models.compiled_model import CompiledModel, Port
from .compute import compute_text
from .names import compute_symbol, program_symbol, state_symbol, symbol_of
from .parts import StageParts
from .stages import ALIGNMENT, Constants, Move, Nodes, Remember, Run, Stage, bytes_of

HEADER = """\
/* {title}: {bytes} bytes of memory. */
#ifndef {guard}
#define {guard}

#include "microtron_network.h"

#ifdef __cplusplus
extern "C" {{
#endif

#define {guard_stem}_MEMORY_BYTES {bytes}
#define {guard_stem}_MEMORY_ALIGNMENT {alignment}
{offsets}
extern const struct microtron_network {symbol};

#ifdef __cplusplus
}}
#endif

#endif
"""


def header_text(model: CompiledModel, plan: Plan) -> str:
    """The header that names the network and where its inputs and outputs lie."""
    stem = symbol_of(model.name).upper()
    lines = [f"#define {stem}_{kind}_{number} {plan.offsets[name]}u     /* {_comment(name)} */"
             for kind, names in (("INPUT", model.inputs), ("OUTPUT", model.outputs),
                                 ("STATE", model.states))
             for number, name in enumerate(names)]
    return HEADER.format(title=_comment(model.name), bytes=memory_bytes(plan), guard=f"{stem}_H",
                         guard_stem=stem, alignment=ALIGNMENT, symbol=symbol_of(model.name),
                         offsets="\n".join(lines))


def memory_bytes(plan: Plan) -> int:
    return -(-max(1, plan.peak) // ALIGNMENT) * ALIGNMENT


def table_text(model: CompiledModel, stages: Sequence[Stage], parts: StageParts,
               plan: Plan) -> str:
    """The tables themselves, and a function for each stage of the CPU."""
    symbol = symbol_of(model.name)
    blocks = [f'#include "{symbol}.h"\n']
    runs = [each for each in stages if isinstance(each, Run)]
    for run in runs:
        blocks += _program(run, plan, program_symbol(model, run.number))
    blocks += _tensors("inputs", model.inputs, plan)
    blocks += _tensors("outputs", model.outputs, plan)
    blocks += _tensors("states", {name: each.type for name, each in model.states.items()}, plan)
    initials = [state_symbol(model, number) for number in range(len(model.states))]
    blocks += [f"extern const uint8_t {each}[];" for each in initials]
    blocks.append(f"static const uint8_t *const initials[] = {{ {', '.join(initials) or '0'} }};\n")
    blocks += [compute_text(model, number, stage, parts.get(number), plan)
               for number, stage in enumerate(stages) if not isinstance(stage, Run)]
    blocks.append(_array("struct microtron_stage", "stages",
                         [_stage(model, number, stage) for number, stage in enumerate(stages)]))
    configuration = ", ".join(f"{name}={value}" for name, value
                              in model.config.to_dict().items())
    blocks.append(
        f"const struct microtron_network {symbol} = {{\n"
        f"    {_string(model.name)}, {_string(configuration)}, {memory_bytes(plan)},\n"
        f"    inputs, {len(model.inputs)}, outputs, {len(model.outputs)}, "
        f"stages, {len(stages)},\n"
        f"    states, initials, {len(model.states)},\n}};")
    return "\n".join(blocks) + "\n"


def _stage(model: CompiledModel, number: int, stage: Stage) -> str:
    name = _string(_title(stage))
    if isinstance(stage, Run):
        return f"{{ {name}, 0, &{program_symbol(model, stage.number)} }}"
    return f"{{ {name}, {compute_symbol(model, number)}, 0 }}"


def _title(stage: Stage) -> str:
    match stage:
        case Constants():
            return "constants"
        case Nodes():
            return "nodes: " + ", ".join(node.operation.title()
                                         for node in stage.part.nodes.values())
        case Move():
            return f"{'pack' if stage.packs else 'unpack'} {stage.port.tensor}"
        case Run():
            return f"program {stage.number}"
        case Remember():
            return "states"


def _program(run: Run, plan: Plan, symbol: str) -> Iterator[str]:
    program = run.step.program
    yield f"extern const uint8_t {symbol}_instructions[];"
    for number, segment in enumerate(program.segments):
        if segment.data is not None:
            yield f"extern const uint8_t {symbol}_segment_{number}[];"
    yield _array("struct microtron_segment", f"{symbol}_segments", [
        f"{{ {_string(each.name)}, {each.size}, {int(each.access == Access.WRITE)}, "
        + (f"{symbol}_segment_{number}, {len(each.data)} }}" if each.data is not None
           else "0, 0 }")
        for number, each in enumerate(program.segments)])
    for kind, names, ports in (("inputs", run.reads, run.step.inputs),
                               ("outputs", run.writes, run.step.outputs)):
        yield _array("struct microtron_port", f"{symbol}_{kind}",
                     [_port(program, port, plan.offsets[name])
                      for name, port in zip(names, ports, strict=True)])
    yield (f"static const struct microtron_program {symbol} = {{\n"
           f"    {symbol}_instructions, {program.code.nbytes},\n"
           f"    {symbol}_segments, {len(program.segments)},\n"
           f"    {symbol}_inputs, {len(run.reads)}, {symbol}_outputs, {len(run.writes)},\n}};\n")


def _port(program: Program, port: Port, offset: int) -> str:
    tensor = program.tensor(port.name)
    names = [each.name for each in program.segments]
    return (f"{{ {_string(port.name)}, {names.index(tensor.segment)}, {tensor.offset}, {offset}, "
            f"{tensor.size} }}")


def _tensors(kind: str, types: Mapping[str, TensorType], plan: Plan) -> Iterator[str]:
    rows = []
    for number, (name, type_) in enumerate(types.items()):
        shape = f"{kind}_{number}_shape"
        yield f"static const unsigned {shape}[] = {{ {', '.join(map(str, type_.shape)) or '0'} }};"
        scale, zero = _quantization(type_)
        rows.append(f"{{ {_string(name)}, {_string(type_.dtype)}, {plan.offsets[name]}, "
                    f"{bytes_of(type_)}, {len(type_.shape)}, {shape}, {scale!r}, {zero} }}")
    yield _array("struct microtron_tensor", kind, rows)


def _quantization(type_: TensorType) -> tuple[float, int]:
    found = type_.quantization
    return (found.scale, found.zero_point) if found and found.axis is None else (0.0, 0)


def _array(kind: str, name: str, rows: Sequence[str]) -> str:
    """A table; C has none without a row."""
    body = ",\n    ".join(rows) or "{ 0 }"
    return f"static const {kind} {name}[] = {{\n    {body},\n}};\n"


def _string(text: str) -> str:
    """Text as C writes it; what is no plain character becomes octal."""
    octets = text.encode()
    plain = "".join(chr(each) if 32 <= each < 127 and each not in b'"\\?' else f"\\{each:03o}"
                    for each in octets)
    return f'"{plain}"'


def _comment(text: str) -> str:
    return json.dumps(text)[1:-1].replace("*/", "* /").replace("/*", "/ *")
