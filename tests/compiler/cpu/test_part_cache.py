"""Parts from the cache: the same as compiled ones, and never those of something else."""

from dataclasses import replace

import numpy as np
import pytest

from microtron.base.cache import RESULTS
from microtron.base.processor import host, target
from microtron.compiler.cpu import part_cache
from microtron.compiler.cpu.part_cache import cached_move, cached_part
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from microtron.compiler.graph.types import TensorType
from microtron.compiler.operators.layout import tile_images
from microtron.isa.config import Config


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path))
    monkeypatch.delenv("MICROTRON_ANEW", raising=False)


@pytest.fixture
def compiled(monkeypatch):
    """How many parts were compiled so far."""
    made = []
    for name in ("compile_part", "compile_function"):
        real = getattr(part_cache, name)
        monkeypatch.setattr(part_cache, name,
                            lambda *given, real=real: made.append(1) or real(*given))
    return made


def network(weight=1.0, kind=UnaryKind.TANH, shape=(3, 4)):
    builder = Builder()
    x = builder.input("x", TensorType(shape, "float32"))
    weights = builder.constant("weights", np.full(shape[1], weight, np.float32))
    product = builder.add("product", Binary(kind=BinaryKind.MUL, left=x, right=weights))
    builder.add("y", Unary(kind=kind, x=product))
    return builder.graph(("y",))


def facts(part):
    return (part.text, part.kernels, dict(part.inputs), dict(part.outputs), dict(part.scratch),
            part.scratch_bytes, dict(part.types), list(part.constants),
            [(array.dtype, array.shape, array.tobytes()) for array in part.constants.values()])


def test_a_part_is_compiled_once(compiled):
    graph = network()
    first, second = cached_part(graph, host()), cached_part(graph, host())
    assert len(compiled) == 1
    assert facts(first) == facts(second)
    assert any(array is graph.array("weights") for array in second.constants.values())
    assert facts(cached_part(network(), host())) == facts(first)
    assert len(compiled) == 1


@pytest.mark.parametrize("other", [
    {"weight": 2.0}, {"kind": UnaryKind.EXP}, {"shape": (4, 4)}, {"shape": (3, 6)}])
def test_another_graph_is_another_part(compiled, other):
    first, second = cached_part(network(), host()), cached_part(network(**other), host())
    assert len(compiled) == 2
    assert facts(first) != facts(second)


def test_another_processor_is_another_part(compiled):
    cached_part(network(), host())
    assert cached_part(network(), target("aarch64")).target.name == "aarch64"
    assert len(compiled) == 2


def test_other_outputs_are_another_part(compiled):
    cached_part(network(), host())
    cached_part(replace(network(), outputs=("product", "y")), host())
    assert len(compiled) == 2


def test_lowerings_of_others_are_not_cached(compiled, monkeypatch):
    cached_part(network(), host())                          # all lowerings are there now

    def foreign(*given):
        return part_cache.LOWERINGS[Unary](*given)
    lowerings = {**part_cache.LOWERINGS, Unary: foreign}
    monkeypatch.setattr(part_cache, "LOWERINGS", lowerings)
    cached_part(network(), host())
    assert len(compiled) == 2


def test_nothing_is_found_if_everything_is_made_anew(compiled, monkeypatch):
    monkeypatch.setenv("MICROTRON_ANEW", "1")
    assert not RESULTS.is_used()
    cached_part(network(), host())
    cached_part(network(), host())
    assert len(compiled) == 2


def test_moves_are_cached_by_layout_and_direction(compiled):
    layout = tile_images(1, 20, 5, 7, Config(), 16)
    moves = [cached_move(layout, dtype, host(), into_tiles=into)
             for _ in range(2) for dtype in ("int8", "int32") for into in (True, False)]
    assert len(compiled) == 4
    assert [facts(each) for each in moves[:4]] == [facts(each) for each in moves[4:]]
    cached_move(tile_images(1, 20, 7, 5, Config(), 16), "int8", host(), into_tiles=True)
    assert len(compiled) == 5
