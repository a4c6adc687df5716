"""Descriptions accept what is meant, in the natural short forms, and refuse everything else."""

import re
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from typing import ClassVar

import numpy as np
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.compile import bound_of, compile_op, schedules_of
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.catalogue import OPERATORS, operator_of, register
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense, Layout, batch_matmul
from microtron.compiler.operators.depthwise.conv_separable import ConvSeparable
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.separable import Separable
from microtron.compiler.operators.depthwise.upsample import Upsample
from microtron.compiler.operators.description import LARGEST, kinds_of
from microtron.compiler.operators.elementwise.broadcast import Broadcast
from microtron.compiler.operators.elementwise.elementwise import Elementwise, Operation
from microtron.compiler.operators.kernel import Operator
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.compiler.operators.pool.pool import Kind, Pool
from microtron.explore.layer_sources import can_schedule
from microtron.isa.arithmetic import scale
from microtron.isa.config import tiny
from microtron.isa.instructions import Rounding
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.verification.verifier import verify

IMAGE = {"height": 6, "width": 7}
VALID = {
    Conv2d: {**IMAGE, "channels_in": 4, "channels_out": 8},
    ResidualConv2d: {**IMAGE, "channels_in": 4, "channels_out": 8},
    AveragedConv2d: {**IMAGE, "channels_in": 4, "channels_out": 8},
    Separable: {**IMAGE, "channels_in": 4, "channels_out": 4},
    ConvSeparable: {**IMAGE, "channels_in": 4, "channels_out": 4},
    Depthwise: {**IMAGE, "channels_in": 4, "channels_out": 4},
    Grouped: {**IMAGE, "channels_in": 4, "channels_out": 8, "groups": 2},
    Transposed: {**IMAGE, "channels_in": 4, "channels_out": 8},
    Upsample: {**IMAGE, "channels": 4},
    Dense: {"rows": 3, "inputs": 5, "outputs": 6},
    Pool: {**IMAGE, "kind": "max", "channels": 4, "kernel": 2},
    Elementwise: {"operation": "add", "channels": 4},
    Broadcast: {"operation": "mul", "channels": 4},
}


def test_every_operator_is_tried_here():
    assert set(VALID) == set(OPERATORS)


@pytest.mark.parametrize("kind", VALID)
def test_the_valid_ones_are_valid_and_bounded(kind):
    least = bound_of(kind(**VALID[kind]), "tiny")
    assert 0 < least.cycles < float("inf")


@pytest.mark.parametrize(("short", "long"), [
    (Conv2d(**VALID[Conv2d], kernel=3, stride=2, dilation=1, pad=1),
     Conv2d(**VALID[Conv2d], kernel=(3, 3), stride=(2, 2), dilation=(1, 1), pad=(1, 1, 1, 1))),
    (Conv2d(**VALID[Conv2d], kernel=[1, 3], pad=np.array([0, 1, 0, 1])),
     Conv2d(**VALID[Conv2d], kernel=(1, 3), pad=(0, 1, 0, 1))),
    (Conv2d(**VALID[Conv2d] | {"height": np.int64(6)}, rounding="even"),
     Conv2d(**VALID[Conv2d], rounding=Rounding.EVEN)),
    (Pool(**VALID[Pool]), Pool(**VALID[Pool] | {"kind": Kind.MAX, "kernel": (2, 2)})),
    (Pool(**VALID[Pool] | {"kind": "AVERAGE"}, count_include_pad=np.True_, scale_in=1),
     Pool(**VALID[Pool] | {"kind": Kind.AVERAGE}, count_include_pad=True, scale_in=1.0)),
    (Elementwise(**VALID[Elementwise], scale_left=np.float32(0.5)),
     Elementwise(operation=Operation.ADD, channels=4, scale_left=0.5)),
    (Dense(**VALID[Dense], layout="blocks", rounding="Twice"),
     Dense(**VALID[Dense], layout=Layout.BLOCKS, rounding=Rounding.TWICE)),
])
def test_short_forms_are_what_they_stand_for(short, long):
    assert short == long
    assert hash(short) == hash(long)
    for each in fields(short):
        assert type(getattr(short, each.name)) is type(getattr(long, each.name))


def wrong_values(kind):
    """Values that a field of this type must not take."""
    if kind is bool:
        return (0, 1, "no", None, np.array([True, False]))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ("other", "", 0, 1, None, b"max", Operation if kind is not Operation else Kind.MAX)
    if kind is float:
        return (0, -1.0, float("inf"), float("nan"), "1", True, None, [1.0])
    numbers = (-10**20, 10**20, 1.5, 1.0, "1", None, True, float("nan"))
    several = ((1,), (1, 2, 3), (1, 2, 3, 4, 5), "12", (1.5,) * 4, {1: 2}, (True, True))
    if kind == tuple[int, ...]:
        return (*numbers, *several, (0,) * 255 + (128,), (True,) * 256, [[0] * 256])
    return numbers if kind is int else (*numbers, (), *several)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in VALID
                                            for name in kinds_of(kind)])
