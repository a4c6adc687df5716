"""Images in another size."""

from __future__ import annotations

from math import floor, isfinite

from ...graph.operations.resize import Coordinates, Nearest, Resize, ResizeKind
from ...graph.types import GraphError
from .call import Call
from .moves import axes_of
from .table import operator

KINDS = {"nearest": ResizeKind.NEAREST, "linear": ResizeKind.LINEAR, "cubic": ResizeKind.CUBIC}
MODERN = 11                 # the opset from which on a node says where pixels lie


@operator("Upsample", "mode scales", until=9)
def upsample(call: Call) -> None:
    ratios = call.reals("scales") or tuple(call.array(1, "scales").ravel().tolist())
    _resize(call, ratios, None, Coordinates.ASYMMETRIC, Nearest.FLOOR)


@operator("Resize", "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
          "extrapolation_value keep_aspect_ratio_policy mode nearest_mode")
def resize(call: Call) -> None:
    if call.flag("antialias") or call.flag("exclude_outside") or call.text(
            "keep_aspect_ratio_policy", "stretch") != "stretch":
        raise GraphError("antialias, exclude_outside and keep_aspect_ratio_policy are not "
                         "supported")
    modern = call.opset >= MODERN
    coordinates = Coordinates(call.text(
        "coordinate_transformation_mode", "half_pixel" if modern else "asymmetric",
        " ".join(each.value for each in Coordinates)))
    nearest = Nearest(call.text("nearest_mode", "round_prefer_floor" if modern else "floor",
                                " ".join(each.value for each in Nearest)))
    place = 2 if modern else 1
    ratios = tuple(call.array(place, "scales").ravel().tolist()) if call.has(place) else ()
    sizes = call.integers(3, "sizes") if call.has(3) else None
    _resize(call, ratios, sizes, coordinates, nearest)


def _resize(call: Call, ratios: tuple[float, ...], sizes: tuple[int, ...] | None,
            coordinates: Coordinates, nearest: Nearest) -> None:
    x, shape = call.tensor(0), list(call.type(0).shape)
    axes = axes_of(call, 9, len(shape)) or tuple(range(len(shape)))
    given = sizes if sizes else ratios
    if len(given) != len(axes) or not all(isfinite(each) and each > 0 for each in given):
        raise GraphError(f"scales or sizes are {given}, but must be {len(axes)} numbers above zero")
    factors = [1.0] * len(shape)
    for axis, each in zip(axes, given, strict=True):
        factors[axis] = each / max(shape[axis], 1) if sizes else each
        shape[axis] = int(each) if sizes else floor(shape[axis] * each)
    mode = call.text("mode", "nearest", " ".join(KINDS))
    call.kept(Resize(x=x, shape=tuple(shape), kind=KINDS[mode], coordinates=coordinates,
                     nearest=nearest, ratios=() if sizes else tuple(factors),
                     cubic=call.real("cubic_coeff_a", -0.75)), x)
