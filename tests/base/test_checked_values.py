"""Whatever is handed over for a number or a name is taken as one, or refused in one short line."""

import dataclasses
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.checked_values import integer, list_names, quote, show_name
from microtron.base.errors import MESSAGE_LIMIT, MicrotronError
from microtron.isa.assembly.assembler import assemble, parse_instruction
from microtron.isa.config import Config, base
from microtron.isa.config_files import from_dict, load_config, parse_toml, parse_vta, vta_notes
from microtron.isa.instructions import ISA, Gemm, Load, MicroOp
from microtron.isa.memory_timing import MemoryTiming, parse_timing
from microtron.isa.program import Program, Segment, Tensor
from microtron.isa.record import fields_of
from microtron.isa.stream import encode

INTEGERS = [7, np.int64(7), np.uint8(7), np.array(7, np.int16)]
NO_INTEGERS = ["7", "", b"7", 7.0, np.float32(7), None, [7], (7,), {}, True, np.True_, 7j, object]
LONG = "x" * 1_000_000


def refusal(function, *arguments, **fields):
    """The one line with which a call is refused."""
    with pytest.raises(MicrotronError) as caught:
        function(*arguments, **fields)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert len(text) <= MESSAGE_LIMIT
    return text


@pytest.mark.parametrize("value", INTEGERS, ids=lambda value: type(value).__name__)
def test_integers_of_every_kind_are_stored_as_plain_ones(value):
    made = [Config(queue_depth=value).queue_depth, MemoryTiming(reads=value).reads,
            Load(sram=value).sram, Gemm(loops=(value, 1, 1)).loops[0], MicroOp(dst=value).dst,
            Segment("s", value).size, Tensor("t", "s", value, (value,)).offset,
            Tensor("t", "s", value, (value,)).shape[0]]
    assert made == [7] * len(made)
    assert {type(each) for each in made} == {int}
    assert Program(base, encode([Load()] * 9), labels={"here": value}).labels["here"] == 7


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_what_is_no_integer_is_refused_by_field_and_value(value):
    quoted = quote(value)
    assert refusal(Config, batch=value) == f"batch is {quoted}, but must be an integer"
    assert refusal(MemoryTiming, reads=value) == (
        f"memory: reads is {quoted}, but must be an integer from 1 to 64")
    assert refusal(Load, sram=value) == f"load: sram is {quoted}, but must be an integer"
    assert refusal(Gemm, loops=(1, value, 1)) == (
        f"gemm: loops[middle] is {quoted}, but must be an integer")
    assert refusal(Segment, "s", value).startswith(f"segment s: size is {quoted}, but must be")
    assert refusal(Tensor, "t", "s", value, ()).startswith(f"tensor t: offset is {quoted}, but")
    assert refusal(Tensor, "t", "s", 0, (value,)).startswith("tensor t: shape is (")
    assert refusal(Program, base, encode([Load()]), labels={"here": value}).startswith(
        f"label here is at instruction {quoted}, but the program has 1")


@pytest.mark.parametrize("field", dataclasses.fields(Config), ids=lambda field: field.name)
@pytest.mark.parametrize("value", [-1, 1 << 70, 10 ** 6000], ids=["-1", "2**70", "10**6000"])
def test_no_field_of_a_configuration_takes_absurd_numbers(field, value):
    assert f"{field.name} is " in refusal(Config, **{field.name: value})


@pytest.mark.parametrize("kind", [*ISA, MicroOp], ids=lambda kind: kind.__name__)
def test_every_field_of_an_instruction_refuses_what_it_cannot_hold(kind):
    for field in fields_of(kind):
        for value in ("7", 1.5, None, 10 ** 6000, -(1 << 40)):
            wrong = (value,) * field.count if field.axes else value
            assert f": {field.name}" in refusal(kind, **{field.name: wrong})


@pytest.mark.parametrize("value", ["no", 0, 1, None, np.True_], ids=repr)
def test_whether_memory_is_shared_is_true_or_false(value):
    assert refusal(MemoryTiming, shared=value) == (
        f"memory: shared is {quote(value)}, but must be True or False")


@pytest.mark.parametrize(("text", "message"), [
    ("shared=2", "memory: shared is '2', but must be 0 or 1"),
    ("shared=no", "memory: shared is 'no', but must be a number"),
    ("reads=1,reads=2", "memory: reads is given twice"),
    ("reads=" + "9" * 5000, f"memory: reads is '{'9' * 39}…', but must be a number"),
    ("reeds=2", "memory: there is no 'reeds'; there are read_latency, write_latency, "
                "cycles_per_beat, turn, reads, writes, shared, stalls, seed"),
])
def test_a_timing_in_words_is_refused_by_the_word(text, message):
    assert refusal(parse_timing, text) == message


def test_a_segment_s_access_is_no_text():
    assert refusal(Segment, "s", 1, "write") == (
        "segment s: access is 'write', but must be Access.READ or Access.WRITE")


def test_a_program_is_made_for_a_configuration():
    assert refusal(Program, "base", encode([])) == "config is 'base', but must be a Config"