def test_a_wrong_value_of_any_field_is_refused_with_its_name(kind, name):
    for value in wrong_values(kinds_of(kind)[name]):
        with pytest.raises(CompileError) as refusal:
            kind(**VALID[kind] | {name: value})
        message = str(refusal.value)
        assert message.startswith(f"{kind.operator}: {name} is "), message
        assert "but must be" in message
        assert len(message) < 200
        assert "\n" not in message


@pytest.mark.parametrize(("kind", "name"), [
    (kind, each.name) for kind in VALID for each in fields(kind)
    if each.metadata["low"] is not None])
def test_the_range_of_a_field_ends_where_it_says(kind, name):
    metadata = next(each.metadata for each in fields(kind) if each.name == name)
    for value in (metadata["low"] - 1, metadata["high"] + 1):
        with pytest.raises(CompileError, match=f"{name} is .*from {metadata['low']} to "
                                               f"{metadata['high']}"):
            kind(**VALID[kind] | {name: value})


@pytest.mark.parametrize("kind", VALID)
def test_every_field_is_documented_in_a_line(kind):
    for each in fields(kind):
        assert each.metadata["doc"], each.name
        assert not each.metadata["doc"].endswith(".")


@pytest.mark.parametrize(("kind", "more", "message"), [
    (Conv2d, {"low": 5, "high": 4}, "low is 5, but must be at most high, which is 4"),
    *((kind, {"low_conv": 5, "high_conv": 4}, "low_conv is 5, but must be at most high_conv, which "
                                              "is 4") for kind in (AveragedConv2d, ResidualConv2d)),
    (Conv2d, {"kernel": 9}, "the kernel reaches over 9 × 9, more than the padded input, which is "
                            "6 × 7"),
    (Depthwise, {"channels_out": 6}, "channels_out is 6, but must be a multiple of channels_in"),
    (Grouped, {"channels_out": 9}, "channels_out is 9, but must be a multiple of groups"),
    (Upsample, {"factors": 8}, "weights add up to 127 at most"),
    (Upsample, {"factors": (1, 40), "centred": False}, "in 64 pieces"),
    (Transposed, {"pad": 9}, "leaves nothing of the output"),
    (Transposed, {"stride": 1000, "kernel": 1000}, "1024 phases at most"),
    (Pool, {"pad": 2}, "windows that lie outside the image altogether"),
    (Pool, {"kind": "average", "height": LARGEST, "width": LARGEST, "kernel": LARGEST},
     "2097152 elements at most"),
    (Elementwise, {"scale_left": 1e30, "scale_out": 1e-9}, "scale is .*, but must be from 0 to"),
    (Pool, {"kind": "average", "scale_in": 1e300, "scale_out": 1e-300}, "pool: scale is inf"),
    (Dense, {"zero_point_weights": 1}, "zero_point_weights is 1, but must be 0 for constant"),
    (Dense, {"right_activations": True}, "results of a program are not constant"),
    (Dense, {"matrices": 3, "zero_point_in": 5}, "zero_point_in is 5, but must be 0 for constant "
                                                 "weights of 3 matrices"),
])
def test_fields_that_do_not_go_together_are_refused(kind, more, message):
    with pytest.raises(CompileError, match=message):
        kind(**VALID[kind] | more)


