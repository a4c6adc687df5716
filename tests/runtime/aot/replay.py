"""A network's objects in a program that runs one inference and compares everything.

What the accelerator would compute is recorded with the functional simulator: the program checks the
tiles that the CPU packs, and goes on with the recorded results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from microtron.base.machine_code import object_file
from microtron.base.processor import TARGETS
from microtron.runtime.aot.data import data_module
from microtron.runtime.aot.names import symbol_of
from microtron.runtime.aot.objects import write_objects
from microtron.runtime.aot.stages import Constants, Move, Nodes, Run, stages_of
from microtron.runtime.devices.device import open_device
from microtron.runtime.models.compiled_model import CompiledModel
from microtron.runtime.models.host import NumpyBackend
from microtron.runtime.models.inference import LoadedProgram

from ...cross import PROCESSORS

MAIN = """\
#include <stdio.h>
#include <string.h>
#include "{symbol}.h"

{declared}

static uint8_t memory[{stem}_MEMORY_BYTES] __attribute__((aligned(64)));

static int replayed(void *context, const struct microtron_program *program, uint8_t *memory)
{{
    const uint8_t *const **next = context;
    const uint8_t *const *tiles = *next;
    for (unsigned i = 0; i < program->input_count; i++, tiles++)
        if (memcmp(memory + program->inputs[i].offset, *tiles, program->inputs[i].bytes)) {{
            printf("input %u of a program differs\\n", i);
            return 100;
        }}
    for (unsigned i = 0; i < program->output_count; i++, tiles++)
        memcpy(memory + program->outputs[i].offset, *tiles, program->outputs[i].bytes);
    *next = tiles;
    return 0;
}}

static float magnitude(const uint8_t *place)
{{
    float value;
    memcpy(&value, place, 4);
    return value > 0 ? value : -value;
}}

static int differs(const struct microtron_tensor *tensor, const uint8_t *expected)
{{
    const uint8_t *found = memory + tensor->offset;
    if (strcmp(tensor->type, "float32"))
        return memcmp(found, expected, tensor->bytes);
    float largest = 0;          /* sums are as exact as their largest terms */
    for (size_t i = 0; i < tensor->bytes / 4; i++) {{
        float size = magnitude(expected + 4 * i);
        if (size > largest && size < 1e30f)
            largest = size;
    }}
    for (size_t i = 0; i < tensor->bytes / 4; i++) {{
        float one, other;
        memcpy(&one, found + 4 * i, 4);
        memcpy(&other, expected + 4 * i, 4);
        if (one == other || (one != one && other != other))
            continue;
        float apart = one > other ? one - other : other - one;
        if (!(apart <= 1e-6f * largest + 1e-5f * magnitude(expected + 4 * i)))
            return 1;
    }}
    return 0;
}}

