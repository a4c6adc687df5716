"""Ranges chosen one after the other by what rounding a tensor does to the model's results.

A tensor's own error says how well its numbers are stored, not how much that matters: clipping a few
large ones may hurt the results, or not at all. So each tensor is rounded alone, with all others and
all weights in float, and its range made narrower from both sides while the results come closer.
Alone, because errors of tensors hardly depend on each other and add up; and because a change in a
model that is rounded everywhere rounds all numbers anew, which hides what it brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from ..calibration.statistics import Histogram, Say
from ..evaluation import FEWEST, Evaluator
from ..parameters import Array, Parameters, Scale
from ..selection import Selection, count_macs

COARSE = tuple(0.86 ** each for each in range(1, 8))    # of a side of a range
FINE = (0.95, 1.05)                     # of the best part
TRIALS = 6                              # of a tensor, on average: most end early
LEAST_LOSS = 3e-4                       # 35 dB: closer results give the same answers
MOST_SAMPLES = 64                       # by which ranges are chosen
MOST_MACS = 3e11                        # of all trials


def samples_to_refine(selection: Selection,
                      samples: Iterable[dict[str, Array]]) -> list[dict[str, Array]]:
    """Samples to choose ranges by; none if these are too few to tell what is rare, or the model is
    too large to run that often."""
    macs = count_macs(selection)
    trials = TRIALS * len(set(selection.groups.values()))
    most = min(MOST_SAMPLES, int(MOST_MACS / max(macs * trials, 1)))
    found = list(islice(iter(samples), most))
    return found if len(found) >= FEWEST else []


def refine_ranges(histograms: Mapping[str, Histogram], evaluator: Evaluator,
                  say: Say) -> dict[str, Scale]:
    """The scale of each group. What is exact stays so."""
    found = {}
    for number, (group, each) in enumerate(histograms.items(), 1):
        say(f"refining range {number} of {len(histograms)}")
        start = each.exact or Scale.from_range(each.low, each.high)
        found[group] = start if each.exact or each.is_constant else _narrow(group, start, evaluator)
    return found


def _narrow(group: str, scale: Scale, evaluator: Evaluator) -> Scale:
    """The best range of a group among parts of all of it: first from above, then from below. The
    error need not fall and rise only once, since every part rounds numbers anew."""
    losses = evaluator.losses(alone(group, scale))
    for sides in ((0, 1), (1, 0)):
        whole, best = scale, 1.0
        for parts in (COARSE, FINE):
            for part in [min(best * each, 1.0) for each in parts]:
                low, high = (each * (part if side else 1) for each, side in zip(
                    (whole.low, whole.high), sides, strict=True))
                tried = Scale.from_range(low, high)
                if tried == scale:
                    continue
                found = evaluator.losses(alone(group, tried), losses)
                if found.sum() < losses.sum():
                    scale, losses, best = tried, found, part
    return scale


def alone(group: str, scale: Scale) -> Parameters:
    """All float, but for one group."""
    return Parameters({group: scale}, {})
