"""DRAM for the host: segments and tensors."""

import numpy as np
import pytest

from microtron.base.errors import ExecutionError, IsaError
from microtron.isa.config import tiny
from microtron.isa.instructions import Sync
from microtron.isa.program import Access, Program, Segment, Tensor
from microtron.isa.stream import encode
from microtron.sim.functional.memory import Memory


def memory():
    segments = (Segment("weights", 8, Access.READ, np.array([1, 2, 3], np.uint8)),
                Segment("work", 64, Access.WRITE))
    tensors = (Tensor("w", "weights", 1, (2,)), Tensor("x", "work", 3, (2, 3), "int32"),
               Tensor("nothing", "work", 64, (0, 4)), Tensor("one", "work", 40, (), "uint8"))
    return Memory(Program(tiny, encode([Sync()]), segments, tensors))


def test_a_segment_starts_with_its_data_and_zeros():
    assert memory().read("weights", 0, 8).tolist() == [1, 2, 3, 0, 0, 0, 0, 0]
    assert not memory().read("work", 0, 64).any()


def test_the_program_s_own_data_is_not_changed():
    first = memory()
    first.write("weights", 0, b"\xff")
    assert first.read("weights", 0, 1).tolist() == [255]
    assert first.program.segments[0].data.tolist() == [1, 2, 3]


def test_the_host_may_write_what_the_accelerator_may_only_read():
    image = memory()
    image.write("weights", 6, np.array([7, 8], np.uint8))
    assert image.read("weights", 5, 3).tolist() == [0, 7, 8]
    with pytest.raises(ValueError, match="read-only"):
        image.windows[0][0] = 1


def test_what_is_read_is_a_copy():
    image = memory()
    image.read("weights", 0, 8)[:] = 9
    assert image.read("weights", 0, 3).tolist() == [1, 2, 3]


@pytest.mark.parametrize(("offset", "size"), [(-1, 2), (7, 2), (9, 0), (0, 9), (1 << 40, 1)])
def test_access_outside_a_segment_is_refused(offset, size):
    with pytest.raises(ExecutionError, match=rf"segment weights: {size} bytes at {offset} end at "
                                             rf"byte {offset + size}, but it has 8"):
        memory().read("weights", offset, size)
    with pytest.raises(ExecutionError, match="but it has 8"):
        memory().write("weights", offset, bytes(size))


def test_tensors_keep_their_values_wherever_they_lie():
    image = memory()
    values = np.array([[1, -2, 3], [2**31 - 1, -2**31, 0]], np.int32)
    image.write_tensor("x", values)
    read = image.read_tensor("x")
    assert read.dtype == np.int32
    assert (read == values).all()
    assert image.read("work", 7, 4).tolist() == [0xFE, 0xFF, 0xFF, 0xFF]
    assert image.read_tensor("w").tolist() == [2, 3]


def test_tensors_may_be_empty_or_a_single_number():
    image = memory()
    image.write_tensor("nothing", np.zeros((0, 4), np.int8))
    assert image.read_tensor("nothing").shape == (0, 4)
    image.write_tensor("one", np.uint8(200))
    assert image.read_tensor("one") == 200


@pytest.mark.parametrize(("values", "message"), [
    (np.zeros((3, 2), np.int32), r"x is int32 of shape \(2, 3\), but the values are int32 of "
                                 r"shape \(3, 2\)"),
    (np.zeros((2, 3)), "but the values are float64"),
    (np.zeros((2, 3), np.uint32), "but the values are uint32")])
def test_a_tensor_takes_its_own_shape_and_type_only(values, message):
    with pytest.raises(ExecutionError, match=message):
        memory().write_tensor("x", values)


def test_unknown_names_are_listed():
    with pytest.raises(IsaError, match="no tensor 'y'; the program has w, x"):
        memory().read_tensor("y")
    with pytest.raises(IsaError, match="no segment 'y'; the program has weights, work"):
        memory().read("y", 0, 1)


def test_a_segment_that_no_host_can_hold_is_refused_in_words(monkeypatch):
    def zeros(size, dtype):
        raise MemoryError
    program = memory().program
    monkeypatch.setattr(np, "zeros", zeros)
    with pytest.raises(ExecutionError, match="segment weights: its 8 bytes do not fit"):
        Memory(program)
