"""The metadata of an image: canonical JSON in which nothing is trusted."""

import json
import re
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import ImageError, MicrotronError
from microtron.isa.config import Config, small
from microtron.isa.image import metadata
from microtron.isa.instructions import Gemm, Sync
from microtron.isa.program import Access, Program, Segment, Tensor
from microtron.isa.stream import encode

CODE = encode([Gemm(), Sync()])
PROGRAM = Program(
    small, CODE, (Segment("weights", 64), Segment("io", 32, Access.WRITE)),
    (Tensor("x", "io", 0, (4, 4)), Tensor("y", "io", 16, (4,), "int32")),
    {"start": 0, "end": 2}, {"source": "a test\nin two lines", "compiler": "ünïcode"})
GOOD = metadata.describe(PROGRAM)


def parse(text):
    return metadata.parse(np.frombuffer(text, np.uint8))


def build(description, contents=()):
    return metadata.build(description, CODE, dict(contents))


def change(path, value):
    """The good description with one thing in it replaced."""
    description = json.loads(json.dumps(GOOD))
    *way, last = path
    target = description
    for step in way:
        target = target[step]
    target[last] = value
    return description


def refuses(message):
    return pytest.raises(ImageError, match=f"^{re.escape(message)}")


def test_a_description_survives_being_written_and_read():
    assert parse(metadata.text_of(GOOD)) == GOOD
    assert metadata.describe(build(GOOD)) == GOOD


def test_the_order_of_labels_does_not_show_in_the_text():
    backwards = change(["labels"], dict(reversed(GOOD["labels"].items())))
    assert metadata.text_of(backwards) == metadata.text_of(GOOD)


def test_integers_of_numpy_are_written_as_numbers():
    program = Program(small, CODE, (Segment("s", np.int64(8)),),
                      (Tensor("x", "s", np.uint32(4), (np.int16(2),)),), {"l": np.int8(1)})
    assert metadata.describe(build(metadata.describe(program))) == metadata.describe(program)
    assert b'"size":8' in metadata.text_of(metadata.describe(program))


@pytest.mark.parametrize(("text", "message"), [
    (b"", "section meta: Expecting value"),
    (b"{", "section meta: Expecting property name"),
    (b'{"a":1}x', "section meta: Extra data"),
    (b"\xff", "section meta: 'utf-8' codec can't decode byte 0xff"),
    (b'{"a":"\xed\xa0\x80"}', "section meta: 'utf-8' codec can't decode byte 0xed"),
    (b"\xef\xbb\xbf{}", "section meta: Unexpected UTF-8 BOM"),
    (b'{"a":"\\ud800"}', "section meta: 'utf-8' codec can't encode character '\\ud800'"),
    (b'{"\\udfff":1}', "section meta: 'utf-8' codec can't encode character '\\udfff'"),
    (b'{"a":NaN}', "section meta: 'NaN' is not an integer of at most 19 digits"),
    (b'{"a":-Infinity}', "section meta: '-Infinity' is not an integer"),
    (b'{"a":1.0}', "section meta: '1.0' is not an integer"),
    (b'{"a":1e400}', "section meta: '1e400' is not an integer"),
    (b'{"a":' + b"9" * 5000 + b"}", f"section meta: '{'9' * 39}…' is not an integer"),
    (b"[" * 1_000_000, "section meta: nested too deeply"),
    (b'{"a":' * 1_000_000, "section meta: nested too deeply"),
    (b'{"a":1,"a":1}', "section meta: not in canonical form"),
    (b'{"a":1,"a":2}', "section meta: not in canonical form"),
    (b'{"b":1,"a":1}', "section meta: not in canonical form"),
    (b'{"a": 1}', "section meta: not in canonical form"),
    (b'{"a":-0}', "section meta: not in canonical form"),
    (b'{"a":"\\u0041"}', "section meta: not in canonical form"),
    (b'{"a":"\\/"}', "section meta: not in canonical form"),
    (b"{}\n", "section meta: not in canonical form"),
    (b" " * ((8 << 20) + 1), "section meta has 8388609 bytes, but at most 8388608 are possible"),
], ids=lambda value: repr(value[:20]))
def test_a_text_that_is_not_canonical_is_refused(text, message):
    with refuses(message) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


LONG = "x" * 1025

