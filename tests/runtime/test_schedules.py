"""Many candidates at once take the cycles that each of them takes alone."""

import random

import pytest

import microtron
from microtron import Conv2d, Dense, Depthwise, MemoryTiming, Pool, Transposed

LAYERS = [Conv2d(height=7, width=6, channels_in=9, channels_out=5, pad=1),
          Dense(rows=5, inputs=17, outputs=12),
          Depthwise(height=6, width=5, channels_in=9, channels_out=9, pad=1),
          Pool(height=6, width=6, channels=5, kernel=2, kind="max")]


def design_space(layer, config):
    """The first form of a layer, and all of its knobs."""
    space = list(microtron.schedules_of(layer, config))
    form = space[0][0]
    return form, [knobs for each, knobs in space if each is form]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.operator)
def test_a_batch_takes_the_cycles_of_each_of_its_candidates(layer):
    form, knobs = design_space(layer, "tiny")
    some = random.Random(layer.operator).sample(knobs, min(4, len(knobs)))
    memory = MemoryTiming(read_latency=77)
    alone = [microtron.simulate(microtron.compile_op(layer, "tiny", form=form, knobs=each).program,
                                memory=memory).cycles for each in some]
    assert microtron.evaluate(form, some, memory) == alone
    assert microtron.evaluate(form, some, memory, threads=1) == alone
    assert microtron.evaluate(form, iter(some[::-1]), memory, threads=3) == alone[::-1]
    assert microtron.evaluate(form, some[:1]) != alone[:1], "the memory counts"


def test_a_candidate_that_does_not_fit_is_named():
    form, knobs = design_space(LAYERS[0], "tiny")
    assert microtron.evaluate(form, []) == []
    with pytest.raises(microtron.CompileError, match="knobs 1: knobs are 3, but must be a"):
        microtron.evaluate(form, [knobs[0], 3])
    with pytest.raises(microtron.MicrotronError, match="form is 3, but must be a Form"):
        microtron.evaluate(3, knobs)
    with pytest.raises(microtron.MicrotronError, match="knobs is 3, but must be a sequence"):
        microtron.evaluate(form, 3)
    with pytest.raises(microtron.MicrotronError, match="threads is 0, but must be"):
        microtron.evaluate(form, knobs, threads=0)
    with pytest.raises(microtron.MicrotronError, match="memory is 'slow', but must be a Memory"):
        microtron.evaluate(form, knobs, "slow")


def test_what_takes_no_knobs_says_so():
    layer = Transposed(height=3, width=3, channels_in=4, channels_out=4, kernel=2, stride=2)
    form = microtron.compile_op(layer, "tiny").form
    with pytest.raises(microtron.CompileError, match="knobs 0: transposed: every phase has"):
        microtron.evaluate(form, [None, 1])
