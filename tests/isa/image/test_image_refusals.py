"""Images that are damaged, foreign, too new or written by someone who means harm."""

import hashlib
import os
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import ImageError
from microtron.isa import stream
from microtron.isa.config import small
from microtron.isa.image.program_image import from_bytes, load, to_bytes
from microtron.isa.image.sections import PAGE, Section, pack, unpack
from microtron.isa.instructions import Buffer, Gemm, Load, MicroOp, Sync
from microtron.isa.program import Access, Program, Segment, Tensor

MICRO_OPS = stream.encode_micro_ops([MicroOp(dst=1, src=2, wgt=3), MicroOp(bias=4)])
IMAGE = to_bytes(Program(
    small, stream.encode([Load(buffer=Buffer.UOP, shape=(1, 1, 2)), Gemm(count=2), Sync()]),
    (Segment("constants", 4096, data=MICRO_OPS.view(np.uint8)), Segment("io", 64, Access.WRITE)),
    (Tensor("x", "io", 0, (8, 8)),), {"main": 1}, {"source": "a test"}))


def resign(data):
    """What someone with bad intent hands us: any bytes, with the right size and checksum."""
    data = bytearray(data)
    data[16:24] = len(data).to_bytes(8, "little")
    data[32:64] = hashlib.sha256(data[:32] + data[64:]).digest()
    return bytes(data)


def repack(**contents):
    """The sample with the content of some sections replaced."""
    return pack([Section(each.name, np.frombuffer(contents.get(each.name, each.content.tobytes()),
                                                  np.uint8), each.alignment)
                 for each in unpack(np.frombuffer(IMAGE, np.uint8))])


def refuses(message):
    return pytest.raises(ImageError, match=f"^{re.escape(message)}")


def refusal(data):
    """The message for an image that is refused, nothing for a program."""
    try:
        assert isinstance(from_bytes(data), Program)
    except ImageError as error:
        return str(error)
    return ""


def test_errors_begin_with_the_path(tmp_path):
    path = tmp_path / "bad.mt"
    with refuses(f"{path}: cannot be read: No such file or directory"):
        load(path)
    for data, message in ((b"", "is empty"), (b"PK\3\4", "is not a program image"),
                          (IMAGE[:-1], "is truncated"), (IMAGE + b"\0", "goes on after its end"),
                          (IMAGE[:8] + b"\2" + IMAGE[9:], "has format version 2"),
                          (IMAGE[:-1] + b"\1", "is damaged"), (repack(code=b"x"), "section co")):
        path.write_bytes(data)
        for mapped in (True, False):
            with refuses(f"{path}: {message}"):
                load(path, mapped=mapped)
        with refuses(f"a packet: {message}"):
            from_bytes(data, place="a packet")


def test_only_regular_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.mt")
    pipe = os.open(tmp_path / "pipe.mt", os.O_RDWR)
    os.write(pipe, IMAGE[:64])          # so that a reader would get something, and not hang here
    for path in (tmp_path, tmp_path / "pipe.mt", "/dev/zero"):
        with refuses(f"{path}: is not a regular file"):
            load(path)
    os.close(pipe)


def test_a_huge_file_of_something_else_is_not_read(tmp_path):
    path = tmp_path / "huge.mt"
    with path.open("wb") as file:
        file.write(b"something else")
        file.truncate(1 << 36)
    with refuses(f"{path}: is not a program image"):
        load(path, mapped=False)


def extend(name, *, required):
    known = unpack(np.frombuffer(IMAGE, np.uint8))
    return pack([*known, Section(name, np.frombuffer(b"later", np.uint8), 16, required)])


def test_an_unknown_section_is_passed_over_unless_it_is_required():
    assert to_bytes(from_bytes(extend("debug", required=False))) == IMAGE
    with refuses("image: needs its section cpu.aarch64, which this program does not know"):
        from_bytes(extend("cpu.aarch64", required=True))
    with refuses("image: needs its section segment.8, which this program does not know"):
        from_bytes(extend("segment.8", required=True))


