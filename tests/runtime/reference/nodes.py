"""Random nodes of ONNX, judged by ONNX's reference evaluator or by ONNX Runtime."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
REALS = ("float32", "float32", "float64", "float16")
NUMBERS = (*REALS, *INTEGERS)
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 3e38)
OPSET = 26


@dataclass(frozen=True)
class Node:
    """A node with numbers for its operands, None for those that are left out."""

    operands: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    rtol: float = 1e-5
    atol: float = 1e-6
    opset: int = OPSET
    nodes: tuple[Any, ...] = ()         # instead of one node of the operator's name
    runtime: bool = False               # ONNX Runtime is the judge
    meaning: tuple[Any, ...] = ()       # nodes that mean the same, for the judge


class Draw:
    """Random numbers, of a seed, that lean on corners."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def number(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, percent: int = 50) -> bool:
        return self.number(1, 100) <= percent

    def one(self, *choices: Any) -> Any:
        return choices[self.number(0, len(choices) - 1)]

    def shape(self, low: int = 0, high: int = 4, *, least: int = 0,
              most: int = 4) -> tuple[int, ...]:
        """Some axes; one shape in four may have an axis without indices."""
        least = max(least, 0 if self.chance(25) else 1)
        return tuple(self.number(least, most) for _ in range(self.number(low, high)))

    def like(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that is repeated to meet another one."""
        own = shape[self.number(0, len(shape)):]
        return tuple(1 if self.chance(25) else size for size in own)

    def real(self, shape: tuple[int, ...], dtype: str = "float32", *, odd: bool = True,
             low: float = -3, high: float = 3) -> np.ndarray:
        """Real numbers; some are odd: infinite, none, negative zeros, denormal, huge."""
        array = np.asarray(self.rng.uniform(low, high, shape)).astype(dtype)
        if odd and array.size and self.chance(60):
            with np.errstate(over="ignore"):
                for _ in range(self.number(1, 3)):
                    array.flat[self.number(0, array.size - 1)] = self.one(*ODD)
        return array

    def whole(self, shape: tuple[int, ...], dtype: str = "int64", low: int | None = None,
              high: int | None = None) -> np.ndarray:
        """Integers from low to high, both included: the whole range, unless told."""
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min if low is None else low,
                                 limits.max if high is None else high, shape, dtype, endpoint=True)

    def numbers(self, shape: tuple[int, ...], dtype: str, *, odd: bool = True) -> np.ndarray:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        return self.real(shape, dtype, odd=odd) if kind == "f" else self.whole(shape, dtype)

    def term(self, shape: tuple[int, ...], dtype: str = "float32", *,
             odd: bool = True) -> np.ndarray:
        """Numbers that are added up. Of huge ones, the order would decide about the sum."""
        array = self.numbers(shape, dtype, odd=odd)
        if array.dtype.kind == "f":
            array[np.isfinite(array) & (np.abs(array) > 1e9)] = 0
        return array

    def axis(self, shape: tuple[int, ...]) -> int:
        return self.number(-len(shape), len(shape) - 1)


NODES: dict[str, Callable[[Draw, str], Node]] = {}


def node(names: str) -> Callable[[Any], Any]:
    """Registers a function that draws nodes of some operators."""
    def register(function: Any) -> Any:
        for name in names.split():
            assert name not in NODES, name
            NODES[name] = function
        return function
    return register


def model_of(name: str, drawn: Node) -> tuple[Any, dict[str, np.ndarray]]:
    """A model of the node, and its inputs by name."""
    domain, _, op = name.rpartition(".")
    names = [f"x{number}" if each is not None else "" for number, each in enumerate(drawn.operands)]
    arrays = {each: array for each, array in zip(names, drawn.operands, strict=True) if each}
    outputs = [f"y{number}" for number in range(drawn.outputs)]
    nodes = drawn.nodes or (helper.make_node(op, names, outputs, domain=domain,
                                             **drawn.attributes),)
    graph = helper.make_graph(nodes, "node", [
        helper.make_tensor_value_info(each, helper.np_dtype_to_tensor_dtype(array.dtype),
                                      array.shape) for each, array in arrays.items()],
        [helper.make_empty_tensor_value_info(each) for each in outputs])
    imports = [helper.make_opsetid("", drawn.opset)]
    imports += [helper.make_opsetid(domain, 1)] if domain else []
    return helper.make_model(graph, opset_imports=imports, ir_version=10), arrays


def expected(name: str, drawn: Node) -> list[np.ndarray]:
    """What the judge makes of the node."""
    if drawn.meaning:
        drawn = replace(drawn, nodes=drawn.meaning)
    model, arrays = model_of(name, drawn)
    if drawn.runtime:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        return session.run(None, arrays)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(model).run(None, arrays)
