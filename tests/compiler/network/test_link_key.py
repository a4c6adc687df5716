"""A stream whose cost is known is not linked; whatever changes it makes it unknown."""

from dataclasses import replace

import pytest

from microtron.base.cache import ANEW
from microtron.compiler.compile import compile_op
from microtron.compiler.network import link_group
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.linking.dram_places import Place
from microtron.compiler.network.linking.link import Layer, Sizes
from microtron.compiler.network.linking.link_key import parts_of
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.isa.config import base, small
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.isa.verification.token_cache import with_cached_tokens
from microtron.sim.simulate import simulate
from microtron.sim.simulated_cost import SimulatedCost

from .test_refine import chain


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(ANEW)
    return tmp_path / "cache" / "results"


def kernel(**fields):
    return compile_op(Conv2d(**{"height": 6, "width": 6, "channels_in": 8, "channels_out": 8,
                                "pad": 1} | fields), small).program


def test_a_network_is_the_same_again_with_one_link(monkeypatch):
    links, link = [], link_group.link
    monkeypatch.setattr(link_group, "link", lambda *given: links.append(given) or link(*given))
    first = compile_network(chain(), small, cost=SimulatedCost())
    assert len(links) > 1
    links.clear()
    again = compile_network(chain(), small, cost=SimulatedCost())
    assert len(links) == 1
    for one, other in zip(first.programs, again.programs, strict=True):
        assert one.code.tobytes() == other.code.tobytes()
        assert one.labels == other.labels


def test_all_that_a_stream_follows_from_is_among_its_parts():
    layer = Layer("a", kernel(), {"data": Place(2, 0), "output": Place(3, 0)},
                  {"weights": bytes(range(9))}, False, 64)
    others = [
        ([layer, layer], small, Sizes(1, 2, 3)), ([layer], base, Sizes(1, 2, 3)),
        *(([layer], small, sizes) for sizes in (Sizes(2, 2, 3), Sizes(1, 3, 3), Sizes(1, 2, 4))),
        *(([replace(layer, **change)], small, Sizes(1, 2, 3)) for change in (
            {"program": kernel(width=7)}, {"with_next": True}, {"output_size": 65},
            {"stays": True}, {"takes": "data"},
            {"places": {"data": Place(2, 8), "output": Place(3, 0)}},
            {"places": {"data": Place(4, 0), "output": Place(3, 0)}},
            {"constants": {"weights": bytes(range(1, 10))}},
            {"constants": {"bias": bytes(range(9))}}))]
    known = [b"".join(parts_of(*each)) for each in (([layer], small, Sizes(1, 2, 3)), *others)]
    assert len(set(known)) == len(known)
    assert known[0] == b"".join(parts_of([replace(layer, name="b", program=kernel())], small,
                                         Sizes(1, 2, 3)))


def test_cycles_are_those_of_the_simulator_for_each_memory():
    for program in (kernel(), kernel(width=7)):
        for memory in (MemoryTiming(), MemoryTiming(read_latency=99)):
            cost = SimulatedCost(memory)
            assert cost(program) == cost(program) == simulate(program, memory=memory).cycles


def test_tokens_are_the_same_again():
    program = kernel()
    bare = program.code.copy()
    bare["wait"] = bare["post"] = 0
    right = with_tokens(program).code
    for given in (program, replace(program, code=bare), program):
        assert with_cached_tokens(given).code.tobytes() == right.tobytes()
        assert with_cached_tokens(given).segments is given.segments
