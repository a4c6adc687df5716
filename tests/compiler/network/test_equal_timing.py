"""Layers that differ in numbers that take no time share one search of schedules."""

from dataclasses import replace

from microtron import Conv2d, simulate
from microtron.compiler.network.kernel_search import KernelSearch
from microtron.compiler.network.linking.equal_timing import shape_of, take_equally_long
from microtron.isa.config import small

LAYER = Conv2d(height=14, width=14, channels_in=16, channels_out=16, kernel=3, pad=1,
               zero_point_in=3)


def test_a_layer_with_other_zero_points_is_not_searched_again():
    timed = []

    def cost(program):
        timed.append(program)
        return simulate(program).cycles

    search, other = KernelSearch(small, cost), replace(LAYER, zero_point_in=-7, zero_point_out=5)
    search.kernel(LAYER)
    count = len(timed)
    found = search.kernel(other)
    assert count > 1
    assert len(timed) == count
    assert search.cycles(found) == simulate(found.program).cycles
    assert len(timed) == count
    alone = KernelSearch(small, cost).kernel(other)
    assert found.program.code.tobytes() == alone.program.code.tobytes()


def test_programs_that_do_something_else_are_searched_each():
    search = KernelSearch(small, lambda program: simulate(program).cycles)
    relu = replace(LAYER, low=0)
    first = search.kernel(LAYER).program
    assert shape_of(LAYER) == shape_of(replace(LAYER, zero_point_in=0)) != shape_of(relu)
    assert not take_equally_long(first, search.kernel(replace(LAYER, stride=2)).program)
    assert not take_equally_long(first, search.kernel(replace(LAYER, channels_in=17)).program)
    assert take_equally_long(first, search.kernel(replace(LAYER, zero_point_in=0)).program)
