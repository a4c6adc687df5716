"""Prints the tables of docs/configurations.md: what a field of the configuration does to cycles.

    python tools/configuration_tables.py layers             # a minute
    python tools/configuration_tables.py networks FILE...   # cycles of networks by ALU lanes
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from microtron import compile as compile_model
from microtron import compile_op, simulated_cost
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.isa.config import Config, base, lean
from microtron.runtime.reports.layers import inspect_model

LAYERS = (Conv2d(height=28, width=28, channels_in=128, channels_out=128, kernel=(3, 3),
                 pad=(1, 1, 1, 1)),
          Conv2d(height=14, width=14, channels_in=512, channels_out=512, kernel=(1, 1)),
          Depthwise(height=14, width=14, channels_in=512, channels_out=512, kernel=(3, 3),
                    pad=(1, 1, 1, 1)),
          Dense(rows=1, inputs=512, outputs=1000))
CHANGES = (("block_in", 8), ("block_out", 8), ("block_in", 32), ("block_out", 32), ("wgt_bits", 4),
           ("bus_bits", 128), ("inp_bytes", 8192), ("wgt_bytes", 32768), ("acc_bytes", 16384),
           ("out_bytes", 4096), ("acc_banks", 1), ("queue_depth", 2), ("reads_in_flight", 1),
           ("writes_in_flight", 1), ("vector_cycles", 2), ("vector_cycles", 4))
CONFIGS = {"16 lanes": base, "8 lanes": replace(base, vector_cycles=2), "lean": lean,
           "4 lanes": replace(base, vector_cycles=4), "2 lanes": replace(base, vector_cycles=8)}


def layer_rows() -> Iterator[list[str]]:
    yield ["change", "3×3", "1×1", "depthwise", "fully connected"]
    yield ["none: `base`", *_cycles_of_layers(base)]
    for name, value in CHANGES:
        yield [f"`{name} = {value}`", *_cycles_of_layers(replace(base, **{name: value}))]


def _cycles_of_layers(config: Config) -> list[str]:
    cost = simulated_cost()
    return [f"{cost(compile_op(layer, config, cost=cost).program):,}" for layer in LAYERS]


def network_rows(paths: Iterable[Path]) -> Iterator[list[str]]:
    yield ["network", *CONFIGS]
    for path in paths:
        yield [path.stem, *(_cycles_of_network(path, config) for config in CONFIGS.values())]


def _cycles_of_network(path: Path, config: Config) -> str:
    try:
        return f"{inspect_model(compile_model(path, config)).cycles:,}"
    except CompileError as error:
        return str(error)


def main(words: Sequence[str]) -> int:
    match words:
        case ["layers"]:
            rows = layer_rows()
        case ["networks", *paths] if paths:
            rows = network_rows(map(Path, paths))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    for number, row in enumerate(rows):
        print(f"| {' | '.join(row)} |", flush=True)
        if number == 0:
            print("|---" * len(row) + "|")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
