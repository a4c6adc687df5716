"""Which layers hurt, and how many must stay float for the loss to be small enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...base.errors import MicrotronError
from ...runtime.models.compiled_model import macs_of
from ..calibration.samples import Samples
from ..calibration.statistics import Say
from ..evaluation import Errors
from ..parameters import Array, Parameters
from ..prepare import PRODUCTS
from ..selection import Selection, data_of
from ..simulation import Simulator

RANKED_ON = 4                   # samples on which each layer is tried alone


@dataclass
class LossMeter:
    """What quantization costs: points of accuracy where there are labels, else the error of the
    outputs in percent of their size."""

    simulator: Simulator
    samples: Samples
    labels: Array | None
    most: int                       # samples without labels

    def loss(self, parameters: Parameters, most: int | None = None) -> float:
        graph = self.simulator.selection.graph
        outputs = [name for name in graph.outputs if graph.type_of(name).is_float]
        errors = {name: Errors() for name in outputs}
        hits, count = [0, 0], 0
        limit = most or (self.most if self.labels is None else len(self.labels))
        for sample in self.samples.first(limit):
            right, found = self.simulator.run(sample), self.simulator.run(sample, parameters)
            for name, each in errors.items():
                each.add(right[name], found[name])
            if self.labels is not None and len(graph.outputs) == 1:
                hits = [hit + int(np.argmax(each[graph.outputs[0]]) == self.labels[count])
                        for hit, each in zip(hits, (right, found), strict=True)]
            count += 1
        if self.labels is not None and most is None:
            return 100 * (hits[0] - hits[1]) / max(count, 1)
        return 100 * float(np.sqrt(np.mean([each.ratio for each in errors.values()] or [0])))


def rank_layers(meter: LossMeter, parameters: Parameters, say: Say) -> list[str]:
    """Layers, those first that cause most error for each MAC that staying float takes from the
    accelerator."""
    selection = meter.simulator.selection
    harm = {}
    for number, layer in enumerate(selection.layers, 1):
        say(f"trying layer {number} of {len(selection.layers)} alone")
        others = set(selection.layers) - {layer}
        error = meter.loss(keep_float(selection, parameters, others), RANKED_ON)
        macs = macs_of(selection.graph, selection.graph.nodes[layer])
        harm[layer] = error ** 2 / max(macs, 1)
    return sorted(harm, key=lambda layer: -harm[layer])


def keep_float(selection: Selection, parameters: Parameters, kept_float: set[str]) -> Parameters:
    """Parameters that leave some layers as they are in float, and all tensors that no other layer
    touches."""
    touched = {group for layer in selection.layers if layer not in kept_float
               for group in groups_of(selection, layer)}
    known = {group for layer in selection.layers for group in groups_of(selection, layer)}
    return replace(
        parameters,
        scales={group: scale for group, scale in parameters.scales.items()
                if group in touched or group not in known},
        weights={layer: each for layer, each in parameters.weights.items()
                 if layer not in kept_float})


def groups_of(selection: Selection, layer: str) -> set[str]:
    """The scales of what a layer reads and of what it makes."""
    operation = selection.graph.nodes[layer].operation
    assert isinstance(operation, PRODUCTS)
    names = [data_of(operation), *operation.operands(), layer,
             *selection.graph.readers.get(layer, ())]
    return {selection.groups[name] for name in names if name in selection.groups}


def layers_to_keep(meter: LossMeter, parameters: Parameters, most: float,
                   say: Say) -> list[str]:
    """As few layers as it takes, in the order in which they hurt."""
    if meter.loss(parameters) <= most:
        return []
    selection = meter.simulator.selection
    ranked = rank_layers(meter, parameters, say)
    below, above = 0, len(ranked)           # too few, and enough: all of them
    while above - below > 1:
        middle = (below + above) // 2
        say(f"trying with {middle} of {len(ranked)} layers in float")
        kept = set(ranked[:middle])
        if meter.loss(keep_float(selection, parameters, kept)) <= most:
            above = middle
        else:
            below = middle
    if above == len(ranked):
        raise MicrotronError(f"max_loss is {most}, which would need all {len(ranked)} layers in "
                             f"float; give more samples, or a larger loss")
    return ranked[:above]
