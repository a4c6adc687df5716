"""Which nodes compute with integers, which tensors are stored as integers, and which of these share
a scale."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..compiler.graph.graph import Graph, Node
from ..compiler.graph.operations.data_movement.indexing import Gather, GatherNd
from ..compiler.graph.operations.layers.matmul import MatMul
from ..compiler.graph.operations.layers.reduction import Reduce, ReduceKind
from ..compiler.graph.operations.layers.window import Conv, Pool, PoolKind
from ..compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from ..compiler.graph.operations.pointwise.logic import Compare, CompareKind, Where
from ..compiler.graph.operations.pointwise.quantize import Clamp
from ..compiler.graph.operations.pointwise.unary import Cast, Unary
from ..compiler.graph.operations.vision.resize import Resize, ResizeKind
from ..compiler.passes.integer_moves import moved_operands
from ..runtime.models.compiled_model import macs_of
from .prepare import PRODUCTS, Product

POINTWISE = (Unary, Clamp, Binary, Cast, Compare, Where)
SCALED = (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)
REAL = "float32"
PRELU_AXES = (2, 4)     # number and channel; of images also row and column


@dataclass(frozen=True)
class Selection:
    """What is quantized. A point is a tensor that is stored as integers; points of a group share
    scale and zero point. Constants that integer nodes read besides weights are points too."""

    graph: Graph
    layers: tuple[str, ...]             # products whose operands are integers, in order
    nodes: frozenset[str]               # all nodes that compute with integers
    groups: Mapping[str, str]           # point → the group's first point

    def members(self, group: str) -> list[str]:
        return [point for point, each in self.groups.items() if each == group]

    def is_made_of_integers(self, tensor: str) -> bool:
        """Whether an integer node computes it, so that nobody ever sees its float numbers."""
        return tensor in self.nodes

    @property
    def ends(self) -> tuple[str, ...]:
        """Layers whose results are not stored as integers."""
        return tuple(name for name in self.layers if name not in self.groups and not any(
            each in self.nodes for each in self.graph.readers.get(name, ())))

    def weights(self, layer: str) -> str | None:
        """The constant weights of a layer; None if both sides are activations."""
        operation = self.graph.nodes[layer].operation
        assert isinstance(operation, PRODUCTS)
        name = weights_of(operation)
        return name if name in self.graph.constants else None


def count_macs(selection: Selection) -> int:
    """Of all layers, for one sample."""
    return sum(macs_of(selection.graph, selection.graph.nodes[each]) for each in selection.layers)


def weights_of(operation: Product) -> str:
    return operation.right if isinstance(operation, MatMul) else operation.weights


def data_of(operation: Product) -> str:
    return operation.left if isinstance(operation, MatMul) else operation.x


def select(graph: Graph, left_out: Collection[str] = ()) -> Selection:
    """What to quantize: every product, but those left out, and whatever lies between products.

    Nodes after the last product and before the first stay float: they cost little, and their
    results are exact then. So does what has no integer form, such as a softmax.
    """
    return _Search(graph, frozenset(left_out)).select()


@dataclass
class _Search:
    graph: Graph
    left_out: frozenset[str]
    layers: list[str] = field(default_factory=list)
    fused: set[str] = field(default_factory=set)        # clamps that belong to the node before
    able: set[str] = field(default_factory=set)         # nodes that could compute with integers
    roots: dict[str, str] = field(default_factory=dict)     # what a tensor is a function of

    def select(self) -> Selection:
        graph = self.graph
        self.layers = [name for name, node in graph.nodes.items()
                       if name not in self.left_out and self._is_product(node)]
        entries = dict.fromkeys(each for name in self.layers for each in self._activations(name))
        for name, node in graph.nodes.items():
            self._look_at(name, node, entries)
        chosen = self._integer_region(entries)
        points = self._points(chosen, entries)
        return Selection(graph, tuple(self.layers), frozenset(chosen),
                         self._groups(chosen, points))

    def _is_product(self, node: Node) -> bool:
        operation = node.operation
        if not isinstance(operation, PRODUCTS) or node.type.dtype != REAL or not node.type.size:
            return False
        constant = weights_of(operation) in self.graph.constants
        sides = data_of(operation) not in self.graph.constants and (
            constant or isinstance(operation, MatMul))
        return sides and (operation.bias is None or operation.bias in self.graph.constants)

    def _activations(self, layer: str) -> list[str]:
        operation = self.graph.nodes[layer].operation
        assert isinstance(operation, PRODUCTS)
        return [each for each in (data_of(operation), weights_of(operation))
                if each not in self.graph.constants]

    def _look_at(self, name: str, node: Node, entries: Collection[str]) -> None:
        """Note what a node is a function of, and whether it could compute with integers."""
        self.roots[name] = name
        if name in self.layers:
            self.able.add(name)
            return
        if name in self.left_out or node.type.size == 0:
            return
        whole = self._prelu_around(name)
        if whole is not None:
            self.roots[name] = whole
            if self._is_stored(prelu_input(self.graph, self.graph.nodes[whole]), entries):
                self.able.add(name)
            return
        before = getattr(node.operation, "x", "")
        if isinstance(node.operation, Clamp) and before in self.able and (
                self.graph.uses[before] == 1 and self.roots[before] == before
                and before not in self.fused and not _scale_preserving(self.graph.nodes[before])):
            self.fused.add(name)
            self.able.add(name)
            return
        root = self._root(node)
        if root is not None and self._is_stored(root, entries):
            self.roots[name] = root
            self.able.add(name)
            return
        needed = _integer_operands(self.graph, node)
        if node.type.dtype == REAL and needed and all(
                self._is_stored(each, entries) or each in self.graph.constants for each in needed):
            self.able.add(name)

    def _is_stored(self, tensor: str, entries: Collection[str]) -> bool:
        return tensor in self.able or tensor in entries

    def _prelu_around(self, name: str) -> str | None:
        """The PReLU inside of which a comparison or a product is."""
        readers = self.graph.readers.get(name, ())
        if name in self.graph.outputs or len(readers) != 1:
            return None
        found = self.graph.nodes[readers[0]]
        inside = prelu_input(self.graph, found) and name in (
            getattr(found.operation, "condition", ""), getattr(found.operation, "left", ""))
        return readers[0] if inside else None

    def _root(self, node: Node) -> str | None:
        """The one tensor of which a node's result is a function, number by number."""
        if not isinstance(node.operation, POINTWISE):
            return None
        found = set()
        for each in node.operation.operands():
            if each in self.graph.constants:
                if self.graph.type_of(each).size != 1:
                    return None
            else:
                found.add(self.roots.get(each, each))
        if len(found) != 1:
            return None
        root = found.pop()
        known = self.graph.type_of(root)
        return root if known.dtype == REAL and known.shape == node.type.shape else None

    def _integer_region(self, entries: Collection[str]) -> set[str]:
        """Products, their clamps, and the able nodes on whose results products depend."""
        chosen = set(self.layers)
        for name in reversed(list(self.graph.nodes)):
            if name not in self.able or name in chosen:
                continue
            readers = self.graph.readers.get(name, ())
            if name in entries or any(each in chosen for each in readers):
                chosen.add(name)
        for name in self.fused:
            before = getattr(self.graph.nodes[name].operation, "x", "")
            if before in chosen and not _has_wide_form(self.graph.nodes[before]):
                chosen.add(name)
        return chosen

    def _points(self, chosen: set[str], entries: Collection[str]) -> list[str]:
        points = dict.fromkeys(entries)
        for name in self.graph.nodes:
            if name not in chosen:
                continue
            node = self.graph.nodes[name]
            if not self._is_internal(name, node, chosen):
                points[name] = None
            if name not in self.layers and self.roots[name] == name and name not in self.fused:
                points |= dict.fromkeys(_integer_operands(self.graph, node))
        return list(points)

    def _is_internal(self, name: str, node: Node, chosen: set[str]) -> bool:
        """Whether a tensor only lives inside a clamp's operator, or inside a function that becomes
        one table."""
        readers = self.graph.readers.get(name, ())
        if name in self.layers and _has_wide_form(node) and not any(
                each in chosen for each in readers):
            return True                     # its sums stay float
        if name in self.graph.outputs or not readers:
            return False
        if all(each in self.fused and each in chosen for each in readers):
            return True
        root = self.roots[name]
        return (root != name and all(each in chosen and self.roots[each] == root
                                    for each in readers)) or node.type.dtype != REAL

    def _groups(self, chosen: set[str], points: list[str]) -> dict[str, str]:
        """Points that a move joins share a scale, with the first of them as their name."""
        order = {name: number for number, name in enumerate(points)}
        parent = {name: name for name in points}

        def first(name: str) -> str:
            while parent[name] != name:
                name = parent[name]
            return name

        for name in self.graph.nodes:
            if name in chosen and name in parent and self.roots[name] == name and (
                    name not in self.fused):
                for each in _scale_preserving(self.graph.nodes[name]):
                    if each in parent:
                        one, other = sorted((first(name), first(each)), key=order.__getitem__)
                        parent[other] = one
        return {name: first(name) for name in points}


