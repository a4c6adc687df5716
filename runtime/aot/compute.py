"""The C functions of the CPU's stages: each tells kernels where their tensors lie."""

from __future__ import annotations

from ...compiler.cpu.cpu_part import RUN, Part
from ...compiler.network.linking.memory_plan import Plan
from ..models.compiled_model import CompiledModel
from .names import compute_symbol, constant_symbol
from .parts import tensors_of
from .stages import Constants, Remember, Stage, bytes_of


def compute_text(model: CompiledModel, number: int, stage: Stage, part: Part | None,
                 plan: Plan) -> str:
    """The function of a stage."""
    if isinstance(stage, Constants):
        return _copies(model, number, stage, plan)
    if isinstance(stage, Remember):
        return _remembers(model, number, stage, plan)
    assert part is not None
    symbol = compute_symbol(model, number)
    constants = {place: constant_symbol(model, number, place) for place in part.constants}
    lines = [f"extern const uint8_t {each}[];" for each in constants.values()]
    lines.append(f"int32_t {symbol}_{RUN}(void *const *table, int32_t first, int32_t last);\n")
    rows = [_address(place, stage, part, plan, number, constants)
            for place in range(part.places)]
    lines += [f"static int {symbol}(uint8_t *memory)", "{",
              "    void *const table[] = {", *(f"        {row}," for row in rows or ["memory"]),
              "    };",
              f"    return {symbol}_{RUN}(table, 0, {len(part.kernels)});", "}\n"]
    return "\n".join(lines)


def _address(place: int, stage: Stage, part: Part, plan: Plan, number: int,
             constants: dict[int, str]) -> str:
    if place in constants:
        return f"(void *)(uintptr_t){constants[place]}"
    if place in part.scratch:
        return f"memory + {plan.offsets[f'workspace {number}'] + part.scratch[place]}u"
    return f"memory + {plan.offsets[tensors_of(stage, part)[place]]}u"


def _copies(model: CompiledModel, number: int, stage: Constants, plan: Plan) -> str:
    """Constants into the network's memory, where everybody looks for tensors."""
    symbols = {name: constant_symbol(model, number, place)
               for place, name in enumerate(stage.writes)}
    lines = [f"extern const uint8_t {each}[];" for each in symbols.values()]
    lines += ["", f"static int {compute_symbol(model, number)}(uint8_t *memory)", "{"]
    for name, symbol in symbols.items():
        lines += _copy(bytes_of(model.constants[name].type), plan.offsets[name],
                       f"{symbol}[place]")
    return "\n".join([*lines, "    return 0;", "}\n"])


def _remembers(model: CompiledModel, number: int, stage: Remember, plan: Plan) -> str:
    """What states become, to where they are."""
    lines = [f"static int {compute_symbol(model, number)}(uint8_t *memory)", "{"]
    for name, result in stage.pairs:
        lines += _copy(bytes_of(model.states[name].type), plan.offsets[name],
                       f"memory[{plan.offsets[result]}u + place]")
    return "\n".join([*lines, "    return 0;", "}\n"])


def _copy(size: int, offset: int, source: str) -> list[str]:
    """A loop over bytes."""
    return [f"    for (size_t place = 0; place < {size}u; place++)",
            f"        memory[{offset}u + place] = {source};"]
