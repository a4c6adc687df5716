"""Shapes of operators to try: any, leaning on corners, and the corners that are always tried."""

from __future__ import annotations

from hypothesis import reject
from hypothesis import strategies as st

from microtron.compiler.errors import CompileError
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.first_layer import Fold, folded_forms
from microtron.compiler.operators.convolution.residual import ResidualConv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense
from microtron.compiler.operators.depthwise.conv_separable import ConvSeparable
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.depthwise.separable import Separable
from microtron.compiler.operators.depthwise.upsample import Upsample
from microtron.compiler.operators.elementwise.broadcast import Broadcast
from microtron.compiler.operators.elementwise.elementwise import EXTREMES, Elementwise, Operation
from microtron.compiler.operators.pool.conv_global_average import AveragedConv2d
from microtron.compiler.operators.pool.pool import Kind, Pool, global_average
from microtron.isa.instructions import Rounding

BYTES = st.integers(-128, 127)
SCALES = st.sampled_from((1.0, 0.5, 0.013)) | st.floats(0.01, 3.0)


def either(corners, most):
    return st.sampled_from(corners) | st.integers(min(corners), most)


@st.composite
def specs(draw, operator, **fields):
    """A description whose fields are drawn, if there is such an operator."""
    low, high = sorted((draw(st.just(-128) | BYTES), draw(st.just(127) | BYTES)))
    drawn = {name: draw(each) if isinstance(each, st.SearchStrategy) else each
             for name, each in fields.items()}
    if drawn.get("wide"):
        drawn |= {"zero_point_out": 0, "low": -128, "high": 127}
    try:
        return operator(**{"zero_point_out": draw(st.just(0) | BYTES), "low": low, "high": high,
                           "rounding": draw(st.sampled_from(Rounding))} | drawn)
    except CompileError:        # a window reaches over more than there is
        reject()


def pairs(*values):
    return st.tuples(st.sampled_from(values), st.sampled_from(values))


WINDOW = {
    "height": either((1, 2, 7), 10), "width": either((1, 3, 8), 11),
    "kernel": st.tuples(either((3, 1), 4), either((3, 1), 5)), "stride": pairs(1, 1, 2, 5),
    "dilation": pairs(1, 1, 2, 3), "pad": st.tuples(*(either((0, 1), 5) for _ in range(4))),
    "images": st.sampled_from((1, 1, 2, 4)),
}
CHANNELS = {"channels_in": either((1, 3, 4, 17), 18), "channels_out": either((1, 3, 8, 17), 18)}
ZERO_POINT = {"zero_point_in": st.just(0) | BYTES}


@st.composite
def multiples(draw, operator, name, **fields):
    """Convolutions whose channels are multiples of a number, which is the field `name`."""
    groups = draw(st.sampled_from((1, 2, 3, 5)))
    wide = {"channels_in": groups * (draw(st.integers(1, 5)) if name else 1),
            "channels_out": groups * draw(st.integers(1, 5))}
    return draw(specs(operator, **wide, **({name: groups} if name else {}), **fields))


