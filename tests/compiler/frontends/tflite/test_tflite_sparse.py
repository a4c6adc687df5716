"""Sparse constants of TFLite files: what DENSIFY makes of them, and trees that make no sense."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.frontends.tflite import read_tflite
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.types import GraphError

from .tflite_files import Operator, Sparsity, Tensor, file_of, reference


def sparse(dense: np.ndarray, order: list[int], dense_levels: set[int],
           blocks: dict[int, int], vector: str) -> tuple[np.ndarray, Sparsity]:
    """A tensor as a tree: levels in `order`, of which some are dense; `blocks` are sizes by axis.
    Axes of blocks come after the others."""
    axes, mapped = dense.ndim, list(blocks)
    sizes = [extent // blocks.get(axis, 1) for axis, extent in enumerate(dense.shape)]
    split = dense.reshape([part for axis, extent in enumerate(sizes)
                           for part in (extent, *([blocks[axis]] if axis in blocks else []))])
    places = {}                 # of axes, and of axes inside blocks
    place = 0
    for axis in range(axes):
        places[axis], place = place, place + 1
        if axis in blocks:
            places[axes + mapped.index(axis)], place = place, place + 1
    tree = split.transpose([places[axis] for axis in order])
    levels, nodes = [], [()]
    for level in range(tree.ndim):
        if order[level] in dense_levels:
            levels.append(tree.shape[level])
            nodes = [(*node, index) for node in nodes for index in range(tree.shape[level])]
            continue
        segments, indices, found = [0], [], []
        for node in nodes:
            mine = [index for index in range(tree.shape[level]) if np.any(tree[(*node, index)])]
            indices += mine
            segments.append(len(indices))
            found += [(*node, index) for index in mine]
        levels.append((segments, indices))
        nodes = found
    stored = np.array([tree[node] for node in nodes], dense.dtype)
    return stored, Sparsity(order, levels, mapped, vector)


def adding(stored: np.ndarray, shape: tuple[int, ...], sparsity: Sparsity, dtype: str) -> bytes:
    """x + what is sparse."""
    tensors = [Tensor(shape, dtype), Tensor(shape, dtype, data=stored, sparsity=sparsity),
               Tensor(shape, dtype), Tensor(shape, dtype)]
    return file_of(tensors, [Operator("DENSIFY", [1], [2], "DensifyOptions"),
                             Operator("ADD", [0, 2], [3], "AddOptions")], [0], [3])


@pytest.mark.parametrize("seed", range(12))
def test_random_sparse_constants_are_as_litert_makes_them(seed):
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    blocks = {axis: int(rng.integers(2, 4)) for axis in range(axes) if rng.random() < 0.4}
    shape = tuple(int(rng.integers(1, 5)) * blocks.get(axis, 1) for axis in range(axes))
    dense = (rng.integers(1, 9, shape) * (rng.random(shape) < 0.3)).astype(np.float32)
    dense[(-1,) * axes] = 5             # a file without any number has no constant
    levels = axes + len(blocks)
    order = [*rng.permutation(axes).tolist(), *range(axes, levels)]
    whole = {each for each in range(axes) if rng.random() < 0.5} | set(range(axes, levels))
    stored, sparsity = sparse(dense, order, whole, blocks,
                              ["Int32Vector", "Uint16Vector", "Uint8Vector"][seed % 3])
    data = adding(stored, shape, sparsity, "float32")
    x = rng.random(shape).astype(np.float32)
    graph = read_tflite(data, "sparse.tflite")
    found, = evaluate(graph, {"t0": x}).values()
    assert np.array_equal(found, x + dense)
    assert np.array_equal(found, reference(data, [x])[0])


def test_sparse_weights_of_float16_are_dense_real_numbers():
    rng = np.random.default_rng(1)
    dense = (rng.integers(1, 9, (6, 4)) * (rng.random((6, 4)) < 0.4)).astype(np.float16)
    stored, sparsity = sparse(dense, [0, 1], {0}, {}, "Int32Vector")
    tensors = [Tensor((1, 4)), Tensor((6, 4), "float16", data=stored, sparsity=sparsity),
               Tensor((6, 4), "float16"), Tensor((6, 4)), Tensor((1, 6))]
    data = file_of(tensors, [Operator("DENSIFY", [1], [2], "DensifyOptions"),
                             Operator("DEQUANTIZE", [2], [3], "DequantizeOptions"),
                             Operator("FULLY_CONNECTED", [0, 3, -1], [4],
                                      "FullyConnectedOptions")], [0], [4])
    x = rng.random((1, 4)).astype(np.float32)
    found, = evaluate(read_tflite(data, "sparse.tflite"), {"t0": x}).values()
    assert np.allclose(found, x @ dense.astype(np.float32).T, rtol=1e-6)


ONE = np.ones(2, np.float32)


@pytest.mark.parametrize(("sparsity", "words"), [
    (Sparsity([0, 0], [2, ([0, 1, 2], [0, 2])]), r"2 levels in the order \[0, 0\]"),
    (Sparsity([0], [2]), "1 levels in the order"),
    (Sparsity([0, 1], [2, ([0, 1, 2], [0, 3])]), "reach from 0 to 3, but must be below 3"),
    (Sparsity([0, 1], [2, ([0, 1, 2], [-1, 2])]), "reach from -1 to 2"),
    (Sparsity([0, 1], [2, ([0, 2], [0, 2])]), "has 2 segments, but must have 3"),
    (Sparsity([0, 1], [2, ([0, 2, 1], [0])]), "segments .* must rise from 0 to 1"),
    (Sparsity([0, 1], [2, ([0, 1, 3], [0, 1, 2])]), "stores 2 numbers, but its sparse tree has 3"),
    (Sparsity([0, 1], [7, ([0, 1, 2], [0, 2])]), r"the shape \(7, 3\) instead of \(2, 3\)"),
    (Sparsity([0, 1], [-2, ([0, 1, 2], [0, 2])]), "a level of its sparse numbers has size -2"),
    (Sparsity([0, 1, 2], [2, ([0, 1, 2], [0, 2]), 0], [1]), r"the shape \(2, 0\) instead"),
    (Sparsity([0, 1, 2], [2, ([0, 1, 2], [0, 2]), 1], [5]), r"blocks are along \[5\]"),
    (Sparsity([0, 1, 2], [2, ([0, 1, 2], [0, 2]), 2], [1]), r"the shape \(2, 2\) instead"),
    (Sparsity([0, 1], [2, ([], [])]), "segments .* must rise")])
def test_trees_that_make_no_sense_are_refused(sparsity, words):
    with pytest.raises(GraphError, match=words) as raised:
        read_tflite(adding(ONE, (2, 3), sparsity, "float32"), "bad.tflite")
    assert str(raised.value).isprintable()


def test_a_small_file_does_not_grow_without_end():
    shape = (1 << 15, 1 << 15)
    sparsity = Sparsity([0, 1], [1 << 15, ([0] * (1 << 15) + [2], [0, 1])])
    with pytest.raises(GraphError, match="1073741824 sparse numbers, dense, are too many for"):
        read_tflite(adding(ONE, shape, sparsity, "float32"), "bad.tflite")


def test_what_is_computed_is_not_sparse():
    data = file_of([Tensor((2,)), Tensor((2,))],
                   [Operator("DENSIFY", [0], [1], "DensifyOptions")], [0], [1])
    with pytest.raises(GraphError, match=r"DENSIFY 0 .t1.: t0 is computed by the network"):
        read_tflite(data, "bad.tflite")