int main(void)
{{
    static const uint8_t *const inputs[] = {{ {inputs} }};
    static const uint8_t *const outputs[] = {{ {outputs} }};
    static const uint8_t *const tiles[] = {{ {tiles} }};
    const struct microtron_network *network = &{symbol};
    const uint8_t *const *next = tiles;
    for (unsigned round = 0; round < 2; round++) {{     /* the second finds what the first left */
        const uint8_t *const *input = inputs, *const *output = outputs;
        next = tiles;
        microtron_reset(network, memory);
        for (unsigned frame = 0; frame < {frames}; frame++) {{
            unsigned failed = 0;
            for (unsigned i = 0; i < network->input_count; i++)
                memcpy(memory + network->inputs[i].offset, *input++, network->inputs[i].bytes);
            int status = microtron_run(network, memory, replayed, &next, &failed);
            if (status) {{
                printf("stage %u, %s: %d\\n", failed, network->stages[failed].name, status);
                return 1;
            }}
            for (unsigned i = 0; i < network->output_count; i++)
                if (differs(&network->outputs[i], *output++)) {{
                    printf("%s differs in frame %u\\n", network->outputs[i].name, frame);
                    return 1;
                }}
        }}
    }}
    printf("equal\\n");
    return 0;
}}
"""


@dataclass
class Recorded:
    """One inference."""

    outputs: dict[str, np.ndarray]
    tiles: list[np.ndarray] = field(default_factory=list)   # of each program, inputs and outputs
    states: dict[str, np.ndarray] = field(default_factory=dict)     # after it


def recorded(model: CompiledModel, inputs: Mapping[str, np.ndarray],
             states: Mapping[str, np.ndarray] | None = None) -> Recorded:
    """An inference in NumPy and on the functional simulator."""
    values, found = {**inputs, **(states or {})}, Recorded({})
    for stage in stages_of(model):
        match stage:
            case Constants():
                values |= {name: model.constants[name].array for name in stage.writes}
            case Nodes():
                values |= NumpyBackend().nodes(stage.part)(values)
            case Move(packs=True):
                tiles = stage.port.layout.pack(values[stage.port.tensor])
                values[stage.tiles] = np.ascontiguousarray(tiles).view(np.uint8).reshape(-1)
            case Move():
                tiles = values[stage.tiles].view(stage.port.type.dtype)
                values[stage.port.tensor] = stage.port.layout.unpack(tiles).reshape(
                    stage.port.type.shape)
            case Run():
                _run(model, stage, values)
                found.tiles += [values[name] for name in (*stage.reads, *stage.writes)]
    found.outputs = {name: values[name] for name in model.outputs}
    found.states = {name: values[each.result] for name, each in model.states.items()}
    return found


def record_frames(model: CompiledModel,
                    frames: Sequence[Mapping[str, np.ndarray]]) -> list[Recorded]:
    """Inferences one after the other."""
    states = {name: each.initial.array for name, each in model.states.items()}
    found = []
    for inputs in frames:
        found.append(recorded(model, inputs, states))
        states = found[-1].states
    return found


def _run(model: CompiledModel, stage: Run, values: dict[str, np.ndarray]) -> None:
    ports = stage.step.inputs, stage.step.outputs
    device = open_device("functional", model.config)
    tiles, _ = LoadedProgram(stage.step.program, device).run(
        {port.name: values[name] for port, name in zip(ports[0], stage.reads, strict=True)},
        [port.name for port in ports[1]])
    values |= {name: np.array(tiles[port.name])
               for port, name in zip(ports[1], stage.writes, strict=True)}


def replay(model: CompiledModel, inputs: Mapping[str, np.ndarray], processor: str,
           folder: Path) -> str:
    """What the program says of a network's objects on a processor: "equal", if all is well."""
    return replay_frames(model, [inputs], processor, folder)


def replay_frames(model: CompiledModel, frames: Sequence[Mapping[str, np.ndarray]], processor: str,
                  folder: Path) -> str:
    """The same for frames one after the other."""
    PROCESSORS[processor].check()
    found, symbol = record_frames(model, frames), symbol_of(model.name)
    written = write_objects(model, TARGETS[processor], folder)
    blocks = {"input": [array for inputs in frames for array in inputs.values()],
              "output": [array for each in found for array in each.outputs.values()],
              "tiles": [array for each in found for array in each.tiles]}
    data = {f"{kind}_{number}": np.ascontiguousarray(array).tobytes()
            for kind, arrays in blocks.items() for number, array in enumerate(arrays)}
    (folder / "test_data.o").write_bytes(object_file(data_module(data), TARGETS[processor]))
    (folder / "main.c").write_text(MAIN.format(
        symbol=symbol, stem=symbol.upper(), frames=len(frames),
        declared="\n".join(f"extern const uint8_t {name}[];" for name in data),
        inputs=_names(data, "input"), outputs=_names(data, "output"),
        tiles=_names(data, "tiles")))
    sources = [path for path in written if path.suffix != ".h"]
    program = PROCESSORS[processor].build(folder, [folder / "main.c", *sources,
                                                   folder / "test_data.o"])
    return PROCESSORS[processor].run(program).strip()


def _names(data: Mapping[str, bytes], kind: str) -> str:
    return ", ".join(name for name in data if name.startswith(f"{kind}_")) or "0"
