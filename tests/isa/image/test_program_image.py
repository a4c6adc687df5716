"""The program image: round trips, mapping, atomic saving, and files from people who mean harm."""

import io
import json
import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import ImageError, MicrotronError
from microtron.isa import stream
from microtron.isa.config import PRESETS, small
from microtron.isa.image.program_image import from_bytes, load, save, to_bytes
from microtron.isa.image.sections import PAGE, unpack
from microtron.isa.instructions import (
    AluI,
    Buffer,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Requantize,
    Store,
    Sync,
)
from microtron.isa.program import TENSOR_TYPES, Access, Program, Segment, Tensor

bytes_ = st.integers(0, 255)
shorts = st.integers(0, 65535)
names = st.text(st.characters(blacklist_categories=("C", "Z")), min_size=1, max_size=12)
texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")) | st.sampled_from("\n\t"),
                max_size=30)
instructions = st.one_of(
    st.builds(Load, sram=shorts, offset=st.integers(0, (1 << 32) - 1), pad_value=st.just(-128),
              pad=st.tuples(bytes_, bytes_, bytes_, bytes_)),
    st.builds(Gemm, uop=shorts, count=shorts, flags=st.just(GemmFlags.START | GemmFlags.BIAS)),
    st.builds(AluI, dst=shorts, immediate=st.integers(-(1 << 31), (1 << 31) - 1)),
    st.builds(Requantize, zero_point=st.integers(-128, 127), params=shorts),
    st.builds(Store, stride=st.tuples(st.integers(-99, 99), st.integers(-99, 99))),
    st.builds(Sync))


@st.composite
def segments(draw):
    name = draw(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True))
    data = draw(st.none() | st.binary(max_size=300))
    size = draw(st.integers(max(1, len(data or b"")), (1 << 32) - 1))
    return Segment(name, size, draw(st.sampled_from(Access)),
                   None if data is None else np.frombuffer(data, np.uint8))


@st.composite
def programs(draw):
    code = stream.encode(draw(st.lists(instructions, max_size=8)))
    windows = draw(st.lists(segments(), max_size=8, unique_by=lambda segment: segment.name))
    tensors = []
    for name in draw(st.sets(names, max_size=3)) if windows else ():
        segment = draw(st.sampled_from(windows))
        shape = tuple(draw(st.lists(st.integers(0, 2), max_size=3)))
        tensor = Tensor(name, segment.name, 0, shape, draw(st.sampled_from(TENSOR_TYPES)))
        if tensor.size <= segment.size:
            tensors.append(tensor)
    return Program(draw(st.sampled_from(list(PRESETS.values()))), code, tuple(windows),
                   tuple(tensors),
                   draw(st.dictionaries(names, st.integers(0, len(code)), max_size=4)),
                   draw(st.dictionaries(names, texts, max_size=4)))


def content(segment):
    return None if segment.data is None else segment.data.tobytes()


def assert_same(one, other):
    assert one.config == other.config
    assert stream.as_bytes(one.code).tobytes() == stream.as_bytes(other.code).tobytes()
    assert [(each.name, each.size, each.access, content(each)) for each in one.segments] == [
        (each.name, each.size, each.access, content(each)) for each in other.segments]
    assert one.tensors == other.tensors
    assert dict(one.labels) == dict(other.labels)
    assert dict(one.provenance) == dict(other.provenance)


def sample():
    micro_ops = stream.encode_micro_ops([MicroOp(dst=1, src=2, wgt=3), MicroOp(bias=4)])
    return Program(
        small, stream.encode([Load(buffer=Buffer.UOP, shape=(1, 1, 2)), Gemm(count=2), Sync()]),
        (Segment("constants", 4096, data=micro_ops.view(np.uint8)),
         Segment("io", 64, Access.WRITE)),
        (Tensor("x", "io", 0, (8, 8)),), {"main": 1}, {"source": "a test"})


IMAGE = to_bytes(sample())


def refuses(message):
    return pytest.raises(ImageError, match=f"^{re.escape(message)}")


@given(programs())
def test_a_program_comes_back_as_it_was(program):
    assert_same(from_bytes(to_bytes(program)), program)


@given(programs())
def test_one_program_has_one_image(program):
    data = to_bytes(program)
    assert to_bytes(from_bytes(data)) == data
    reordered = Program(program.config, program.code, program.segments, program.tensors,
                        dict(reversed(program.labels.items())),
                        dict(reversed(program.provenance.items())))
    assert to_bytes(reordered) == data


@pytest.mark.parametrize("mapped", [True, False])
def test_a_saved_program_is_loaded_as_it_was(tmp_path, mapped):
    save(sample(), tmp_path / "sample.mt")
    assert (tmp_path / "sample.mt").read_bytes() == IMAGE
    assert_same(load(tmp_path / "sample.mt", mapped=mapped), sample())
    assert_same(load(str(tmp_path / "sample.mt"), mapped=mapped), sample())


