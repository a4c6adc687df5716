"""Any operator is compiled by one function, which its description chooses."""

import pytest

import microtron
from microtron.compiler.errors import CompileError
from microtron.compiler.operators.conv2d import Conv2d
from microtron.compiler.operators.dense import Dense
from microtron.compiler.operators.depthwise import Depthwise
from microtron.isa.config import base, tiny
from microtron.isa.verifier import verify


@pytest.mark.parametrize("spec", [
    Conv2d(height=5, width=5, channels_in=8, channels_out=8, pad=(1, 1, 1, 1)),
    Dense(rows=3, inputs=10, outputs=6),
    Depthwise(height=5, width=5, channels_in=6, channels_out=6, pad=(1, 1, 1, 1)),
], ids=lambda spec: type(spec).__name__)
def test_a_description_becomes_a_verified_program(spec):
    verify(microtron.compile_op(spec, tiny).program)


def test_a_convolution_of_few_channels_is_folded_where_that_pays():
    image = Conv2d(height=32, width=32, channels_in=3, channels_out=16, pad=(1, 1, 1, 1))
    assert hasattr(microtron.compile_op(image, base), "fold")
    deep = Conv2d(height=8, width=8, channels_in=32, channels_out=16, pad=(1, 1, 1, 1))
    assert not hasattr(microtron.compile_op(deep, base), "fold")


def test_what_is_no_operator_is_refused_by_name():
    with pytest.raises(CompileError, match="int is not an operator; there are Conv2d, Depthwise"):
        microtron.compile_op(3, tiny)
