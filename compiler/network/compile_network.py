"""From a graph to a network, in stages, each of which takes what the one before it gives:

    graph ─ channels ─► graph with joined channels in tiles ─ placement, fusion ─► tasks ─ groups ─►
    layers in groups ─ overlap, chains, retune ─►
    layers with the schedules that suit each other ─ link_group ─► network
"""

from __future__ import annotations

from collections.abc import Mapping

from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ..compile import resolve_config
from ..errors import attributed_to
from ..garbage import collect_rarely
from ..graph.graph import Graph
from ..graph.operations.layers.window import common_channel_axis
from ..operators.choice import Cost
from .channels.align_channels import align_channels
from .groups import Group, group_layers
from .kernel_search import KernelSearch, Progress, Schedules, silent
from .layers import LayerCompiler
from .link_group import Linker
from .network import AcceleratorStep, HostStep, Network
from .placement import check_all, place_nodes
from .tuning.chains import chain_layers
from .tuning.overlap import overlap_layers
from .tuning.retune import retune


@collect_rarely()
def compile_network(graph: Graph, config: Config | str, *, cost: Cost | None = None,
                    memory: MemoryTiming | None = None, require_accelerator: bool = False,
                    provenance: Mapping[str, str] | None = None,
                    schedules: Schedules | None = None,
                    progress: Progress | None = None) -> Network:
    """A graph, after its passes, for a configuration. With a `cost`, schedules of layers are the
    fastest of a few that were timed; `schedules` are those to begin with. `require_accelerator`
    refuses what the CPU would compute. `progress` is called with what is being done."""
    config = resolve_config(config)
    graph = align_channels(graph, config)
    kernels = KernelSearch(config, cost, memory, progress or silent, schedules or {})
    channel_axis = common_channel_axis(node.operation for node in graph.nodes.values())
    tasks, decisions = place_nodes(graph, kernels, channel_axis)
    kernels.check_schedules()
    if require_accelerator:
        check_all(graph, decisions)
    layers, linker = LayerCompiler(graph, tasks, channel_axis, kernels), Linker(graph, config, cost)
    steps = tuple(_link(group, layers, linker) if isinstance(group, Group)
                  else HostStep(tuple(group)) for group in group_layers(graph, decisions, layers))
    if require_accelerator:
        check_all(graph, decisions)             # some tensors do not lie where a view needs them
    return Network(graph, config, steps, decisions, dict(provenance or {}))


def _link(group: Group, layers: LayerCompiler, linker: Linker) -> AcceleratorStep:
    """A group of layers as one program, with the schedules that suit each other."""
    first, last = (layers.graph.title(each.node) for each in (group.layers[0], group.layers[-1]))
    with attributed_to(first if first == last else f"{first} to {last}"):
        ways = [chain_layers(each, layers, linker)
                for each in overlap_layers(group, layers, linker)]
        group = linker.fastest(*ways) if len(ways) > 1 else ways[0]
        group = retune(group, layers.kernels, linker)
        layers.kernels.say(f"joining {len(group.layers)} layers into a program")
        return linker.link(group)