def base_of(array):
    while not isinstance(array, np.memmap) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def test_a_mapped_program_is_the_file_itself_and_cannot_be_written(tmp_path):
    save(sample(), tmp_path / "sample.mt")
    program = load(tmp_path / "sample.mt")
    file = base_of(program.code)
    for array in (program.code, program.segments[0].data):
        assert isinstance(base_of(array), np.memmap)
        assert type(array) is np.ndarray
        assert np.shares_memory(array, file)
        assert (array.ctypes.data - file.ctypes.data) % PAGE == 0
        assert not array.flags.writeable


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_program_shares_the_memory_it_is_read_from_and_cannot_write_it(kind):
    data = kind(IMAGE)
    program = from_bytes(data)
    for array in (program.code, program.segments[0].data):
        assert np.shares_memory(array, np.frombuffer(data, np.uint8))
        assert not array.flags.writeable


def test_an_unmapped_program_does_not_need_its_file(tmp_path):
    path = tmp_path / "sample.mt"
    save(sample(), path)
    program = load(path, mapped=False)
    path.write_bytes(bytes(len(IMAGE)))
    assert not isinstance(base_of(program.code), np.memmap)
    assert not program.code.flags.writeable
    assert_same(program, sample())


def test_a_mapped_program_survives_that_its_file_is_saved_anew(tmp_path):
    path = tmp_path / "sample.mt"
    save(sample(), path)
    program = load(path)
    save(Program(small, stream.encode([Sync()])), path)
    assert_same(program, sample())
    assert len(load(path).code) == 1


class FullDisk(io.FileIO):
    """A file that takes a little and then no more."""

    def write(self, data):
        super().write(data[:100])
        raise OSError(28, "No space left on device")


def failing_rename(*_):
    raise OSError(13, "Permission denied")


@pytest.mark.parametrize(("function", "failure", "message"), [
    ("fdopen", FullDisk, "No space left on device"),
    ("replace", failing_rename, "Permission denied")])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
        tmp_path, monkeypatch, function, failure, message):
    path = tmp_path / "sample.mt"
    save(sample(), path)
    monkeypatch.setattr(os, function, failure)
    with pytest.raises(MicrotronError, match=f"^{re.escape(str(path))}: cannot be written: "
                                             f"{message}$"):
        save(Program(small, stream.encode([Sync()])), path)
    assert path.read_bytes() == IMAGE
    assert os.listdir(tmp_path) == ["sample.mt"]


@pytest.mark.parametrize("kind", [stream.WORD, Sync.dtype()])
def test_code_and_data_may_have_gaps_in_and_between_their_elements(kind):
    code = stream.encode([Load(offset=position) for position in range(100)])
    data = np.arange(100, dtype=np.uint8)
    program = from_bytes(to_bytes(Program(small, code.view(kind)[::-3],
                                          (Segment("s", 50, data=data[::2]),))))
    assert [load.offset for load in stream.decode(program.code)] == list(range(99, -1, -3))
    assert program.segments[0].data.tolist() == list(range(0, 100, 2))


def test_no_data_and_empty_data_stay_apart():
    windows = (Segment("none", 1), Segment("empty", 1, data=np.zeros(0, np.uint8)))
    program = from_bytes(to_bytes(Program(small, stream.encode([]), windows)))
    assert program.segments[0].data is None
    assert program.segments[1].data.tolist() == []


@pytest.mark.parametrize(("program", "message"), [
    (Program(small, np.zeros(1, stream.WORD)), "instruction 0: opcode is 0, but must be one of"),
    (Program(small, np.zeros((1, 1), stream.WORD)), "its code has shape (1, 1) and 32 bytes an"),
    (Program(small, np.zeros(3, np.uint8)), "its code has shape (3,) and 1 bytes an element"),
    (Program(small, sample().code, labels={"a\nb": 0}), r"a label is 'a\nb', but must have"),
    (Program(small, sample().code, labels={7: 0}), "a label is 7, but must have"),
    (Program(small, sample().code, provenance={"a": "\ud800"}), r"provenance a is '\ud800', but"),
    (Program(small, sample().code, provenance={"a": 1.5}), "provenance a is 1.5, but"),
    (Program(small, sample().code, provenance={str(key): "x" * 60000 for key in range(140)}),
     "section meta has 84"),
    (Program(small, sample().code, (Segment("s", 9, data=np.zeros(2, np.int32)),)),
     "the data of segment s must be a one-dimensional array of uint8"),
    (Program(small, sample().code, (Segment("s", 9),), (Tensor("x", "s", 0, (0, 1 << 20000)),)),
     "tensor 0: shape is a number of 20001 bits, but must be an integer from 0 to"),
], ids=lambda value: value[:20] if isinstance(value, str) else "")
def test_what_could_not_be_read_is_not_written(tmp_path, program, message):
    with refuses(f"the program cannot be stored: {message}"):
        save(program, tmp_path / "never.mt")
    assert os.listdir(tmp_path) == []


def test_many_instructions_are_loaded_as_they_were(tmp_path):
    code = np.frombuffer(sample().code.tobytes() * 40_000, stream.WORD)
    save(Program(small, code), tmp_path / "long.mt")
    assert np.array_equal(stream.as_bytes(load(tmp_path / "long.mt").code), stream.as_bytes(code))


def test_the_metadata_is_plain_json():
    meta = unpack(np.frombuffer(IMAGE, np.uint8))[0]
    assert json.loads(meta.content.tobytes())["labels"] == {"main": 1}