def prelu_input(graph: Graph, node: Node) -> str:
    """What a PReLU of images or rows with a slope for each channel reads; empty for any other node.

        Where(x < 0, x × slopes, x)
    """
    where = node.operation
    if not isinstance(where, Where) or where.condition not in graph.nodes or (
            where.left not in graph.nodes or len(node.type.shape) not in PRELU_AXES):
        return ""
    below, product = (graph.nodes[each].operation for each in (where.condition, where.left))
    if not isinstance(below, Compare) or below.kind != CompareKind.LESS or not isinstance(
            product, Binary) or product.kind != BinaryKind.MUL:
        return ""
    x, zero, slopes = where.right, graph.array(below.right), graph.array(product.right)
    if {below.left, product.left} != {x} or zero is None or zero.any() or slopes is None or (
            graph.type_of(x) != node.type or x in graph.constants):
        return ""
    axes = len(node.type.shape)
    shape = (1,) * (axes - slopes.ndim) + slopes.shape
    return x if shape == (1, node.type.shape[1], 1, 1)[:axes] else ""


def _has_wide_form(node: Node) -> bool:
    """Whether the accelerator can give a layer's sums as they are."""
    operation = node.operation
    return isinstance(operation, MatMul) or (isinstance(operation, Conv) and operation.groups == 1)


def _scale_preserving(node: Node) -> tuple[str, ...]:
    """Operands whose numbers reappear in the result."""
    operation = node.operation
    if isinstance(operation, Where):
        return ()
    if isinstance(operation, Resize) and operation.kind == ResizeKind.LINEAR:
        return (operation.x,)
    return moved_operands(operation)


def _integer_operands(graph: Graph, node: Node) -> tuple[str, ...]:
    """The operands that a node reads as integers, if it has an integer form and is no product."""
    operation = node.operation
    match operation:
        case Where() if x := prelu_input(graph, node):
            return (x,)
        case Pool(kind=PoolKind.AVERAGE, x=x) | Reduce(kind=ReduceKind.MEAN, x=x):
            return (x,)
        case Binary(kind=kind, left=left, right=right) if kind in SCALED:
            if any(each in graph.constants and graph.type_of(each).size == 1
                   for each in (left, right)):
                return ()
            return (left, right)
        case Gather(x=x) | GatherNd(x=x) if x in graph.constants:
            return ()
        case _:
            return _scale_preserving(node)