@pytest.mark.parametrize(("path", "value", "message"), [
    (["config"], [], "config is [], but must be an object"),
    (["config", "batch"], True, "config: batch is True, but must be an integer from 0 to"),
    (["config", "batch"], -1, "config: batch is -1, but must be an integer from 0 to 4294967295"),
    (["config", "batch"], 3, "config: batch is 3, but must be a power of two from 1 to 16"),
    (["config", "vector_cycles"], 1, "config: vector_cycles is 1, which is to be left out"),
    (["config", "vector_cycles"], 3, "config: vector_cycles is 3, but must be a power of two"),
    (["config", "batches"], 1, "config has 'batches', but only batch, block_in, "),
    (["segments"], {}, "segments is {}, but must be a list"),
    (["segments"], None, "segments is None, but must be a list"),
    (["segments", 0], 5, "segment 0 is 5, but must be an object"),
    (["segments", 0], {}, "segment 0 has no access"),
    (["segments", 0, "data"], 0, "segment 0 has 'data', but only access, name, size are known"),
    (["segments", 0, "name"], 7, "segment 0: name is 7, but must have 1 to 64 printable"),
    (["segments", 0, "name"], "x" * 65, f"segment 0: name is '{'x' * 39}…', but must have 1 to 64"),
    (["segments", 1, "access"], "all", "segment 1: access is 'all', but must be read or write"),
    (["segments", 1, "access"], ["read"], "segment 1: access is ['read'], but must be read"),
    (["segments", 1, "size"], "32", "segment 1: size is '32', but must be an integer from 0 to"),
    (["segments", 1, "size"], 1 << 32, "segment 1: size is 4294967296, but must be an"),
    (["segments", 1, "size"], 10**5000, "segment 1: size is a number of 16610 bits, but must be"),
    (["tensors"], "x", "tensors is 'x', but must be a list"),
    (["tensors", 0, "name"], "", "tensor 0: name is '', but must have 1 to 1024 printable"),
    (["tensors", 0, "name"], LONG, f"tensor 0: name is '{'x' * 39}…', but must have 1 to 1024"),
    (["tensors", 0, "name"], "\x1b[2J", r"tensor 0: name is '\x1b[2J', but must have 1 to 1024"),
    (["tensors", 0, "name"], "a\u202eb", r"tensor 0: name is 'a\u202eb', but must have"),
    (["tensors", 0, "name"], "\ud800", r"tensor 0: name is '\ud800', but must have"),
    (["tensors", 0, "segment"], [], "tensor 0: segment is [], but must have"),
    (["tensors", 0, "dtype"], 1, "tensor 0: dtype is 1, but must have"),
    (["tensors", 0, "offset"], None, "tensor 0: offset is None, but must be an integer"),
    (["tensors", 0, "shape"], 16, "tensor 0: shape is 16, but must be a list"),
    (["tensors", 0, "shape"], [4, -4], "tensor 0: shape is -4, but must be an integer"),
    (["tensors", 0, "shape"], [1] * 65, "tensor 0: shape has 65 extents, but at most 64 are"),
    (["labels"], [], "labels is [], but must be an object"),
    (["labels", "a\nb"], 0, r"a label is 'a\nb', but must have 1 to 1024 printable characters"),
    (["labels", "start"], False, "label start is False, but must be an integer"),
    (["provenance", "\t"], "", r"a key of provenance is '\t', but must have"),
    (["provenance", "source"], 1, "provenance source is 1, but must be a text of at most 65536"),
    (["provenance", "source"], "\0", r"provenance source is '\x00', but must be a text"),
    (["provenance", "source"], "\ud800", r"provenance source is '\ud800', but must be a text"),
    (["provenance", "source"], "x" * 65537, f"provenance source is '{'x' * 39}…', but must be"),
    (["extra"], 1, "meta has 'extra', but only config, labels, provenance, segments, tensors are"),
], ids=lambda value: ".".join(map(str, value)) if isinstance(value, list) else "")
def test_a_wrong_value_is_refused_with_its_place(path, value, message):
    with refuses(message) as caught:
        build(change(path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("key", ["config", "labels", "provenance", "segments", "tensors"])
def test_no_part_may_be_missing(key):
    with refuses(f"meta has no {key}"):
        build({each: value for each, value in GOOD.items() if each != key})


def test_every_field_of_the_configuration_must_be_there():
    for name in [each.name for each in fields(Config) if not each.metadata["omit_default"]]:
        others = {each: value for each, value in GOOD["config"].items() if each != name}
        with refuses(f"config has no {name}"):
            build(change(["config"], others))


def test_data_must_belong_to_a_segment():
    with refuses("has data for segment 2, but 2 segments"):
        build(GOOD, {2: np.zeros(1, np.uint8)})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner,
                                                                max_size=3), max_leaves=6)
places = st.sampled_from([
    [], ["config"], ["config", "block_in"], ["labels"], ["labels", "start"], ["labels", "n"],
    ["provenance"], ["provenance", "source"], ["segments"], ["segments", 0],
    ["segments", 1, "size"], ["segments", 0, "name"], ["segments", 0, "access"], ["tensors"],
    ["tensors", 0], ["tensors", 0, "shape"], ["tensors", 1, "shape", 0], ["tensors", 1, "offset"],
    ["tensors", 0, "segment"], ["tensors", 0, "dtype"], ["tensors", 0, "name"]])


@given(places, anything)
def test_whatever_stands_anywhere_gives_a_program_or_an_error_of_one_line(path, value):
    description = change(path, value) if path else value
    try:
        assert isinstance(build(description), Program)
    except MicrotronError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message


@given(st.binary(max_size=40) | st.text(alphabet='{}[]":,0129.eE-\\u dnt', max_size=40).map(
    str.encode))
def test_any_bytes_parse_or_are_refused(text):
    try:
        description = parse(text)
    except ImageError as error:
        message = str(error)
    else:
        message = ""
        assert metadata.text_of(description) == text
    assert "\n" not in message
