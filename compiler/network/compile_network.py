"""From a graph to a network: decide where nodes run, put them in order, and join layers into as few
programs as possible.

    graph ─ placement ─► tasks ─ groups ─► layers ─ pairs, chains, join ─► network
"""

from __future__ import annotations

from collections.abc import Mapping

from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ..compile import resolve_config
from ..errors import attributed_to
from ..graph.graph import Graph
from ..graph.operations.layers.window import common_channel_axis
from ..operators.choice import Cost
from .chains import chain_layers
from .groups import Group, groups_of
from .layers import LayerCompiler, Say, silent
from .link_group import link_lazily
from .network import HostStep, Network, Step
from .overlap import choose_overlap
from .placement import check_all, tasks_of, title
from .retune import retune


def compile_network(graph: Graph, config: Config | str, *, cost: Cost | None = None,
                    memory: MemoryTiming | None = None, require_accelerator: bool = False,
                    provenance: Mapping[str, str] | None = None,
                    progress: Say | None = None) -> Network:
    """A graph, after its passes, for a configuration. With a `cost`, schedules of layers are the
    fastest of a few that were timed. `require_accelerator` refuses what the CPU would compute.
    `progress` is told what is being done."""
    config = resolve_config(config)
    compiler = LayerCompiler(
        config, cost, memory, progress or silent,
        common_channel_axis(node.operation for node in graph.nodes.values()))
    tasks, decisions = tasks_of(graph, compiler)
    if require_accelerator:
        check_all(graph, decisions)
    steps: list[Step] = []
    for group in groups_of(graph, tasks, decisions, compiler):
        if isinstance(group, Group):
            with attributed_to(_ends(graph, group)):
                group = choose_overlap(graph, group, tasks, compiler)
                group = retune(graph, chain_layers(graph, group, tasks, compiler), compiler)
                compiler.say(f"joining {len(group.layers)} layers into a program")
                steps.append(link_lazily(graph, group, config))
        else:
            steps.append(HostStep(tuple(group)))
    if require_accelerator:
        check_all(graph, decisions)             # some tensors do not lie where a view needs them
    return Network(graph, config, tuple(steps), decisions, dict(provenance or {}))


def _ends(graph: Graph, group: Group) -> str:
    """What messages call a group: its first and its last node."""
    first, last = (title(graph, each.node) for each in (group.layers[0], group.layers[-1]))
    return first if first == last else f"{first} to {last}"
