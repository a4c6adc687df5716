"""Memory plans: nobody's bytes are another's while both live."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.network.linking.dram_places import PAGE, Grid
from microtron.compiler.network.linking.memory_plan import Life, plan_memory

LIVES = st.lists(st.builds(
    lambda size, first, length: Life(size, first, first + length),
    st.integers(1, 20000), st.integers(0, 12), st.integers(0, 5)), max_size=20)


@given(LIVES, st.sampled_from((16, 256, 4096)))
def test_tensors_that_live_together_do_not_meet(lives, step):
    named = {f"t{number}": life for number, life in enumerate(lives)}
    plan = plan_memory(named, Grid(step))
    for one, life in named.items():
        begin, end = plan.offsets[one], plan.offsets[one] + life.size
        assert begin % (PAGE if life.size >= PAGE else step) == 0
        assert end <= plan.peak <= sum(each.size + PAGE for each in lives)
        for other, theirs in named.items():
            if one != other and life.first <= theirs.last and theirs.first <= life.last:
                assert end <= plan.offsets[other] or plan.offsets[other] + theirs.size <= begin
    assert plan.total == sum(life.size for life in lives)


def test_tensors_of_a_chain_take_turns():
    lives = {f"t{number}": Life(8192, number, number + 1) for number in range(10)}
    assert plan_memory(lives, Grid(256)).peak == 2 * 8192
