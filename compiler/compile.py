"""One way to compile any operator: a description says which it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..isa.config import Config
from .errors import CompileError
from .operators.build import compile_conv2d
from .operators.build_convolutions import (
    compile_depthwise,
    compile_first_layer,
    compile_grouped,
    compile_transposed,
)
from .operators.build_other import compile_dense, compile_elementwise, compile_pool
from .operators.conv2d import Conv2d
from .operators.dense import Dense
from .operators.depthwise import Depthwise
from .operators.elementwise import Elementwise
from .operators.first_layer import default_fold, folded
from .operators.grouped import Grouped
from .operators.pool import Pool
from .operators.transposed import Transposed

# The more special first: a depthwise convolution is a convolution too.
COMPILERS: dict[type[Any], Callable[..., Any]] = {
    Depthwise: compile_depthwise, Grouped: compile_grouped,
    Transposed: compile_transposed, Dense: compile_dense, Elementwise: compile_elementwise,
    Pool: compile_pool}


def compile_op(spec: Any, config: Config, **options: Any) -> Any:
    """The kernel of an operator on a configuration: its `program`, its `nest` and the `knobs` that
    were chosen.

        compile_op(Conv2d(height=56, width=56, channels_in=64, channels_out=64, pad=(1, 1, 1, 1)),
                   base).program

    Options are those of the operator's own function, such as `knobs`, and of `choice.Options`: with
    a `cost`, the knobs are the fastest of a few that were timed. A convolution of few channels is
    compiled as a first layer where folding taps into channels pays.
    """
    for kind, function in COMPILERS.items():
        if isinstance(spec, kind):
            return function(spec, config, **options)
    if isinstance(spec, Conv2d):
        fold = default_fold(spec, config)
        if folded(spec, fold) != spec and "knobs" not in options:
            return compile_first_layer(spec, config, fold=fold, **options)
        return compile_conv2d(spec, config, **options)
    kinds: list[type[Any]] = [Conv2d, *COMPILERS]
    known = ", ".join(each.__name__ for each in kinds)
    raise CompileError(f"{type(spec).__name__} is not an operator; there are {known}")
