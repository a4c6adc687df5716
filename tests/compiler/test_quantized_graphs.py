"""Random quantized models against ONNX Runtime without optimizations: each single operation within
what docs/arithmetic.md promises, on the accelerator and on the CPU."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import onnx
import pytest

from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import Config, small
from microtron.runtime.models.compilation import ModelOptions, compile_model
from microtron.runtime.models.compiled_model import ProgramStep
from microtron.runtime.models.host import NumpyBackend
from microtron.runtime.models.model import Model

from ..models import golden_path, model_path, needs_models
from .quantized_models import quantized_model
from .single_steps import check_steps, our_steps, their_steps

RECTANGULAR = [Config(block_in=block_in, block_out=block_out, uop_bytes=8 << 10, inp_bytes=8 << 10,
                      wgt_bytes=32 << 10, acc_bytes=16 << 10, out_bytes=8 << 10)
               for block_in, block_out in ((16, 8), (8, 16))]
MOST_NEXT_TO_TIES = 1e-3    # of all numbers of a network
IN_TEST, IN_SOAK = 20, int(os.environ.get("SOAK_GRAPHS", "2000"))
LOOKUPS = (1212,)           # in a table, of what a border is around
TIES = (1159, 1466, 1614,   # a tensor next to ties, rescaled for one reader and for a table
        1026, 1266)         # averages of a resize next to ties, on the CPU
AT_ONCE = 50                # graphs of a test


def check(seed, counts=None):
    """A model, its steps, and the same on two accelerators; with machine code for the CPU now and
    then, which takes long to make."""
    made = quantized_model(seed)
    ours = our_steps(made.model, made.inputs)
    right = their_steps(made.model, made.inputs, ours, made.reals)
    count, differ = check_steps(made.model, ours, right, made.coarse)
    graph = run_passes(read_onnx(made.model.SerializeToString()))
    backend = NumpyBackend() if seed % 3 else None
    for config in (small, RECTANGULAR[seed % 2]):
        model = Model(**vars(compile_model(graph, config, ModelOptions(optimize=False),
                                           version="")))
        with model.session("functional", backend=backend) as session:
            found = session.run(made.inputs).outputs
        for name in graph.outputs:
            if name in made.reals:
                np.testing.assert_allclose(found[name], right[name], rtol=1e-4, atol=1e-6)
            else:
                np.testing.assert_array_equal(found[name], ours[name], f"{name}, {config}")
        if counts is not None:
            counts["programs"] += sum(isinstance(each, ProgramStep) for each in model.steps)
            counts["nodes"] += len(model.nodes)
            counts["on the CPU"] += len(model.host_nodes)
    if counts is not None:
        counts.update(numbers=count, differ=differ, graphs=1)


@pytest.mark.parametrize("seed", [*range(IN_TEST), *TIES, *LOOKUPS])
def test_a_quantized_model_computes_what_it_means(seed):
    check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(IN_TEST, IN_TEST + IN_SOAK, AT_ONCE))
def test_many_quantized_models_compute_what_they_mean(first):
    counts, failed = Counter(), []
    for seed in range(first, min(first + AT_ONCE, IN_TEST + IN_SOAK)):
        try:
            check(seed, counts)
        except Exception as error:      # the rest is of interest too
            failed.append(f"{seed}: {type(error).__name__}: {str(error).strip()[:300]}")
    print(dict(counts))
    assert not failed, f"{len(failed)} of {AT_ONCE}:\n" + "\n".join(failed)


NETWORKS = ("resnet20_cifar10_qdq_s8s8_perchannel.onnx",)
MORE_NETWORKS = ("resnet20_cifar10_qdq_s8s8_pertensor_sym.onnx", "minilm_l3_encoder_qdq_s8s8.onnx",
                 "mobilenet_v2_torchvision_qdq_s8s8.onnx")


@needs_models
@pytest.mark.parametrize("name", [*NETWORKS, *(
    pytest.param(each, marks=pytest.mark.soak) for each in MORE_NETWORKS)])
def test_each_step_of_a_network_is_what_the_model_means(name):
    model, golden = onnx.load(model_path(name)), np.load(golden_path(name))
    inputs = {each.name: golden[f"in{number}_s0"] for number, each in enumerate(model.graph.input)}
    ours = our_steps(model, inputs)
    count, differ = check_steps(model, ours, their_steps(model, inputs, ours))
    assert differ < count * MOST_NEXT_TO_TIES