@pytest.mark.parametrize("text", [
    LONG, f".{LONG}", f"load {LONG}=1", f"load sram={LONG}", f"load wait={LONG}", f"load.{LONG}",
    f"gemm loops=1,1,{LONG}", f"load segment={LONG}", f'.provenance {LONG} "a" {LONG}',
    f'.provenance "{LONG}" "a"\n.provenance "{LONG}" "b"', f"{LONG}:\n{LONG}:", f'"{LONG}\\q":',
    f".config {LONG}", f".config base {LONG}=1", f".segment {LONG} size=0", f".segment {LONG}",
    f".segment {LONG} size=1 access={LONG}", f".segment a size=1\n.tensor {LONG} segment={LONG}",
    f".segment a size=1\n.tensor {LONG} segment=a shape=9", f".bytes {LONG}", f".word {LONG}",
    f".segment a size=9\n.bytes a\n{LONG}", f".segment {LONG} size=1\n.bytes {LONG}\n0000",
    f".segment a size=9\n.uops a\n{LONG}", f".segment {LONG} size=9\n.tensor x segment=b",
], ids=range(25))
def test_a_megabyte_of_bad_assembly_gets_a_short_answer(text):
    message = refusal(assemble, text)
    assert len(message) < 400
    assert message.startswith("<text>:")


@pytest.mark.parametrize("call", [
    lambda: parse_instruction(LONG), lambda: load_config(LONG), lambda: parse_timing(LONG),
    lambda: parse_timing(f"reads={LONG}"), lambda: from_dict({LONG: 1}),
    lambda: parse_toml(f"{LONG} = 1"), lambda: parse_toml(f"preset = '{LONG}'"),
    lambda: parse_toml(f"batch = '{LONG}'"), lambda: parse_vta(f'{{"LOG_BATCH": "{LONG}"}}'),
    lambda: parse_vta(f'{{"{LONG}": 1, "{LONG}": 1}}'), lambda: Segment(LONG, 0),
    lambda: Segment(LONG + "-", 1), lambda: Config(batch=LONG), lambda: Config(batch=[LONG] * 99),
    lambda: Load(sram=LONG), lambda: Load(shape=LONG), lambda: Load(shape=[LONG] * 3),
    lambda: Tensor(LONG, "a", 0, (), LONG), lambda: MemoryTiming(shared=LONG),
    lambda: Program(base, encode([])).segment(LONG), lambda: Program(base, encode([])).tensor(LONG),
], ids=range(21))
def test_a_long_value_is_quoted_in_part(call):
    assert len(refusal(call)) < 400


def test_a_message_that_is_too_long_all_the_same_keeps_its_ends():
    text = str(MicrotronError("begin " + "x" * 10 ** 6 + " end"))
    assert len(text) <= MESSAGE_LIMIT
    assert text.startswith("begin x")
    assert text.endswith("x end")
    assert str(MicrotronError("short")) == "short"


@given(value=st.recursive(
    st.one_of(st.text(), st.binary(), st.integers(), st.floats(), st.none(), st.booleans()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_anything_can_be_shown_on_one_short_line(value):
    text = quote(value)
    assert len(text.splitlines()) == 1
    assert len(text) <= 200


def test_what_python_cannot_print_is_described():
    deep = []
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    assert len(quote(deep)) < 100
    assert quote(1 << 100_000) == "a number of 100001 bits"
    assert quote("x" * 41) == repr("x" * 39 + "…")
    assert quote("x" * 40) == repr("x" * 40)


def test_names_are_as_they_are_or_cut():
    assert show_name("layer1/conv") == "layer1/conv"
    assert show_name("x" * 41) == "x" * 39 + "…"
    assert show_name(5) == "5"
    assert show_name("two\nlines\x1b") == "two\\nlines\\x1b"
    assert list_names(["a"] * 8) == "a, a, a, a, a, a, a, a"
    assert list_names(["a"] * 9) == "a, a, a, a, a, a, a, a and 1 more"


@given(value=st.integers())
def test_an_integer_is_itself(value):
    assert integer(value) == value


VTA = """{"TARGET": "sim", "HW_VER": "0.0.2", "LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3,
"LOG_ACC_WIDTH": 5, "LOG_BATCH": 0, "LOG_BLOCK": 4, "LOG_UOP_BUFF_SIZE": 15,
"LOG_INP_BUFF_SIZE": 15, "LOG_WGT_BUFF_SIZE": 18, "LOG_ACC_BUFF_SIZE": 17%s}"""


def test_what_vta_s_file_does_not_say_or_says_in_vain_is_named():
    ignored, unknown, assumed = vta_notes(VTA % ', "LOG_OUT_WIDTH": 3, "GEMM_II": 1')
    assert ignored == "vta_config.json: TARGET, HW_VER: ignored: where VTA ran, not what it was"
    assert unknown == "vta_config.json: 'LOG_OUT_WIDTH', 'GEMM_II': ignored: not known"
    assert assumed == (
        "vta_config.json: acc_banks = 4, bus_bits = 64, address_bits = 32, queue_depth = 16, "
        "token_bits = 8, reads_in_flight = 16, writes_in_flight = 8, vector_cycles = 1, "
        "out_readers = 2, window_taps = 3, cycles_only = 0, tables = 8: assumed: "
        "VTA has no key for it")
    assert len(vta_notes(VTA % "")) == 2
    assert parse_vta(VTA % ', "GEMM_II": 1') == base


def test_a_key_given_twice_is_refused():
    assert refusal(parse_vta, VTA % ', "LOG_BATCH": 1') == (
        "vta_config.json: 'LOG_BATCH' is given twice")
