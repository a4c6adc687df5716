"""Quantized models against ONNX Runtime without optimizations, one step at a time.

A step is what lies before a QuantizeLinear. ONNX Runtime gets our results of the steps before, so
that differences do not add up, and each must be within what docs/arithmetic.md promises.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.passes.pipeline import run_passes

from .frontends.onnx.onnx_models import runtime

NEAR = 2.0 ** -10           # steps from a tie at which float32 may round either way
BIAS = 1 / 16               # steps by which rounding a bias may move a result


def with_outputs(model, names):
    """A copy of a model with other outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    return copy


def quantizers(model):
    """What QuantizeLinear reads and its scale, by what it gives."""
    arrays = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    return {node.output[0]: (node.input[0], float(arrays[node.input[1]]))
            for node in model.graph.node if node.op_type == "QuantizeLinear"}


def our_steps(model, inputs):
    """All stored numbers after the passes, by name."""
    every = with_outputs(model, quantizers(model))
    return {name: np.asarray(array) for name, array in evaluate(
        run_passes(read_onnx(every.SerializeToString())), inputs).items()}


def their_steps(model, inputs, ours, reals=()):
    """What ONNX Runtime makes of each step from our results of the steps before: the stored
    numbers under their name with a dash, and what is quantized; `reals` are more of its tensors."""
    copy = with_outputs(model, ())
    wanted = dict.fromkeys(reals)
    for node in copy.graph.node:
        if node.op_type == "QuantizeLinear":
            name = node.output[0]
            node.output[0] = f"{name}'"
            wanted |= dict.fromkeys((node.output[0], node.input[0]))
            copy.graph.input.append(helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(ours[name].dtype), ours[name].shape))
    known = {each.name for each in [*copy.graph.input, *copy.graph.initializer]}
    names = [each for each in wanted if each not in known]
    copy = with_outputs(copy, names)
    found = runtime(copy.SerializeToString()).run(names, {**inputs, **ours})
    return {**inputs, **dict(zip(names, found, strict=True))}


def check_steps(model, ours, right, coarse=None):
    """Each stored number is that of ONNX Runtime, or its neighbour where that is next to a tie.
    `coarse` are results that rounding a bias may move, with the steps by which it may. Returns how
    many numbers there are, and how many differ."""
    count = differ = 0
    for name, (real, scale) in quantizers(model).items():
        found, known = ours[name].astype(int), right[f"{name}'"].astype(int)
        steps = right[real].astype(np.float64) / scale
        from_tie = np.abs(np.abs(steps - np.floor(steps)) - 0.5)
        near = NEAR * (1 + np.abs(steps) / 256) + min((coarse or {}).get(name, 0), BIAS)
        assert np.abs(found - known).max(initial=0) <= 1, name
        far = (found != known) & (from_tie > near)
        assert not far.any(), f"{name}: {far.sum()} of {far.size}, {from_tie[far].max()} steps"
        count += found.size
        differ += int((found != known).sum())
    return count, differ
