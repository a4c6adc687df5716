"""Images in another size."""

from __future__ import annotations

from math import floor, isfinite

from .....graph.operations.vision.resize import Coordinates, Nearest, Resize, ResizeKind
from .....graph.types import GraphError
from ...call import Call
from ...operator_table import operator
from ..data_movement import axes_of
from .resize_matrices import Filter, give_resized

KINDS = {"nearest": ResizeKind.NEAREST, "linear": ResizeKind.LINEAR, "cubic": ResizeKind.CUBIC}
CROP = "tf_crop_and_resize"
MODERN = 11                 # the opset from which on a node says where pixels lie


@operator("Upsample", "mode scales", until=9)
def upsample(call: Call) -> None:
    ratios = call.reals("scales") or tuple(call.array(1, "scales").ravel().tolist())
    operation = _resize(call, ratios, None, Coordinates.ASYMMETRIC, Nearest.FLOOR)
    call.give_moved(operation, operation.x)


@operator("Resize", "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
          "extrapolation_value keep_aspect_ratio_policy mode nearest_mode")
def resize(call: Call) -> None:
    modern = call.opset >= MODERN
    mode = call.text("coordinate_transformation_mode", "half_pixel" if modern else "asymmetric",
                     f"{CROP} {' '.join(each.value for each in Coordinates)}")
    coordinates = Coordinates.ALIGN_CORNERS if mode == CROP else Coordinates(mode)
    nearest = Nearest(call.text("nearest_mode", "round_prefer_floor" if modern else "floor",
                                " ".join(each.value for each in Nearest)))
    place = 2 if modern else 1
    ratios = tuple(call.array(place, "scales").ravel().tolist()) if call.has(place) else ()
    sizes = call.integers(3, "sizes") if call.has(3) else None
    chosen = Filter(antialias=call.flag("antialias"), exclude_outside=call.flag("exclude_outside"),
                    region=_region(call) if mode == CROP else (),
                    outside=call.real("extrapolation_value", 0))
    operation = _resize(call, ratios, sizes, coordinates, nearest)
    if chosen.antialias or chosen.exclude_outside or chosen.region:
        give_resized(call, operation, chosen)
    else:
        call.give_moved(operation, operation.x)


def _axes(call: Call, rank: int) -> tuple[int, ...]:
    """The axes that sizes, scales and regions are about."""
    axes = axes_of(call, 9, rank) or tuple(range(rank))
    if len(set(axes)) != len(axes):
        raise GraphError(f"axes are {axes}, but each may be named once")
    return axes


def _region(call: Call) -> tuple[tuple[float, float], ...]:
    """The part of each axis that is left: starts, then ends."""
    rank = len(call.type(0).shape)
    axes, given = _axes(call, rank), call.array(1, "the region").ravel().tolist()
    if len(given) != 2 * len(axes) or not all(map(isfinite, given)):
        raise GraphError(f"the region is {given}, but must be {2 * len(axes)} numbers")
    found = [(0.0, 1.0)] * rank
    for place, axis in enumerate(axes):
        found[axis] = given[place], given[place + len(axes)]
    return tuple(found)


def _resize(call: Call, ratios: tuple[float, ...], sizes: tuple[int, ...] | None,
            coordinates: Coordinates, nearest: Nearest) -> Resize:
    x, shape = call.tensor(0), list(call.type(0).shape)
    axes = _axes(call, len(shape))
    given = sizes if sizes else ratios
    if len(given) != len(axes) or not all(isfinite(each) and each > 0 for each in given):
        raise GraphError(f"scales or sizes are {given}, but must be {len(axes)} numbers above zero")
    policy = call.text("keep_aspect_ratio_policy", "stretch", "stretch not_larger not_smaller")
    factors = [1.0] * len(shape)
    for axis, each in zip(axes, given, strict=True):
        factors[axis] = each / max(shape[axis], 1) if sizes else each
    if sizes and policy != "stretch":
        one = (min if policy == "not_larger" else max)(factors[axis] for axis in axes)
        for axis in axes:
            factors[axis], shape[axis] = one, floor(shape[axis] * one + 0.5)
    else:
        for axis, each in zip(axes, given, strict=True):
            shape[axis] = int(each) if sizes else floor(shape[axis] * each)
    mode = call.text("mode", "nearest", " ".join(KINDS))
    return Resize(x=x, shape=tuple(shape), kind=KINDS[mode], coordinates=coordinates,
                  nearest=nearest, cubic=call.real("cubic_coeff_a", -0.75),
                  ratios=() if sizes and policy == "stretch" else tuple(factors))
