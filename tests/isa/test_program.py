"""What a program refuses when it is built, and how it finds its segments and tensors."""

import re

import numpy as np
import pytest

from microtron.base.errors import IsaError
from microtron.isa.config import small
from microtron.isa.instructions import POSITION_BITS, Gemm, Sync
from microtron.isa.program import Access, Program, Segment, Tensor
from microtron.isa.stream import encode

CODE = encode([Gemm(), Sync()])
SEGMENTS = (Segment("weights", 64), Segment("io", 32, Access.WRITE))


def refuses(message):
    return pytest.raises(IsaError, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("name", ["", "two words", "1st", "a-b", "a\n", "a\0"])
def test_a_segment_has_a_plain_word_as_its_name(name):
    with refuses(f"segment name {name!r} is not a plain word"):
        Segment(name, 1)


@pytest.mark.parametrize("size", [0, -1, 1 << 32])
def test_a_segment_has_a_size_that_offsets_can_reach(size):
    with refuses(f"segment s: size is {size}, but must be from 1 to 4294967295 bytes"):
        Segment("s", size)


def test_the_smallest_and_the_largest_segment_are_possible():
    assert Segment("s", 1).size == 1
    assert Segment("s", (1 << 32) - 1).size == (1 << 32) - 1


def test_data_may_fill_a_segment_but_not_exceed_it():
    assert Segment("s", 4, data=np.zeros(4, np.uint8)).data is not None
    with refuses("segment s: holds 5 bytes of data, but its size is 4"):
        Segment("s", 4, data=np.zeros(5, np.uint8))


def test_the_accelerator_only_reads_a_segment_unless_told():
    assert Segment("s", 1).access is Access.READ


@pytest.mark.parametrize(("shape", "dtype", "size"), [
    ((), "int32", 4), ((3,), "int8", 3), ((2, 3), "uint8", 6), ((2, 3), "int16", 12),
    ((4, 0, 7), "int32", 0)])
def test_the_size_of_a_tensor_is_in_bytes(shape, dtype, size):
    assert Tensor("x", "io", 0, shape, dtype).size == size


def test_there_are_as_many_segments_as_the_hardware_has_windows():
    segments = tuple(Segment(f"s{index}", 1) for index in range(9))
    assert len(Program(small, CODE, segments[:8]).segments) == 8
    with refuses("9 segments, but there are only 8"):
        Program(small, CODE, segments)


def test_hardware_can_number_every_instruction():
    most = (1 << POSITION_BITS) - 1
    assert len(Program(small, np.broadcast_to(CODE[:1], most)).code) == most
    with refuses("2,097,152 instructions, but a program has fewer than 2,097,152"):
        Program(small, np.broadcast_to(CODE[:1], most + 1))


def test_two_segments_cannot_share_a_name():
    with refuses("segment io is declared twice"):
        Program(small, CODE, (*SEGMENTS, Segment("io", 1)))


def test_two_tensors_cannot_share_a_name():
    with refuses("tensor x is declared twice"):
        Program(small, CODE, SEGMENTS, (Tensor("x", "io", 0, (1,)), Tensor("x", "weights", 0, ())))


@pytest.mark.parametrize(("fields", "message"), [
    (("x", "oi", 0, (1,)), "there is no segment 'oi'; the program has weights, io"),
    (("x", "io", 0, (1,), "float32"),
     "tensor x: type is 'float32', but must be one of int8, uint8, int16, int32"),
    (("x", "io", -1, (1,)), "tensor x: offset is -1, but must hold integers that are not negative"),
    (("x", "io", 0, (2, -1)),
     "tensor x: shape is (2, -1), but must hold integers that are not negative"),
    (("x", "io", 1, (32,)), "tensor x ends at byte 33, but segment io has 32"),
    (("x", "io", 0, (3, 3), "int32"), "tensor x ends at byte 36, but segment io has 32"),
    (("x", "io", 33, (0,)), "tensor x ends at byte 33, but segment io has 32"),
])
def test_a_tensor_lies_inside_its_segment(fields, message):
    with refuses(message):
        Program(small, CODE, SEGMENTS, (Tensor(*fields),))


def test_a_tensor_may_end_where_its_segment_ends():
    program = Program(small, CODE, SEGMENTS, (Tensor("x", "io", 0, (8,), "int32"),))
    assert program.tensor("x").size == program.segment("io").size


def test_a_label_marks_an_instruction_or_the_end():
    assert Program(small, CODE, labels={"start": 0, "end": 2}).labels["end"] == 2
    for position in (-1, 3):
        with refuses(f"label off is at instruction {position}, but the program has 2"):
            Program(small, CODE, labels={"off": position})


def test_segments_and_tensors_are_found_by_name():
    tensor = Tensor("x", "io", 4, (2,))
    program = Program(small, CODE, SEGMENTS, (tensor,))
    assert program.segment("io") is SEGMENTS[1]
    assert program.tensor("x") is tensor
    with refuses("there is no segment 'x'; the program has weights, io"):
        program.segment("x")
    with refuses("there is no tensor 'io'; the program has x"):
        program.tensor("io")


def test_an_empty_program_says_that_it_has_nothing():
    program = Program(small, encode([]))
    with refuses("there is no segment 'x'; the program has none"):
        program.segment("x")
    with refuses("there is no tensor 'x'; the program has none"):
        program.tensor("x")


def test_a_program_holds_a_bounded_amount_of_data():
    half = np.broadcast_to(np.uint8(0), 1 << 29)
    segments = tuple(Segment(name, 1 << 30, data=half) for name in "ab")
    assert Program(small, encode([Sync()]), segments)
    with pytest.raises(IsaError, match=r"^the segments hold 1,073,741,825 bytes of data, but a "
                                       r"program has at most 1,073,741,824$"):
        Program(small, encode([Sync()]), (*segments, Segment("c", 1, data=np.zeros(1, np.uint8))))