@st.composite
def pools(draw, **fields):
    """Pools whose border is narrower than their window: no window lies in the border alone."""
    window = {name: draw(each) for name, each in WINDOW.items()}
    reach = [(taps - 1) * step for taps, step in zip(window["kernel"], window["dilation"],
                                                     strict=True)]
    pad = tuple(min(border, reach[side // 2]) for side, border in enumerate(window["pad"]))
    return draw(specs(Pool, channels=either((1, 3, 17), 18), **fields, **window | {"pad": pad}))


@st.composite
def averages(draw):
    """Averages that keep the scale, and some that change it."""
    scale_in, scale_out = draw(st.sampled_from(((1.0, 1.0), (0.3, 0.2), (0.02, 0.05))))
    return draw(pools(kind=Kind.AVERAGE, count_include_pad=st.booleans(), scale_in=scale_in,
                      scale_out=scale_out, **ZERO_POINT))


@st.composite
def averaged(draw):
    """Convolutions whose image is averaged, with the scale that it has or another."""
    scale_conv, scale_out = draw(st.sampled_from(((1.0, 1.0), (0.3, 0.2), (0.02, 0.05))))
    return draw(specs(AveragedConv2d, **WINDOW, **CHANNELS, **ZERO_POINT, scale_conv=scale_conv,
                      scale_out=scale_out, zero_point_conv=BYTES, zero_point_average=BYTES,
                      low_conv=st.sampled_from((-128, -20)), high_conv=st.sampled_from((127, 60)),
                      rounding_conv=st.sampled_from(Rounding)))


@st.composite
def element_wise(draw, operator, operation):
    """Operations of two tensors; a minimum or a maximum has one scale and zero point."""
    scales = {"scale_left": SCALES, "scale_right": SCALES, "scale_out": SCALES,
              "zero_point_left": BYTES, "zero_point_right": st.just(0) | BYTES}
    if operation in EXTREMES:
        zero, scale = draw(BYTES), draw(SCALES)
        scales = {"scale_left": scale, "scale_right": scale, "scale_out": scale,
                  "zero_point_left": zero, "zero_point_right": zero, "zero_point_out": zero}
    return draw(specs(operator, operation=operation, channels=either((1, 3, 17), 20),
                      height=st.integers(1, 5), width=st.integers(1, 9),
                      images=st.sampled_from((1, 2, 4)), **scales))


ROWS = {"rows": either((1, 4), 20), "inputs": either((1, 3, 17), 40),
        "outputs": either((1, 3, 17), 40)}

# Every phase of a transposed convolution is compiled on its own: few have many.
PHASES = st.sampled_from(((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 2)))

PLANES = st.sampled_from((1, 1, 2))
WIDE = st.sampled_from((False, False, True))

# Operator → any of its shapes.
ANY = {
    "conv2d": specs(Conv2d, **WINDOW, **CHANNELS, **ZERO_POINT, planes=PLANES, wide=WIDE),
    "first layer": specs(Conv2d, **WINDOW | {"dilation": pairs(1, 2)}, **ZERO_POINT,
                         channels_in=st.integers(1, 3), channels_out=either((1, 17), 18),
                         planes=PLANES, wide=WIDE),
    "depthwise": multiples(Depthwise, "", **WINDOW, **ZERO_POINT, planes=PLANES, wide=WIDE),
    "residual": specs(ResidualConv2d, **WINDOW, **CHANNELS, **ZERO_POINT, scale_conv=SCALES,
                      scale_residual=SCALES, scale_out=SCALES, zero_point_conv=BYTES,
                      zero_point_residual=BYTES, low_conv=st.sampled_from((-128, -20)),
                      high_conv=st.sampled_from((127, 60))),
    "averaged": averaged(),
    "separable": multiples(Separable, "", **WINDOW, **ZERO_POINT, channels_mixed=either((0, 1), 18),
                           zero_point_between=BYTES, low_between=st.sampled_from((-128, -20)),
                           high_between=st.sampled_from((127, 60)),
                           rounding_between=st.sampled_from(Rounding)),
    "conv_separable": specs(
        ConvSeparable, **WINDOW | {"dilation": pairs(1, 2)}, **ZERO_POINT,
        channels_in=either((1, 3), 9), channels_out=either((1, 3, 8), 9),
        channels_mixed=either((0, 1), 18), window=st.tuples(either((3, 1), 4), either((3, 1), 4)),
        window_stride=pairs(1, 1, 2, 3), window_dilation=pairs(1, 1, 2),
        window_pad=st.tuples(*(either((0, 1), 3) for _ in range(4))),
        **{f"{name}_{which}": each for which in ("conv", "between") for name, each in {
            "zero_point": BYTES, "low": st.sampled_from((-128, -20)),
            "high": st.sampled_from((127, 60)), "rounding": st.sampled_from(Rounding)}.items()}),
    "grouped": multiples(Grouped, "groups", **WINDOW, **ZERO_POINT, wide=WIDE),
    "transposed": specs(Transposed, **WINDOW | {"stride": PHASES, "height": either((1, 2), 5),
                                                "width": either((1, 2), 5)},
                        **CHANNELS, **ZERO_POINT, output_padding=pairs(0, 0, 1)),
    "upsample": specs(Upsample, height=either((1, 2), 5), width=either((1, 2), 5),
                      channels=either((1, 3, 17), 18), images=st.sampled_from((1, 2)),
                      factors=st.sampled_from(((1, 2), (2, 1), (2, 2), (1, 3))),
                      centred=st.booleans(), **ZERO_POINT),
    "dense": specs(Dense, **ROWS, **ZERO_POINT, wide=WIDE),
    "matmul": specs(Dense, **ROWS, **ZERO_POINT, matrices=st.integers(1, 3),
                    constant_weights=False, zero_point_weights=st.just(0) | BYTES, wide=WIDE),
    "max pool": pools(kind=Kind.MAX, zero_point_out=0),
    "average pool": averages(),
    "global pool": st.builds(global_average, height=st.integers(1, 9), width=st.integers(1, 9),
                             channels=either((1, 3, 17), 18), images=st.sampled_from((1, 4))),
    **{operation.value: element_wise(Elementwise, operation) for operation in Operation},
    "broadcast": st.sampled_from([each for each in Operation if each != Operation.RESCALE]).flatmap(
        lambda operation: element_wise(Broadcast, operation)),
}


def _scales_of(operation):
    if operation in EXTREMES:
        return dict.fromkeys(("zero_point_left", "zero_point_right", "zero_point_out"), 5)
    return {"scale_left": 0.5, "scale_right": 0.3, "scale_out": 0.8, "zero_point_left": 5}


def form_for(operator, spec, config):
    """The form to take, unless it is the operator's own choice: a first layer is folded, whether
    it pays or not, if it has taps to fold."""
    if operator != "first layer" or spec.kernel == (1, 1):
        return None
    rows, columns = (min(taps, kernel) for taps, kernel in zip((2, 5), spec.kernel, strict=True))
    return folded_forms(spec, config, Fold(rows=rows, columns=columns))[0]


# Of every operator with windows: the fields that make the corner.
WINDOWS = {
    "1 × 1 spatial": {"height": 1, "width": 1, "kernel": (1, 1)},
    "kernel larger than the image": {"height": 3, "width": 2, "kernel": (5, 7),
                                     "pad": (2, 2, 3, 3)},
    "pads larger than the kernel": {"height": 4, "width": 3, "kernel": (2, 1),
                                    "pad": (4, 3, 2, 5)},
    "stride larger than the kernel": {"height": 7, "width": 9, "kernel": (2, 1),
                                      "stride": (3, 4)},
    "batch 4": {"height": 4, "width": 5, "images": 4, "pad": (1, 1, 1, 1)},
    **{f"{count} channels": {"height": 4, "width": 5, "pad": (1, 1, 1, 1), "channels": count}
       for count in (1, 3, 17)},
}
# A pool has no window that lies in its border alone, a transposed convolution cuts its border off.
POOLS = {"pads larger than the kernel": {"height": 4, "width": 5, "kernel": (2, 1),
                                         "stride": (3, 4), "pad": (0, 3, 0, 2)},
         "kernel larger than the image": {"height": 3, "width": 2, "kernel": (5, 3),
                                          "pad": (2, 2, 1, 1)}}
CUT = {"pads larger than the kernel": {"height": 9, "width": 8, "kernel": (2, 2),
                                       "pad": (6, 5, 4, 7)},
       "kernel larger than the image": {"height": 3, "width": 2, "kernel": (5, 7)},
       "stride larger than the kernel": {"height": 4, "width": 5, "kernel": (2, 1),
                                         "stride": (3, 2)}}
TENSORS = {
    "1 × 1 spatial": {"channels": 5}, "batch 4": {"channels": 5, "width": 3, "images": 4},
    **{f"{count} channels": {"channels": count, "height": 3, "width": 5} for count in (1, 3, 17)},
}
PRODUCTS = {
    "1 × 1 spatial": {"rows": 1, "inputs": 6, "outputs": 5},
    "batch 4": {"rows": 4, "inputs": 6, "outputs": 5},
    **{f"{count} channels": {"rows": 3, "inputs": count, "outputs": count}
       for count in (1, 3, 17)},
}


def _named(make, *tables):
    """The corners of an operator by name, made from their fields."""
    fields = {name: each for table in tables for name, each in table.items()}
    return {name: make({"channels": 5} | each) for name, each in fields.items()}


def _split(kind, groups, **more):
    """A convolution of equal channels on both sides. `groups` names the field of their number."""
    def make(fields):
        channels = fields.pop("channels")
        wide = {"channels_in": channels, "channels_out": channels, "zero_point_in": -7}
        return kind(**{"kernel": (3, 3)} | wide | ({groups: channels} if groups else {}) | more
                    | fields)
    return make


def _pool(kind):
    return lambda fields: Pool(**{"kind": kind, "kernel": (3, 3)} | fields)


def _product(**more):
    def make(fields):
        return Dense(**{name: each for name, each in fields.items() if name != "channels"} | more)
    return make


CORNERS = {
    "conv2d": _named(_split(Conv2d, ""), WINDOWS),
    "first layer": _named(_split(Conv2d, "", channels_in=3), WINDOWS),
    "depthwise": _named(_split(Depthwise, ""), WINDOWS),
    "residual": _named(_split(ResidualConv2d, "", scale_conv=0.5, scale_residual=0.3,
                              scale_out=0.8, zero_point_conv=5, low_conv=5), WINDOWS),
    "averaged": _named(_split(AveragedConv2d, "", zero_point_conv=5, low_conv=5,
                              zero_point_average=5, rounding="even"), WINDOWS),
    "separable": _named(_split(Separable, "", zero_point_between=5, low_between=5,
                               channels_mixed=7), WINDOWS),
    "conv_separable": _named(_split(ConvSeparable, "", channels_in=3, zero_point_conv=5, low_conv=5,
                                    window_pad=1, channels_mixed=7), WINDOWS),
    "grouped": _named(_split(Grouped, "groups"), WINDOWS),
    "transposed": _named(_split(Transposed, ""), WINDOWS, CUT),
    "upsample": _named(lambda fields: Upsample(**{"height": 1, "width": 1, "zero_point_in": -7}
                                               | fields), TENSORS),
    "dense": _named(_product(zero_point_in=9), PRODUCTS),
    "matmul": _named(_product(zero_point_in=9, zero_point_weights=-5, constant_weights=False,
                              matrices=2), PRODUCTS),
    "max pool": _named(_pool(Kind.MAX), WINDOWS, POOLS),
    "average pool": _named(_pool(Kind.AVERAGE), WINDOWS, POOLS),
    "global pool": _named(lambda fields: global_average(**{"height": 1, "width": 1} | fields),
                          TENSORS),
    **{operation.value: _named(lambda fields, which=operation: Elementwise(
        operation=which, **_scales_of(which), **fields), TENSORS) for operation in Operation},
    "broadcast": _named(lambda fields: Broadcast(
        operation=Operation.MUL, **_scales_of(Operation.MUL), **fields), TENSORS),
}