def test_the_known_sections_must_be_as_documented():
    meta, code, data = unpack(np.frombuffer(IMAGE, np.uint8))
    for missing, rest in (("meta", [code, data]), ("code", [meta, data])):
        with refuses(f"image: has no section {missing}"):
            from_bytes(pack(rest))
    with refuses("image: section code has alignment 32 and is required, but must have alignment "
                 "4096 and be required"):
        from_bytes(pack([meta, Section("code", code.content, 32), data]))
    with refuses("image: section segment.0 has alignment 4096 and is optional, but must"):
        from_bytes(pack([meta, code, Section("segment.0", data.content, required=False)]))
    with refuses("image: has data for segment 7, but 2 segments"):
        from_bytes(pack([meta, code, data, Section("segment.7", data.content)]))


@pytest.mark.parametrize(("changes", "message"), [
    ({"code": bytes(31)}, "section code has 31 bytes, which is not a multiple of 32"),
    ({"code": bytes(32)}, "instruction 0: opcode is 0, but must be one of 1 (load), 2 (gemm)"),
    ({"code": Sync().encode()[:-1] + b"\1"}, "instruction 0: reserved byte 31 of sync is 1"),
    ({"code": b"\7\1" + bytes(30)}, "instruction 0: sync: wait and post must be empty"),
    ({"code": b"\1\0\0\x09" + bytes(28)}, "instruction 0: load: buffer is 9, but must be one of"),
    ({"code": Sync().encode() * 0}, "label main is at instruction 1, but the program has 0"),
    ({"segment.0": bytes(4097)}, "segment constants: holds 4097 bytes of data, but its size is"),
    ({"meta": b"null"}, "meta is None, but must be an object"),
    ({"meta": b"[" * 100_000}, "section meta: nested too deeply"),
])
def test_hostile_content_is_refused_although_its_checksum_is_right(changes, message):
    with refuses(f"image: {message}"):
        from_bytes(repack(**changes))


def test_absurd_numbers_in_a_file_allocate_nothing():
    start = 64 + 48       # the entry of the code
    tracemalloc.start()
    try:
        for position, size in ((12, 4), (start + 28, 4), (start + 32, 8), (start + 40, 8)):
            for value in (1 << 8 * size - 1, (1 << 8 * size) - 1):
                number = value.to_bytes(size, "little")
                assert refusal(resign(IMAGE[:position] + number + IMAGE[position + size:]))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_change_of_any_single_byte_is_noticed():
    for position in range(len(IMAGE)):
        changed = bytearray(IMAGE)
        changed[position] ^= 1 << position % 8
        assert refusal(bytes(changed)), position


interesting = st.one_of(st.integers(0, 300), st.integers(0, len(IMAGE)),
                        st.integers(PAGE, PAGE + 96), st.integers(2 * PAGE, 2 * PAGE + 16))


@given(st.lists(st.tuples(interesting, st.sampled_from(["flip", "set", "cut", "insert"]),
                          st.binary(min_size=1, max_size=9)), min_size=1, max_size=4),
       st.booleans())
def test_a_mutated_image_gives_a_program_or_an_error_of_one_line(edits, sign):
    data = IMAGE
    for position, how, new in edits:
        match how:
            case "flip":
                new = bytes(each ^ 1 << new[0] % 8 for each in data[position:position + 1])
                data = data[:position] + new + data[position + 1:]
            case "set":
                data = data[:position] + new + data[position + len(new):]
            case "cut":
                data = data[:position] + data[position + len(new):]
            case "insert":
                data = data[:position] + new + data[position:]
    message = refusal(resign(data) if sign and len(data) > 64 else data)
    assert "\n" not in message
    if not sign and data != IMAGE:
        assert message


@given(st.data())
def test_changed_metadata_gives_a_program_or_an_error_of_one_line(data):
    text = bytearray(unpack(np.frombuffer(IMAGE, np.uint8))[0].content.tobytes())
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.integers(0, 3))
        text[position:position + length] = data.draw(
            st.sampled_from([b"0", b"9", b"99999999999", b'"', b"{", b"]", b",", b"-1", b"\xff",
                             b"\\", b"null", b"1e9", b"NaN", b"a"]))
    assert "\n" not in refusal(repack(meta=bytes(text)))


@given(st.binary(min_size=32, max_size=32), st.integers(1, 7))
def test_any_word_is_an_instruction_or_refused(word, opcode):
    data = repack(code=bytes([opcode]) + word[1:])
    if not refusal(data):
        stream.decode(from_bytes(data).code)