@pytest.mark.parametrize("description", [
    Dense(rows=LARGEST, inputs=LARGEST, outputs=2, matrices=2),
    Conv2d(height=LARGEST, width=LARGEST, channels_in=64, channels_out=64),
    Conv2d(height=LARGEST, width=LARGEST, channels_in=1, channels_out=1, kernel=LARGEST // 2),
    Pool(kind="max", height=LARGEST, width=LARGEST, channels=1, kernel=3),
    Pool(kind="average", height=LARGEST, width=LARGEST, channels=1, kernel=3, pad=1),
    Transposed(height=LARGEST, width=LARGEST, channels_in=4, channels_out=4),
    Depthwise(height=LARGEST, width=LARGEST, channels_in=8, channels_out=8, kernel=9),
    Grouped(height=LARGEST, width=99, channels_in=LARGEST, channels_out=LARGEST, groups=LARGEST),
    Elementwise(operation="add", channels=LARGEST, height=LARGEST, width=LARGEST),
], ids=lambda description: description.operator)
def test_tensors_that_no_segment_holds_are_refused_before_compiling(description):
    with pytest.raises(CompileError, match=r"takes \d+ bytes in tiles, but a segment has at most"):
        compile_op(description, "base")
    if can_schedule(description):           # there would be more schedules than fit in memory
        assert not [*schedules_of(description, "base")]

SCARCE = {"uop_bytes": 16, "inp_bytes": 8, "wgt_bytes": 32, "acc_bytes": 64, "out_bytes": 8}


def complaint(spec, config):
    """Why an operator cannot be compiled; nothing if it can, and is safe."""
    try:
        verify(compile_op(spec, config).program)
    except CompileError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", VALID)
@pytest.mark.parametrize("name", SCARCE)
def test_the_scratchpad_that_is_too_small_is_named(kind, name):
    """With the least that a configuration may have, an operator compiles or says what it lacks."""
    found = complaint(kind(**VALID[kind]), replace(tiny, **{name: SCARCE[name], "acc_banks": 1}))
    assert not found or re.search(rf"{name} is {SCARCE[name]}\b.* but must be \d+ or more", found)


@dataclass(frozen=True, kw_only=True)
class Mine(Conv2d):
    """A convolution that means something else."""

    operator: ClassVar[str] = "mine"


def test_a_subclass_is_another_operator_until_it_is_registered():
    spec = Mine(**VALID[Conv2d])
    with pytest.raises(CompileError, match=r"Mine is not an operator \(a subclass needs a "
                                           r"registration of its own\); there are Conv2d, "):
        compile_op(spec, tiny)
    known = operator_of(Conv2d(**VALID[Conv2d]))
    try:
        register(Operator(description=Mine, forms=known.forms, template=known.template))
        assert len(compile_op(spec, tiny).program.code)
        with pytest.raises(CompileError, match="there is an operator 'mine' already"):
            register(OPERATORS[Mine])
    finally:
        OPERATORS.pop(Mine, None)


@pytest.mark.parametrize("spec", [3, None, "conv2d", Conv2d, tiny])
def test_what_is_no_description_is_refused_by_name(spec):
    with pytest.raises(CompileError, match=f"{type(spec).__name__} is not an operator; there are"):
        compile_op(spec, tiny)


LAYER = Dense(**VALID[Dense])


@pytest.mark.parametrize(("options", "message"), [
    ({"config": "huge"}, "configuration 'huge' is neither a preset"),
    ({"config": None}, "config is None"),
    ({"hide_latency": "no"}, "hide_latency is 'no', but must be a bool"),
    ({"memory": "slow"}, "memory is 'slow', but must be a MemoryTiming"),
    ({"cost": 3}, "cost is 3, but must be a function of a program"),
    ({"knobs": {"rows": 1}}, r"knobs are {'rows': 1}, but must be a dense_schedule.Knobs"),
    ({"form": LAYER}, "form is Dense.*, but must be a Form"),
])
def test_wrong_options_are_refused(options, message):
    with pytest.raises(MicrotronError, match=message):
        compile_op(LAYER, **{"config": tiny} | options)


def test_a_misspelt_option_is_an_error():
    for function in (compile_op, microtron.compile_op):
        with pytest.raises(TypeError, match="hide_latncy"):
            function(LAYER, tiny, hide_latncy=False)


def test_a_configuration_may_be_named():
    assert compile_op(LAYER, "tiny").program.config == tiny
    assert bound_of(LAYER, "tiny") == bound_of(LAYER, tiny, MemoryTiming())


def test_rounding_is_that_of_the_operator_that_is_meant():
    assert Dense(**VALID[Dense]).rounding == Rounding.AWAY         # FULLY_CONNECTED
    product = batch_matmul(**VALID[Dense], matrices=2, zero_point_in=3)
    assert (product.rounding, product.constant_weights) == (Rounding.TWICE, False)
    # 136.49999: rounded once it is 136, but BATCH_MATMUL rounds 136.5 up on the way.
    kernel = microtron.compile_op(batch_matmul(rows=1, inputs=1, outputs=1), tiny)
    given = {"data": [[0]], "weights": [[0]], "bias": 323968, "multiplier": 1853063559}
    assert kernel.run({**given, "shift": 43})[0][0, 0] == scale(323968, 1853063559, 43, 0)
    assert scale(323968, 1853063559, 42, Rounding.TWICE) == 137
    assert scale(323968, 1853063559, 42, Rounding.AWAY) == 136


def test_required_fields_are_those_without_a_default():
    for kind, valid in VALID.items():
        required = {each.name for each in fields(kind) if each.default is MISSING}
        assert required == set(valid)
        for name in required:
            with pytest.raises(TypeError, match=name):
                kind(**{key: value for key, value in valid.items() if key != name})


def test_refusals_are_errors_of_this_project():
    assert issubclass(CompileError, MicrotronError)
