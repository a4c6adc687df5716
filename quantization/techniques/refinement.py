"""Scales moved one after the other where that brings the model's results closer to the float
model's.

A tensor's own error says how well its numbers are stored, not how much that matters: clipping a few
large ones may hurt the results, or not at all. So each range is tried a little narrower and wider.
A change stays if it lowers the error on samples that it is chosen by, and on those that candidates
are judged by, which have no part in the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from ...runtime.models.compiled_model import macs_of
from ..calibration.statistics import Say
from ..evaluation import Evaluator
from ..layers import widen_scales_for_bias
from ..parameters import Array, Parameters, Scale
from ..selection import Selection, data_of

FACTORS = (0.85, 0.93, 1.08, 1.18)      # of each side of a range
SIGNIFICANT = 3.0                       # standard errors of a gain: there are many trials
LEAST_LOSS = 3e-4                       # 35 dB: closer results give the same answers
MOST_SAMPLES = 32                       # by which changes are chosen
MOST_MACS = 3e11                        # of all trials, most of which end early


def samples_to_refine(selection: Selection, parameters: Parameters,
                      samples: Iterable[dict[str, Array]], judged: int) -> list[dict[str, Array]]:
    """Samples to choose changes by, besides those that candidates are judged by. None, if there
    are too few to tell luck from gain, or if the model is too large to run that often."""
    macs = sum(macs_of(selection.graph, selection.graph.nodes[each]) for each in selection.layers)
    trials = sum(len(list(neighbours(each))) for each in parameters.scales.values())
    if macs * trials * judged > MOST_MACS:
        return []
    most = min(MOST_SAMPLES, int(MOST_MACS / max(macs * trials, 1)))
    found = list(islice(iter(samples), judged, judged + most))
    return found if len(found) >= judged else []


def neighbours(scale: Scale) -> Iterator[Scale]:
    """A range with one side a little narrower or wider."""
    for factor in FACTORS:
        if scale.high > 0:
            yield Scale.from_range(scale.low, factor * scale.high)
        if scale.low < 0:
            yield Scale.from_range(factor * scale.low, scale.high)


def refine_scales(parameters: Parameters, chosen_by: Evaluator, judged_by: Evaluator,
                  say: Say) -> Parameters:
    """Go through all groups of tensors once."""
    selection = judged_by.simulator.selection
    losses, judged = chosen_by.losses(parameters), judged_by.losses(parameters)
    for number, group in enumerate(parameters.scales, 1):
        say(f"refining scale {number} of {len(parameters.scales)}")
        for scale in list(neighbours(parameters.scales[group])):
            candidate = with_scale(selection, parameters, group, scale)
            found = chosen_by.losses(candidate, losses)
            if is_gain(losses, found):
                other = judged_by.losses(candidate, judged)
                if other.sum() < judged.sum():
                    parameters, losses, judged = candidate, found, other
    return parameters


def is_gain(before: Array, after: Array) -> bool:
    """Whether what samples gain is more than chance: any change of a scale rounds all numbers
    anew, for better or worse."""
    if not np.isfinite(after).all():
        return False
    gains = before - after
    return bool(gains.mean() > SIGNIFICANT * gains.std() / np.sqrt(len(gains)))


def with_scale(selection: Selection, parameters: Parameters, group: str,
               scale: Scale) -> Parameters:
    """Parameters with another scale for a group. The biases of layers that read it count in
    products of both scales, and must still fit."""
    readers = [layer for layer in parameters.weights if selection.groups.get(
        data_of(selection.graph.nodes[layer].operation)) == group]      # type: ignore[arg-type]
    changed = {layer: widen_scales_for_bias(parameters.weights[layer], scale) for layer in readers}
    return replace(parameters.with_weights(changed),
                   scales={**parameters.scales, group: scale})
