"""Scratch memory: buffers that are needed at the same time never overlap."""

from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.cpu.code.emit_kernel import Kernel
from microtron.compiler.cpu.kernels import bytes_of
from microtron.compiler.cpu.scratch_plan import ALIGNED, plan_scratch
from microtron.compiler.nest.nest import Buffer, Sequence


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_buffers_in_use_at_once_are_apart(spans):
    buffers = [Buffer(f"b{number}", (size,), "float32") for number, (size, _, _)
               in enumerate(spans)]
    uses = {buffer: (min(one, other), max(one, other))
            for buffer, (_, one, other) in zip(buffers, spans, strict=True)}
    kernels = [Kernel(f"k{step}", Sequence(()), (), tuple(
        buffer for buffer in buffers if step in uses[buffer])) for step in range(10)]
    plan = plan_scratch(kernels, buffers)
    for one in buffers:
        assert plan.offsets[one] % ALIGNED == 0
        assert plan.offsets[one] + bytes_of(one) <= plan.size
        for other in buffers:
            if one is not other and uses[one][0] <= uses[other][1] and (
                    uses[other][0] <= uses[one][1]):
                assert (plan.offsets[one] + bytes_of(one) <= plan.offsets[other]
                        or plan.offsets[other] + bytes_of(other) <= plan.offsets[one])


def test_what_is_over_makes_room():
    a, b, c = (Buffer(name, (1000,), "int8") for name in "abc")
    kernels = [Kernel("k0", Sequence(()), (), (a,)), Kernel("k1", Sequence(()), (a,), (b,)),
               Kernel("k2", Sequence(()), (b,), (c,))]
    plan = plan_scratch(kernels, (a, b, c))
    assert plan.offsets[a] == plan.offsets[c] != plan.offsets[b]
    assert plan.size == 2048
