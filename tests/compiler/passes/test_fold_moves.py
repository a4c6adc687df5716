"""Moves of channels and pixels become part of the convolution beside them, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.blocks import SpaceToDepth
from microtron.compiler.graph.operations.data_movement.indexing import Gather, Tile
from microtron.compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.remove_dead import remove_dead
from microtron.compiler.passes.windows.fold_moves import fold_moves
from microtron.compiler.passes.windows.moves_as_windows import moves_as_windows
from microtron.isa.instructions import Rounding

from .checks import changed, kinds

KNOWN = Quantization((0.5,), (-7,))


class Moves:
    """Moves of an image with channels on an axis, one after the other."""

    def __init__(self, shape, axis, seed=0):
        self.axis, self.rng, self.made = axis, np.random.default_rng(seed), Builder()
        self.rows = 2 if axis == 1 else 1
        order = shape if axis == 1 else (shape[0], *shape[2:], shape[1])
        self.made.input("x", TensorType(order, "int8", KNOWN))
        self.last = self.put("pool", Pool(x="x", kind=PoolKind.MAX, kernel=(1, 1),
                                          channel_axis=axis, low=-100))

    @property
    def shape(self):
        return self.made.graph((self.last,)).type_of(self.last).shape

    def put(self, name, operation):
        self.last = self.made.add(name, operation, dtype="int8", quantization=KNOWN)
        return self.last

    def cut(self, name, x, starts, steps, counts=(None, None, None)):
        """A slice, by channel, row and column."""
        axes = (self.axis, self.rows, self.rows + 1)
        full = self.made.graph((x,)).type_of(x).shape
        first, last, by = [0] * 4, list(full), [1] * 4
        for axis, start, step, count in zip(axes, starts, steps, counts, strict=True):
            first[axis], by[axis] = start, step
            if count is not None:
                last[axis] = start + (count - 1) * step + 1
        return self.put(name, Slice(x=x, starts=tuple(first), stops=tuple(last), steps=tuple(by)))

    def shuffle(self, name, groups):
        before, x = self.shape, self.last
        depth = before[self.axis]
        parts = (groups, depth // groups)
        shape = (*before[:self.axis], *parts, *before[self.axis + 1:])
        order = list(range(5))
        order[self.axis], order[self.axis + 1] = self.axis + 1, self.axis
        x = self.put(f"{name}.groups", Reshape(x=x, shape=shape))
        x = self.put(f"{name}.exchanged", Transpose(x=x, order=tuple(order)))
        return self.put(name, Reshape(x=x, shape=before))

    def conv(self, name="y", outputs=5, kernel=(3, 3), quantization=None, **settings):
        depth = self.shape[self.axis] // settings.get("groups", 1)
        weights = self.made.constant(f"{name}.w", self.rng.integers(
            -60, 60, (outputs, depth, *kernel)).astype(np.int8), quantization or Quantization(
            tuple(self.rng.uniform(0.1, 1, outputs)), (0,) * outputs, 0))
        bias = self.made.constant(f"{name}.b", self.rng.integers(-99, 99, outputs).astype(np.int32))
        return self.put(name, Conv(
            x=self.last, weights=weights, bias=bias, channel_axis=self.axis, rounding=Rounding.EVEN,
            scales=tuple(self.rng.uniform(0.001, 0.02, outputs)), **settings))

    def folded(self, outputs=("y",)):
        return remove_dead(changed(fold_moves, self.made.graph(outputs)))


def focus(moves, order=((0, 0), (1, 0), (0, 1), (1, 1))):
    """Every second row and column, as channels."""
    x = moves.last
    parts = [moves.cut(f"p{number}", x, (0, *each), (1, 2, 2))
             for number, each in enumerate(order)]
    return moves.put("joined", Concat(parts=tuple(parts), axis=moves.axis))


def blocks(moves):
    return moves.put("blocks", SpaceToDepth(x=moves.last, block=2, channel_axis=moves.axis))


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("move", [focus, blocks])
@pytest.mark.parametrize(("settings", "stride", "pad"), [
    ({"pad": (1, 1, 1, 1)}, (2, 2), (2, 2, 2, 2)),
    ({"pad": (0, 1, 0, 0), "stride": (2, 1)}, (4, 2), (0, 2, 0, 0)),
    ({"kernel": (1, 1)}, (2, 2), (0, 0, 0, 0))])
def test_blocks_are_read_with_a_stride(axis, move, settings, stride, pad):
    moves = Moves((2, 3, 8, 10), axis)
    move(moves)
    moves.conv(**settings)
    found = moves.folded()
    conv = found.nodes["y"].operation
    assert kinds(found) == ["Pool", "Conv"]
    assert (conv.x, conv.stride, conv.pad) == ("pool", stride, pad)
    sides = settings.get("kernel", (3, 3))
    assert found.constants[conv.weights].array.shape == (5, 3, 2 * sides[0], 2 * sides[1])


@pytest.mark.parametrize("axis", [1, 3])
def test_shuffled_channels_are_weights_in_another_order(axis):
    moves = Moves((1, 6, 4, 5), axis)
    moves.shuffle("shuffled", 3)
    moves.conv(pad=(1, 1, 1, 1), dilation=(2, 2))
    assert kinds(moves.folded()) == ["Pool", "Conv"]
    moves = Moves((1, 6, 4, 5), axis)
    moves.conv("before", outputs=6)
    moves.shuffle("y", 2)
    assert kinds(moves.folded()) == ["Pool", "Conv"]


def test_what_else_reads_the_convolution_keeps_its_channels():
    moves = Moves((1, 6, 4, 5), 1)
    moves.conv("before", outputs=6)
    moves.shuffle("y", 2)
    assert kinds(moves.folded(("y", "before"))) == ["Pool", "Conv", "Reshape", "Transpose",
                                                    "Reshape"]


def test_moves_that_others_need_anyway_are_not_made_twice():
    moves = Moves((1, 6, 4, 5), 1)
    moves.shuffle("shuffled", 2)
    moves.cut("some", "shuffled", (0, 0, 0), (1, 1, 1), (3, None, None))
    moves.conv(outputs=2, kernel=(1, 1))
    assert kinds(moves.folded()) == ["Pool", "Conv"]
    assert kinds(moves.folded(("y", "shuffled")))[-2:] == ["Slice", "Conv"]


def test_sums_of_32_bits_are_folded_too():
    moves = Moves((1, 3, 8, 8), 1)
    blocks(moves)
    weights = moves.made.constant("w", np.ones((4, 12, 1, 1), np.int8), Quantization((1.0,)))
    moves.made.add("y", Conv(x="blocks", weights=weights, channel_axis=1))
    assert kinds(moves.folded()) == ["Pool", "Conv"]


def test_some_channels_in_a_row_are_left_to_addressing():
    moves = Moves((1, 32, 4, 5), 1)
    moves.cut("some", "pool", (16, 0, 0), (1, 1, 1))
    moves.conv()
    assert kinds(moves.folded()) == ["Pool", "Slice", "Conv"]


@pytest.mark.parametrize("change", [
    {"quantization": Quantization((1.0,), (3,))},       # no weight stands for zero as it is
    {"groups": 2, "outputs": 4}])
def test_other_convolutions_stay(change):
    moves = Moves((1, 6, 4, 5), 1)
    moves.shuffle("shuffled", 3)
    moves.conv(**change)
    assert kinds(moves.folded())[1:] == ["Reshape", "Transpose", "Reshape", "Conv"]


def test_a_border_of_numbers_that_were_cut_off_stays():
    moves = Moves((1, 6, 8, 8), 1)
    moves.cut("some", "pool", (0, 1, 0), (1, 1, 2), (None, 4, None))
    moves.conv(pad=(1, 0, 0, 0))
    assert kinds(moves.folded()) == ["Pool", "Slice", "Conv"]


def test_channels_that_are_repeated_meet_in_weights_of_8_bits():
    moves = Moves((1, 6, 4, 5), 1)
    moves.put("twice", Tile(x="pool", repeats=(1, 2, 1, 1)))
    moves.conv()
    assert kinds(moves.folded()) in (["Pool", "Conv"], ["Pool", "Tile", "Conv"])


def draw_move(moves, name):
    rng, (high, wide) = moves.rng, moves.shape[moves.rows:moves.rows + 2]
    depth, x = moves.shape[moves.axis], moves.last
    kind = rng.choice(["cut", "shuffle", "blocks", "gather", "tile", "pad", "focus", "border"])
    if kind == "cut":
        steps = rng.integers(1, 4, 3)
        starts = [int(rng.integers(0, max(1, size // 2))) for size in (depth, high, wide)]
        counts = [int(rng.integers(1, (size - start - 1) // step + 2)) for size, start, step in zip(
            (depth, high, wide), starts, steps, strict=True)]
        moves.cut(name, x, starts, [int(each) for each in steps], counts)
    elif kind == "shuffle" and depth % 2 == 0:
        moves.shuffle(name, 2)
    elif kind == "blocks" and high % 2 == 0 == wide % 2:
        moves.put(name, SpaceToDepth(x=x, block=2, channel_axis=moves.axis))
    elif kind == "gather":
        chosen = moves.made.constant(f"{name}.i", rng.integers(0, depth, 4))
        moves.put(name, Gather(x=x, indices=chosen, axis=moves.axis))
    elif kind == "tile" and depth < 20:
        moves.put(name, Tile(x=x, repeats=tuple(2 if each == moves.axis else 1
                                                for each in range(4))))
    elif kind in ("pad", "border"):
        before, after = ([0] * 4 for _ in range(2))
        for axis in (moves.axis,) if kind == "pad" else (moves.rows, moves.rows + 1):
            before[axis], after[axis] = (int(each) for each in rng.integers(0, 3, 2))
        moves.put(name, Pad(x=x, before=tuple(before), after=tuple(after), value=-7))
    elif kind == "focus" and high % 2 == 0 == wide % 2:
        parts = [moves.cut(f"{name}.{each}", x, (0, *each), (1, 2, 2))
                 for each in ((0, 0), (1, 0), (0, 1), (1, 1))]
        moves.put(name, Concat(parts=tuple(parts), axis=moves.axis))


def random_moves(seed):
    rng = np.random.default_rng(seed)
    shape = (*rng.integers(1, (3, 9)).tolist(), *rng.integers(4, 13, 2).tolist())
    moves = Moves(shape, int(rng.choice([1, 3])), seed)
    for number in range(int(rng.integers(1, 4))):
        draw_move(moves, f"m{number}")
    high, wide = moves.shape[moves.rows:moves.rows + 2]
    kernel = [int(rng.integers(1, min(4, size + 1))) for size in (high, wide)]
    if rng.random() < 0.2:
        moves.conv("before", outputs=4, kernel=(1, 1))
        draw_move(moves, "m9")
        return moves, (moves.last,)
    pad = tuple(int(each) for each in rng.integers(0, 2, 4))
    moves.conv(kernel=tuple(kernel), pad=pad, stride=tuple(rng.integers(1, 3, 2).tolist()))
    return moves, ("y",)


def test_random_moves_are_folded_exactly():
    folded = 0
    for seed in (*range(60), 107):          # the last has a window that begins between its taps
        moves, outputs = random_moves(seed)
        graph = moves.made.graph(outputs)
        found = remove_dead(changed(fold_moves, graph))
        folded += len(found.nodes) < len(remove_dead(graph).nodes)
        changed(moves_as_windows, graph)
    assert folded > 15
