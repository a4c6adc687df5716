"""Any operator is compiled by one function, which its description chooses."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.compile import compile_op
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.catalogue import OPERATORS, operator_of, register
from microtron.compiler.operators.convolution import conv2d_schedule
from microtron.compiler.operators.convolution.conv2d import Conv2d, Conv2dForm, form_of
from microtron.compiler.operators.convolution.first_layer import RearrangedForm
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense import dense, dense_schedule
from microtron.compiler.operators.dense.dense import Dense, batch_matmul
from microtron.compiler.operators.depthwise.conv_separable import ConvSeparable
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.separable import Separable
from microtron.compiler.operators.depthwise.upsample import Upsample
from microtron.compiler.operators.elementwise.broadcast import Broadcast
from microtron.compiler.operators.elementwise.elementwise import Elementwise
from microtron.compiler.operators.kernel import Operator
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.compiler.operators.pool.pool import Pool, global_average
from microtron.isa.config import base, tiny
from microtron.isa.verification.verifier import verify

LAYER = Conv2d(height=5, width=5, channels_in=8, channels_out=8, pad=1)
SPECS = {
    "conv2d": LAYER,
    "first layer": Conv2d(height=9, width=9, channels_in=1, channels_out=8, pad=1),
    "depthwise": Depthwise(height=5, width=5, channels_in=6, channels_out=6, pad=1),
    "residual": ResidualConv2d(height=5, width=5, channels_in=6, channels_out=6, pad=1),
    "averaged": AveragedConv2d(height=5, width=5, channels_in=6, channels_out=6, pad=1),
    "separable": Separable(height=5, width=5, channels_in=6, channels_out=6, pad=1),
    "conv_separable": ConvSeparable(height=5, width=5, channels_in=3, channels_out=6, pad=1,
                                    window_pad=1),
    "grouped": Grouped(height=5, width=5, channels_in=6, channels_out=6, groups=3, pad=1),
    "transposed": Transposed(height=3, width=3, channels_in=5, channels_out=4),
    "upsample": Upsample(height=3, width=3, channels=5),
    "dense": Dense(rows=3, inputs=10, outputs=6),
    "matmul": batch_matmul(rows=3, inputs=10, outputs=6, matrices=2, zero_point_in=3),
    "max pool": Pool(kind="max", height=5, width=5, channels=6, kernel=2),
    "average pool": global_average(height=5, width=5, channels=6),
    "add": Elementwise(operation="add", channels=6, height=3, width=3),
    "gate": Broadcast(operation="mul", channels=6, height=3, width=3),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_description_becomes_a_verified_program(spec):
    verify(microtron.compile_op(spec, tiny).program)


def test_every_operator_that_there_is_was_tried():
    assert {type(spec) for spec in SPECS.values()} == set(OPERATORS)


def test_the_host_rearranges_images_of_few_channels_where_that_pays():
    image = Conv2d(height=32, width=32, channels_in=3, channels_out=16, pad=(1, 1, 1, 1))
    assert isinstance(microtron.compile_op(image, base).form, RearrangedForm)
    deep = Conv2d(height=8, width=8, channels_in=32, channels_out=16, pad=(1, 1, 1, 1))
    assert type(microtron.compile_op(deep, base).form) is Conv2dForm


def test_a_configuration_may_be_named():
    named, given = compile_op(LAYER, "tiny"), compile_op(LAYER, tiny)
    assert named.program.config == tiny
    assert np.array_equal(named.program.code, given.program.code)


WHOLE = {name: spec for name, spec in SPECS.items() if name not in ("transposed", "upsample")}


@pytest.mark.parametrize("spec", WHOLE.values(), ids=WHOLE)
def test_form_and_knobs_of_a_kernel_make_it_again(spec):
    kernel = microtron.compile_op(spec, tiny)
    again = compile_op(spec, tiny, form=kernel.form, knobs=kernel.knobs)
    assert np.array_equal(again.program.code, kernel.program.code)


def test_a_kernel_that_is_ready_to_run_is_the_one_that_the_compiler_makes():
    ready = microtron.compile_op(LAYER, tiny)
    made = compile_op(LAYER, tiny, cost=microtron.simulated_cost())
    assert (ready.knobs, ready.form.note) == (made.knobs, made.form.note)
    assert np.array_equal(ready.program.code, made.program.code)


@pytest.mark.parametrize("device", ["functional", "cycle"])
def test_a_kernel_runs_on_plain_arrays(device):
    """A product by hand: 1 × 5 + 2 × 6 = 17, and − (1 × 7 + 2 × 8) = −23, halved away from 0."""
    kernel = microtron.compile_op(Dense(rows=1, inputs=2, outputs=2), "tiny")
    result, report = kernel.run({"data": [[1, 2]], "weights": [[5, 6], [-7, -8]], "scale": 0.5},
                                device)
    assert result.tolist() == [[9, -12]]
    assert result.dtype == np.int8
    assert bool(report.cycles) == (device == "cycle")


REFUSED = {
    "no description": ({"spec": 3}, "int is not an operator; there are Conv2d, Depthwise, Grouped"),
    "a type": ({"spec": Conv2d}, "type is not an operator; there are Conv2d"),
    "no preset": ({"config": "tinny"}, "'tinny' is neither a preset .*; did you mean tiny"),
    "no config": ({"config": None}, "config is None, but must be a Config, or a preset's or file"),
    "a form for another config": ({"form": form_of(LAYER, base)}, "form"),
    "a form of another layer": ({"form": form_of(replace(LAYER, height=6), tiny)}, "form"),
    "a form of another operator": ({"form": dense.form_of(SPECS["dense"], tiny)}, "form"),
    "no form": ({"form": "folded"}, "form is 'folded', but must be a Form"),
    "knobs of another template": (
        {"knobs": dense_schedule.Knobs(rows=1, blocks=1, depth=1)},
        r"knobs are Knobs\(rows=1, .*\), but must be a conv2d_schedule.Knobs"),
    "nothing at once": (
        {"knobs": conv2d_schedule.Knobs(blocks=0, rows=1, columns=1, depth=1)},
        "conv2d: knob blocks is 0, but must be from 1 to "),
    "no knobs": ({"knobs": {"rows": 2}}, r"knobs are \{'rows': 2\}, but must be a conv2d_sched"),
    "no flag": ({"hide_latency": "no"}, "hide_latency is 'no', but must be a bool"),
    "no timing": ({"memory": "slow"}, "memory is 'slow', but must be a MemoryTiming"),
    "no cost": ({"cost": 3}, "cost is 3, but must be a function of a program"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compiled_is_refused_in_words(arguments, message):
    with pytest.raises(MicrotronError, match=message):
        compile_op(**{"spec": LAYER, "config": tiny} | arguments)


@dataclass(frozen=True, kw_only=True)
class Doubled(Conv2d):
    """A convolution whose result is doubled: what that means, the compiler cannot know."""


def test_a_description_of_another_type_is_another_operator():
    spec = Doubled(height=5, width=5, channels_in=8, channels_out=8)
    with pytest.raises(CompileError, match=r"Doubled is not an operator \(a subclass needs a "
                                           r"registration of its own\); there are Conv2d"):
        compile_op(spec, tiny)


def test_an_operator_is_registered_once_under_a_name_of_its_own():
    operator = operator_of(LAYER)
    with pytest.raises(CompileError, match="there is an operator 'conv2d' already; give"):
        register(operator)
    with pytest.raises(CompileError, match="there is an operator 'conv2d' already; give"):
        register(Operator(description=Doubled, forms=operator.forms, template=operator.template))
    assert Doubled not in OPERATORS
