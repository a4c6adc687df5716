"""Shortcuts made of slices and borders become windows, exactly."""

from __future__ import annotations

import pytest

from microtron.compiler.graph.graph import Builder
from microtron.compiler.graph.operations.quantize import Rescale
from microtron.compiler.graph.operations.shape import Pad, PadMode, Slice
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.moves_as_windows import moves_as_windows
from microtron.compiler.passes.remove_dead import remove_dead
from microtron.isa.instructions import Rounding

from .checks import changed, kinds

KNOWN = Quantization((0.5,), (-7,))
AFTER = Quantization((0.3,), (12,))


def shortcut(axis, *, rescale=False, value=-7, outputs=("y",), mode=PadMode.CONSTANT):
    """Every second pixel with more channels, and perhaps another scale."""
    shape = [2, 5, 7, 6]
    builder = Builder()
    builder.input("x", TensorType(tuple(shape), "int8", KNOWN))
    steps = tuple(1 if each in (0, axis) else 2 for each in range(4))
    before, after = ([0] * 4 for _ in range(2))
    before[axis], after[axis] = 2, 1
    builder.add("s", Slice(x="x", starts=(0,) * 4, stops=tuple(shape), steps=steps),
                quantization=KNOWN)
    builder.add("p" if rescale else "y", Pad(x="s", before=tuple(before), after=tuple(after),
                                             value=value, mode=mode), quantization=KNOWN)
    if rescale:
        builder.add("y", Rescale(x="p", rounding=Rounding.EVEN, high=100), dtype="int8",
                    quantization=AFTER)
    return builder.graph(outputs)


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("rescale", [False, True])
def test_a_shortcut_is_a_convolution(axis, rescale):
    found = remove_dead(changed(moves_as_windows, shortcut(axis, rescale=rescale)))
    [node] = found.nodes.values()
    assert (node.operation.x, node.operation.stride) == ("x", (2, 2))
    assert found.constants[node.operation.weights].array.sum() == (5, 6)[axis == 3]


def test_what_others_read_stays():
    found = remove_dead(changed(moves_as_windows, shortcut(1, rescale=True,
                                                           outputs=("y", "p", "s"))))
    assert kinds(found) == ["Pool", "Conv", "Rescale"]


@pytest.mark.parametrize("options", [{"value": 0}, {"mode": PadMode.EDGE}, {"axis": 2}])
def test_a_border_of_something_else_stays(options):
    found = changed(moves_as_windows, shortcut(**{"axis": 1, **options}))
    assert kinds(found)[-1] == "Pad"


@pytest.mark.parametrize(("starts", "stops", "steps"), [
    ((0, 0, 1, 0), (2, 5, 7, 6), (1, 1, 2, 1)), ((0, 0, 0, 0), (2, 4, 7, 6), (1, 1, 2, 1)),
    ((0, 0, 0, 0), (2, 5, 5, 6), (1, 1, 2, 1)), ((0, 0, 6, 0), (2, 5, -1, 6), (1, 1, -1, 1)),
    ((0, 0, 0, 0), (2, 5, 7, 6), (2, 1, 2, 1)), ((0, 0, 0, 0), (2, 5, 7, 6), (1, 2, 2, 2))])
def test_other_slices_stay(starts, stops, steps):
    builder = Builder()
    builder.input("x", TensorType((2, 5, 7, 6), "int8", KNOWN))
    builder.add("y", Slice(x="x", starts=starts, stops=stops, steps=steps), quantization=KNOWN)
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Slice"]


def test_real_numbers_stay():
    builder = Builder()
    builder.input("x", TensorType((2, 5, 7, 6), "float32"))
    builder.add("s", Slice(x="x", starts=(0,) * 4, stops=(2, 5, 7, 6), steps=(1, 1, 2, 2)))
    builder.add("y", Pad(x="s", before=(0, 1, 0, 0), after=(0, 0, 0, 0)))
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Slice", "Pad"]
